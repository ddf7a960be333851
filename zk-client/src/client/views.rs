//! A client's options, and clients of the same session with other options.

use std::sync::Arc;

use zk_proto::{AclList, path::PathError};

use crate::{clock::Clock, error::Cause, report::stats::Stats, request::client::Client};

impl Client {
    /// The clock that measures the session's lease: see [`ConnectOptions::clock`](crate::ConnectOptions::clock).
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.handle.shared.session.clock()
    }

    /// The access control list of nodes created without one of their own: see
    /// [`ConnectOptions::default_acl`](crate::ConnectOptions::default_acl).
    #[must_use]
    pub fn default_acl(&self) -> &AclList {
        &self.handle.acl
    }

    /// Counters of all the session's clients together.
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

    /// A client of the same session whose paths are relative to `path`. Does not create the node.
    ///
    /// # Errors
    /// [`PathError`] if `path` is invalid.
    pub fn chrooted(&self, path: &str) -> Result<Self, PathError> {
        let mut client = self.clone();
        let chroot = self.handle.chroot.below(path)?;
        client.handle.change(|view| view.chroot = chroot);
        Ok(client)
    }

    /// Whether this and the other client share a session and a chroot.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let (handle, other) = (&self.handle, &other.handle);
        Arc::ptr_eq(&handle.shared, &other.shared) && handle.chroot == other.chroot
    }

    /// A new unique id: a random (version 4) UUID in its canonical form. For names and contents that distinguish the
    /// application's own node from those of others.
    ///
    /// # Errors
    /// [`Cause::InvalidArgument`] if the system provides no randomness.
    pub fn unique_id(&self) -> Result<String, Cause> {
        self.handle.shared.ids.next()
    }
}
