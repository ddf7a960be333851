//! Writes of existing nodes.

use zk_proto::{
    AclList, ErrorCode, Stat,
    request::{SetAclResponse, SetDataResponse},
    session::OnLoss,
};

use super::{
    answer::{Unread, body},
    ask::Ask,
    builder::Request,
    client::Client,
};
use crate::error::WriteError;

impl Client {
    /// Replaces a node's data; resolves to its [`Stat`] after the write. Can [require a version](Request::version).
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
    pub const fn set<'a>(&'a self, path: &'a str, data: &'a [u8]) -> Request<'a, Stat, WriteError> {
        Request::new(self.target(), Ask::Set { path, data, version: None }, |answer| {
            body(answer).map(|SetDataResponse { stat }| stat)
        })
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
    pub fn set_acl<'a>(&'a self, path: &'a str, acl: &AclList) -> Request<'a, Stat, WriteError> {
        let ask = Ask::SetAcl { path, acl: Box::new(acl.clone()), version: None };
        Request::new(self.target(), ask, |answer| body(answer).map(|SetAclResponse { stat }| stat))
    }

    /// Deletes a node without children. Can [require a version](Request::version), and can succeed [even if there is no
    /// such node](Request::if_exists).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::WriteError> {
    /// if !zk.delete("/jobs/1").if_exists().await? {
    ///     println!("it was gone already");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn delete<'a>(&'a self, path: &'a str) -> Request<'a, (), WriteError> {
        let ask = Ask::Delete { path, version: None, on_loss: OnLoss::Report };
        Request::new(self.target(), ask, |answer| body(answer))
    }
}

impl Request<'_, Stat, WriteError> {
    /// Requires that what is replaced has this version, of the data ([`Stat::version`]) or of the access control list
    /// ([`Stat::aversion`]); otherwise fails with [`BadVersion`](crate::Rejection::BadVersion). Nothing has version -1,
    /// which servers take as any: nothing is sent then, and the error is
    /// [`InvalidArgument`](crate::Cause::InvalidArgument).
    pub fn version(mut self, required: i32) -> Self {
        if let Ask::Set { version, .. } | Ask::SetAcl { version, .. } = &mut self.ask {
            *version = Some(required);
        }
        self
    }
}

impl<'a> Request<'a, (), WriteError> {
    /// Requires that the data has this version; otherwise fails with [`BadVersion`](crate::Rejection::BadVersion). No
    /// data has version -1, which servers take as any: nothing is sent then, and the error is
    /// [`InvalidArgument`](crate::Cause::InvalidArgument).
    pub fn version(mut self, required: i32) -> Self {
        if let Ask::Delete { version, .. } = &mut self.ask {
            *version = Some(required);
        }
        self
    }

    /// Succeeds even if there is no such node: resolves to `false` then. In return it is never in doubt while the
    /// session lives, unless it fails fast or times out, or is turned away when it is sent again, by a server that is busy or
    /// takes no writes: if the reply is lost, the delete is sent again.
    ///
    /// Since 3.6 servers check the permission to delete the parent's children before they look for the node: without it the
    /// error is [`NoAuth`](crate::Rejection::NoAuth), even if there is none.
    ///
    /// If another client creates the node again between the two, that node is deleted too, unless it has another
    /// [version](Self::version). And `false`, or a refusal, may then mean that the first delete succeeded.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// assert!(!zk.delete("/jobs/1").if_exists().await?, "there was none");
    /// # Ok(())
    /// # }
    /// ```
    pub fn if_exists(mut self) -> Request<'a, bool, WriteError> {
        if let Ask::Delete { on_loss, .. } = &mut self.ask {
            *on_loss = OnLoss::Resend;
        }
        self.read_as(|answer| match body(answer) {
            Ok(()) => Ok(true),
            Err(Unread::Code(ErrorCode::NO_NODE)) => Ok(false),
            Err(unread) => Err(unread),
        })
    }
}
