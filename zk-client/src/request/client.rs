//! The client as requests use it: its session and options.

use std::{
    borrow::Cow,
    ops::Deref,
    sync::{Arc, PoisonError},
    time::Duration,
};

use zk_proto::{AclList, path::PathError};

use crate::{
    driver::command::Cleanup,
    error::Cause,
    report::stats::Stats,
    request::{ask::Target, call_options::CallOptions, handle::Handle, held::Held},
};

/// A client of one session. Cheap to clone; all clones share the session.
///
/// Requests are carried out in the order of their submission: each client's, and across clones as far as their
/// submissions are ordered. Every operation is a [`Request`](crate::Request): await it, or [`submit`](crate::Request::submit) it to send it now
/// and await the result later.
///
/// When the last clone and all [`OwnedNode`](crate::OwnedNode)s have been dropped, the session is closed in the
/// background; [`close`](Client::close) waits for that. The [`Pending`](crate::Pending)s of creates and transactions that
/// may have to be sent in another form count like clones.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// use zk_client::Client;
///
/// let zk = Client::connect(&server.connect_string()).await?;
/// // A clone for each task: one session, one connection.
/// let writer = tokio::spawn({
///     let zk = zk.clone();
///     async move { zk.create("/greeting", b"hello").await }
/// });
/// writer.await??;
/// assert_eq!(zk.get("/greeting").await?.0, "hello");
/// zk.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) handle: Handle,
}

impl Client {
    pub(crate) const fn target(&self) -> Target<'_> {
        Target { handle: &self.handle, options: self.handle.options }
    }

    /// A client of the same session whose requests have these options unless a single call overrides them.
    pub fn with(&self, options: CallOptions) -> Self {
        let mut client = self.clone();
        client.handle.options = options;
        client.handle.change(|view| view.told = options);
        client
    }

    /// A client of the same session whose requests take the time that they need: whatever this client's options, they have
    /// no timeout, do not fail fast, are not held back by a [cork](Client::cork), are retried when a server
    /// [throttles](CallOptions::retry_throttled) them, and wait in line for
    /// [room](crate::ConnectOptions::requests_max) even when submitted. They end when they are answered, or with the session;
    /// a write that cannot be repeated also with the connection that it was sent over, [in doubt](crate::WriteError::InDoubt).
    ///
    /// For recipes and other work that lasts as long as the session, and is bounded as a whole, as by
    /// `tokio::time::timeout`.
    pub fn patient(&self) -> Self {
        let mut client = self.clone();
        client.handle.options = CallOptions::patient();
        client.handle.change(|view| view.held = None);
        client
    }

    /// A client of the same session for giving back what no other client knows of, such as a node that was not made by
    /// a [protected create](crate::Create::protected). Until it and all its clones have been dropped, the session is
    /// not [left](Client::detach), and its requests are carried out even after `detach` was called. They are not held back
    /// by a [cork](Client::cork).
    ///
    /// For [tasks](Client::spawn) that clean up after a dropped owner: made where the owner is dropped, and handed to
    /// the task, it leaves no gap in between.
    #[must_use = "it is dropped when all is given back"]
    pub fn for_cleanup(&self) -> Self {
        let mut client = self.clone();
        let cleanup = Cleanup::begin(&self.handle.shared.commands);
        client.handle.change(|view| (view.cleanup, view.held) = (Some(cleanup), None));
        client
    }

    /// A client of the same session that holds its submissions back until it is dropped, and then sends them in one
    /// write: with no other client's in between, and with one wake-up for all.
    ///
    /// If one has to wait for [room](crate::ConnectOptions::requests_max), those before it are sent without it: the order
    /// stays, the one write does not. So it is with what cannot be held back: [`add_auth`](Client::add_auth),
    /// [`remove_watches`](Client::remove_watches), [`close`](Client::close).
    ///
    /// Of corks on a cork, the first to be dropped sends what they hold so far: the order stays here, too.
    #[must_use = "dropping it lets go"]
    pub fn cork(&self) -> Cork {
        let mut client = self.clone();
        let held = Arc::new(Held::within(client.handle.held.as_deref()));
        client.handle.change(|view| view.held = Some(held));
        Cork(client)
    }

    /// Returns the clock that measures the session's lease: see [`ConnectOptions::clock`](crate::ConnectOptions::clock).
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Fn() -> Duration + Send + Sync> {
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

    /// The path as servers name it: below the client's chroot. Does not check it.
    ///
    /// To compare paths of clients with different chroots.
    #[must_use]
    pub fn absolute<'a>(&self, path: &'a str) -> Cow<'a, str> {
        self.handle.chroot.absolute(path)
    }

    /// Whether this and the other client share a session and a chroot.
    #[must_use]
    pub fn is_same_view(&self, other: &Self) -> bool {
        self.shares_session(other) && self.handle.chroot == other.handle.chroot
    }

    /// Whether this and the other client share a session.
    #[must_use]
    pub fn shares_session(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle.shared, &other.handle.shared)
    }

    /// A new unique id: a random (version 4) UUID in its canonical form. For names and contents that distinguish the
    /// application's own node from those of others.
    ///
    /// # Errors
    /// [`Cause::InvalidArgument`] if the system provides no randomness.
    pub fn unique_id(&self) -> Result<String, Cause> {
        self.handle.shared.ids.next()
    }

    /// The value of this type that all clients of the session share, created on first use: where libraries built on a
    /// session, such as recipes, keep their per-session state.
    ///
    /// It is dropped with the last of the clients. A value that keeps a client keeps the session alive.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// #[derive(Default)]
    /// struct Turns(AtomicU64);
    ///
    /// zk.extension::<Turns>().0.fetch_add(1, Ordering::Relaxed);
    /// assert_eq!(zk.clone().extension::<Turns>().0.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn extension<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let extensions = &self.handle.shared.extensions;
        let mut known = extensions.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Clones only the requested one: each clone updates a reference count.
        let found = known.iter().find(|value| value.is::<T>()).cloned();
        if let Some(found) = found.and_then(|value| value.downcast().ok()) {
            return found;
        }
        let made = Arc::new(T::default());
        known.push(made.clone());
        made
    }

    /// Spawns a task where the session's own task runs: by default on the runtime on which the client was connected,
    /// whichever thread calls this. For background work of a session, such as monitoring.
    ///
    /// A task that keeps a client keeps the session alive.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.shared.spawn.run(Box::pin(task));
    }
}

/// A [`Client`] that holds its submissions back: see [`Client::cork`].
#[derive(Debug)]
pub struct Cork(Client);

impl Deref for Cork {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Drop for Cork {
    fn drop(&mut self) {
        self.0.handle.send_held();
    }
}
