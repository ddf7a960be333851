//! What a client was told, and clients of the same session that are told something else.

use std::sync::Arc;

use zk_proto::{AclList, path::PathError};

use crate::{clock::Clock, error::Cause, report::stats::Stats, request::client::Client};

impl Client {
    /// The clock that the session's lease is measured with: see [`ConnectOptions::clock`](crate::ConnectOptions::clock).
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.handle.shared.session.clock()
    }

    /// Who may do what with nodes that are created without a list of their own: see [`ConnectOptions::default_acl`](crate::ConnectOptions::default_acl).
    #[must_use]
    pub fn default_acl(&self) -> &AclList {
        &self.handle.acl
    }

    /// What the session's clients have done so far, all of them together.
    ///
    /// ```no_run
    /// # fn example(zk: zk_client::Client) {
    /// let stats = zk.stats();
    /// let typical = stats.latency().quantile(0.5);
    /// println!("{} answers, half of them within {typical:?}; {} connections", stats.answered, stats.connects);
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.handle.shared.counters.snapshot()
    }

    /// A client of the same session whose paths are relative to `path`. The node is not created.
    ///
    /// # Errors
    /// [`PathError`] if `path` is not a valid path.
    pub fn chrooted(&self, path: &str) -> Result<Self, PathError> {
        let mut client = self.clone();
        let chroot = self.handle.chroot.below(path)?;
        client.handle.change(|view| view.chroot = chroot);
        Ok(client)
    }

    /// Whether this and the other client are of one session, and mean the same by a path.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let (handle, other) = (&self.handle, &other.handle);
        Arc::ptr_eq(&handle.shared, &other.shared) && handle.chroot == other.chroot
    }

    /// A new id that nobody else has, nor ever will: a random (version 4) UUID in its canonical form. For names
    /// and contents by which one's own node is told from others'.
    ///
    /// # Errors
    /// [`Cause::InvalidArgument`] if the system has no randomness to give.
    pub fn unique_id(&self) -> Result<String, Cause> {
        self.handle.shared.ids.next()
    }
}
