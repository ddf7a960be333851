//! Persistent watches, and what servers know of this session and of themselves.

use std::sync::Arc;

use bytes::Bytes;
use zk_proto::path::{Naming, PathError};

use crate::{
    driver::command::Command,
    error::ServersError,
    net::servers::Servers,
    request::{
        client::Client,
        operations::{
            AddAuth, AddWatch, CheckWatches, Config, DescendantCount, Ephemerals, Reconfig,
            WatchKind, WhoAmI,
        },
    },
    watch::WatchMode,
};

impl Client {
    /// The number of all nodes below a node. The server walks its whole tree for it. Since 3.6.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// println!("{} nodes", zk.descendant_count("/app").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn descendant_count<'a>(&'a self, path: &'a str) -> DescendantCount<'a> {
        DescendantCount::new(self.target(), path)
    }

    /// The paths of this session's ephemeral nodes that begin with `prefix`, unordered. The prefix is not limited to
    /// whole components: `/a` matches `/ab` too. `/` matches all; a client with a chroot sees only those inside. Since
    /// 3.6.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// for path in zk.ephemerals("/locks/").await? {
    ///     println!("{path} goes with the session");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn ephemerals<'a>(&'a self, prefix: &'a str) -> Ephemerals<'a> {
        Ephemerals::new(self.target(), prefix)
    }

    /// The identities of this session as its server knows them, one entry each, unordered. Since 3.7.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// for identity in zk.who_am_i().await? {
    ///     println!("{} {}", identity.auth_scheme, identity.user);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn who_am_i(&self) -> WhoAmI<'_> {
        WhoAmI::new(self.target())
    }

    /// Proves another identity, on this connection and every later one. Servers check earlier requests without it,
    /// later ones with it. Submitted when this returns; dropping the returned future does not undo it.
    ///
    /// For the scheme `digest` the bytes are `user:password`; they are sent in plain text.
    ///
    /// A server that refuses ends the session, with [`SessionEnd::AuthFailed`](crate::SessionEnd::AuthFailed), as with
    /// [`ConnectOptions::auth`](crate::ConnectOptions::auth).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// zk.add_auth("digest", "ann:secret").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_auth(&self, scheme: &str, auth: impl Into<Bytes>) -> AddAuth {
        AddAuth::start(self.target(), scheme, auth.into())
    }

    /// The ensemble's configuration. The chroot does not apply. Since 3.5; earlier servers answer
    /// [`NoNode`](crate::Rejection::NoNode).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// // Follow the members.
    /// loop {
    ///     let ((config, _), changed) = zk.config().watch().await?;
    ///     let servers = config.connect_string();
    ///     if !servers.is_empty() {
    ///         zk.update_servers(&servers)?;
    ///     }
    ///     changed.await?;
    /// }
    /// # }
    /// ```
    pub const fn config(&self) -> Config<'_> {
        Config::new(self.target())
    }

    /// Switches to other servers, `host:port,host:port`, without ending the session: for ensembles that grow, shrink or
    /// move. The clients of a fleet stay spread evenly over all servers, each by a random choice: some move to new
    /// servers, those of removed servers move, and no others do. A connection is left once every request sent over it
    /// has been answered; later requests wait for the next connection.
    ///
    /// The client keeps its chroot; the string must not have one.
    ///
    /// ```no_run
    /// # fn example(zk: zk_client::Client) -> Result<(), zk_client::ServersError> {
    /// zk.update_servers("zk1:2181,zk2:2181,zk4:2181")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ServersError`] if the string is anything else.
    pub fn update_servers(&self, servers: &str) -> Result<(), ServersError> {
        let Servers { addresses, chroot } = servers.parse()?;
        if chroot.as_str() != "/" {
            return Err(ServersError::UnexpectedChroot);
        }
        self.handle.command(Command::UpdateServers(addresses));
        Ok(())
    }

    /// Changes the ensemble's members; resolves to the new configuration. Servers must allow it (`reconfigEnabled`),
    /// and the session must have permission to write the configuration, which by default only the super user has. Since
    /// 3.5.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::Error> {
    /// let (config, _) = zk.config().await?;
    /// let change = zk.reconfig().join(4, "zk4:2888:3888;2181").leave(1);
    /// let (new, _) = match config.version {
    ///     Some(version) => change.version(version).await?,
    ///     None => change.await?,
    /// };
    /// println!("{}", new.text);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn reconfig(&self) -> Reconfig<'_> {
        Reconfig::new(self.target())
    }

    /// Watches a node, or a node and everything below it, persistently: see [`WatchStream`](crate::WatchStream). The
    /// node need not exist. Since 3.6; earlier servers answer [`Unimplemented`](crate::Rejection::Unimplemented), the
    /// first time in a session at the cost of the connection.
    ///
    /// It does not interfere with other watches on the same path, although servers before 3.9 keep one watch per path
    /// and session: where the later one would replace the earlier one, the client uses the existing watch for both.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::{EventType, WatchItem, WatchMode};
    ///
    /// let mut changes = zk.watch("/workers", WatchMode::Recursive).capacity(100).await?;
    /// zk.create("/workers/1", b"").parents().await?;
    /// match changes.next().await {
    ///     Some(WatchItem::Event(event)) => assert_eq!(event.kind, EventType::NODE_CREATED),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn watch<'a>(&'a self, path: &'a str, mode: WatchMode) -> AddWatch<'a> {
        AddWatch::new(self.target(), path, mode)
    }

    /// Whether the server has a watch of this kind for this session on exactly this path. Since 3.5.
    ///
    /// Servers before 3.9 cannot distinguish kinds: they count persistent watches among the others and, since 3.6,
    /// those of other sessions; they do not support [`WatchKind::Node`] and [`WatchKind::Recursive`], and answer
    /// [`Unimplemented`](crate::Rejection::Unimplemented). Where one watch serves two, the server has only one.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// use zk_client::WatchKind;
    ///
    /// let (_, changed) = zk.get("/config").watch().await?;
    /// assert!(zk.check_watches("/config", WatchKind::Data).await?);
    /// # drop(changed);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn check_watches<'a>(&'a self, path: &'a str, kind: WatchKind) -> CheckWatches<'a> {
        CheckWatches::new(self.target(), path, kind)
    }

    /// Removes all of this session's watches of this kind on exactly this path, for all listeners. One-shot watches
    /// resolve with an event ([`DATA_WATCH_REMOVED`](crate::EventType::DATA_WATCH_REMOVED) and the like), streams with
    /// their [end](crate::WatchEnd::Removed). Requests submitted after this arm new watches.
    ///
    /// The server's watch is removed as soon as nothing else is watched on that path: before 3.9 removing one kind
    /// would remove others too. Since 3.5. Rarely needed: dropping a stream removes its watch, and an unused one-shot
    /// watch costs nothing.
    ///
    /// # Errors
    /// [`PathError`] if `path` is not a valid path.
    pub fn remove_watches(&self, path: &str, kind: WatchKind) -> Result<(), PathError> {
        let path = self.handle.chroot.resolve(path, Naming::Exact)?;
        let (kinds, path) = (kind.armed_by(), Arc::from(&*path));
        self.handle.command(Command::RemoveWatches { kinds, path });
        Ok(())
    }
}
