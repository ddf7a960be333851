//! Watches for good, and what servers know of this session and of themselves.

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
    /// The number of all nodes below a node. Costs the server a walk over its whole tree. Since 3.6.
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

    /// The paths of this session's ephemeral nodes that begin with `prefix`, in no order. Not only below a node:
    /// `/a` is also the beginning of `/ab`. All of them for `/`; of a client with a chroot only those inside. Since 3.6.
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

    /// Who this session is to its server: one entry for each identity, in no order. Since 3.7.
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

    /// Proves another identity, on this connection and every later one. What was submitted before is judged without it,
    /// what is submitted after with it. Under way when this returns; dropping what it returns does not take it back.
    ///
    /// For the scheme `digest` the bytes are `user:password`; they go over the network as they are.
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

    /// The ensemble's configuration. No chroot applies to it. Since 3.5; of servers before that
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

    /// Goes on with other servers, `host:port,host:port`, without ending the session: for ensembles that grow, shrink or
    /// move. The clients of a fleet stay spread evenly over all servers, each by chance: some move to servers that are
    /// new, those of servers that are gone move, and nobody else does. A connection is left when everything has been
    /// answered that was sent over it; what is submitted meanwhile waits for the next one.
    ///
    /// The chroot is the client's own; the string must not have one.
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

    /// Changes the ensemble's members; resolves to the new configuration. Servers must allow it
    /// (`reconfigEnabled`), and the session must be allowed to write the configuration, which by default only the
    /// super user is. Since 3.5.
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

    /// Watches a node for good, or it and everything below it: see [`WatchStream`](crate::WatchStream). The node need
    /// not exist. Since 3.6; of servers before that [`Unimplemented`](crate::Rejection::Unimplemented), and the first
    /// time in a session that costs the connection.
    ///
    /// Other watches on the same path do not get in the way of it, nor it in theirs, although servers before 3.9 keep
    /// one watch for each path and session: where they would let the later one replace the earlier one, the client
    /// makes do with the one that is there.
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

    /// Whether the server keeps a watch of this kind for this session on exactly this path. Since 3.5.
    ///
    /// Servers before 3.9 cannot tell kinds apart: they count persistent ones among the others, and those of other sessions
    /// since 3.6; they do not look for [`WatchKind::Node`] and [`WatchKind::Recursive`], which is
    /// [`Unimplemented`](crate::Rejection::Unimplemented) there. And where one watch does for two, the server has only one.
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

    /// Takes away all watches of this kind that this session has on exactly this path, whoever listens. Those that fire
    /// once tell so by an event ([`DATA_WATCH_REMOVED`](crate::EventType::DATA_WATCH_REMOVED) and the like), streams
    /// by their [end](crate::WatchEnd::Removed). What is submitted after this arms watches anew.
    ///
    /// The server forgets them as soon as nothing else is watched on that path: before 3.9 removing one kind would take
    /// others along. Since 3.5. There is rarely a need: dropping a stream has it removed, and a watch that fires once
    /// costs nobody anything.
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
