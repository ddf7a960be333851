//! Operations on nodes.

use zk_proto::AclList;

use crate::{
    client::DeleteRecursive,
    request::{
        client::Client,
        create::{Create, CreateAllProtected, CreateProtected},
        multi::Multi,
        operations::{Children, Delete, Exists, Get, GetAcl, LeaderSync, MultiRead, Set, SetAcl},
    },
};

impl Client {
    /// Reads a node's data.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// let (data, stat) = zk.get("/config").await?;
    /// println!("{} bytes, written {} times", data.len(), stat.version);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn get<'a>(&'a self, path: &'a str) -> Get<'a> {
        Get::new(self.target(), path)
    }

    /// Whether a node exists, and its [`Stat`](crate::Stat) if it does.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let (stat, mut changed) = zk.exists("/ready").watch().await?;
    /// if stat.is_none() {
    ///     changed.await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn exists<'a>(&'a self, path: &'a str) -> Exists<'a> {
        Exists::new(self.target(), path)
    }

    /// The names of a node's children, unordered, and the node's own [`Stat`](crate::Stat).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// let (mut names, parent) = zk.children("/jobs").await?;
    /// names.sort();
    /// assert_eq!(names.len() as i32, parent.num_children);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn children<'a>(&'a self, path: &'a str) -> Children<'a> {
        Children::new(self.target(), path)
    }

    /// Several reads in one request, answered from one state of the nodes; each succeeds or fails on its own. The
    /// results are in the order of the reads. Since 3.6.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// use zk_client::{ReadResult, Rejection};
    ///
    /// let results = zk.multi_read().get("/config").children("/jobs").get("/missing").await?;
    /// if let [Ok(ReadResult::Data(config, _)), Ok(ReadResult::Children(jobs)), missing] = &results[..] {
    ///     println!("{} bytes for {} jobs", config.len(), jobs.len());
    ///     assert_eq!(*missing, Err(Rejection::NoNode));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn multi_read(&self) -> MultiRead<'_> {
        MultiRead::new(self.target())
    }

    /// A node's access control list and its [`Stat`](crate::Stat), of which [`aversion`](crate::Stat::aversion) is the
    /// list's version. Servers mask digests if the session may not change the list.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::Error> {
    /// use zk_client::{Acl, AclList};
    ///
    /// let (_, stat) = zk.acl("/private").await?;
    /// let mine = AclList::from_iter([Acl::creator_all()]);
    /// zk.set_acl("/private", &mine).version(stat.aversion).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn acl<'a>(&'a self, path: &'a str) -> GetAcl<'a> {
        GetAcl::new(self.target(), path)
    }

    /// Replaces a node's access control list: see [`acl`](Self::acl). Fires no watch.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use zk_client::{Acl, AclList};
    ///
    /// let list = AclList::from_iter([Acl::world_readable()]);
    /// zk.set_acl("/announcements", &list).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_acl<'a>(&'a self, path: &'a str, acl: &AclList) -> SetAcl<'a> {
        SetAcl::new(self.target(), path, acl)
    }

    /// Waits until this server has caught up with what the leader had committed when asked. A read submitted after it,
    /// even before its reply, sees at least that state.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// // As fresh as possible: both are sent at once, in this order.
    /// let synced = zk.sync("/config").submit();
    /// let (config, _) = zk.get("/config").await?;
    /// synced.await?;
    /// # drop(config);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn sync<'a>(&'a self, path: &'a str) -> LeaderSync<'a> {
        LeaderSync::new(self.target(), path)
    }

    /// Creates a node; its kind is a [`CreateMode`](crate::CreateMode).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// use zk_client::CreateMode;
    ///
    /// let created = zk.create("/jobs/job-", b"work").mode(CreateMode::PersistentSequential).await?;
    /// println!("{} by transaction {}", created.path, created.stat.czxid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create<'a>(&'a self, path: &'a str, data: &'a [u8]) -> Create<'a> {
        Create::new(self, path, data)
    }

    /// Creates several ephemeral nodes together or not at all, even if replies are lost: each is a
    /// [protected](Create::protected) create of this client, all in one transaction.
    ///
    /// Resolves to the nodes in that order. As with [`multi`](Client::multi), a refusal is an [`Err`] inside of `Ok`
    /// with the index of the refused create. [`NoNode`](crate::Rejection::NoNode) means a missing parent or, if the
    /// reply was lost, a node that another client deleted before the session found it again; none of the others remains
    /// then.
    ///
    /// Only the transaction, the owner and the length of the nodes' [`Stat`](crate::Stat) are known.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use zk_client::CreateMode;
    ///
    /// let queues = ["/a/seat-", "/b/seat-"];
    /// let seat = |path| zk.create(path, b"").mode(CreateMode::EphemeralSequential).protected();
    /// let seats = zk.create_all_protected(queues.map(seat)).await??;
    /// // One transaction: both get the same zxid.
    /// assert_eq!(seats[0].stat().czxid, seats[1].stat().czxid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_all_protected<'a>(
        &'a self,
        creates: impl IntoIterator<Item = CreateProtected<'a>>,
    ) -> CreateAllProtected<'a> {
        CreateAllProtected::new(self, creates)
    }

    /// Replaces a node's data.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::Error> {
    /// let (data, stat) = zk.get("/counter").await?;
    /// let next = [&data[..], b"+1"].concat();
    /// // Only if no other client has written it in between.
    /// zk.set("/counter", &next).version(stat.version).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn set<'a>(&'a self, path: &'a str, data: &'a [u8]) -> Set<'a> {
        Set::new(self.target(), path, data)
    }

    /// Deletes a node without children.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// if !zk.delete("/jobs/1").if_exists().await? {
    ///     println!("it was gone already");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn delete<'a>(&'a self, path: &'a str) -> Delete<'a> {
        Delete::new(self.target(), path)
    }

    /// Deletes a node and everything below it, from the bottom up; not atomically.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::DeleteRecursiveError> {
    /// println!("{} nodes deleted", zk.delete_recursive("/jobs").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn delete_recursive<'a>(&'a self, path: &'a str) -> DeleteRecursive<'a> {
        DeleteRecursive::new(self.target(), path)
    }

    /// Several writes and checks, carried out together or not at all.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// let moved = zk.multi().check_version("/from", 3).delete("/from").set("/to", b"moved").await?;
    /// match moved {
    ///     Ok(results) => println!("{results:?}"),
    ///     Err(error) => println!("operation {} was refused: {}", error.index, error.rejection),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn multi(&self) -> Multi<'_> {
        Multi::new(self.target())
    }
}
