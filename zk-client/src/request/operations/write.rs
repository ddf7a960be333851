//! Writes of existing nodes.

use zk_proto::{
    AclList, ErrorCode, Stat, Str,
    frame::RequestFrame,
    path::Naming,
    request::{DeleteRequest, SetAclRequest, SetAclResponse, SetDataRequest, SetDataResponse},
    session::OnLoss,
};

use super::builder::{awaitable, write};
use crate::{
    carry::version::expected,
    error::{CallError as _, WriteError},
    request::{
        answer::{ReadAnswer, Unread, body},
        call_options::Admission,
        pending::Pending,
        target::Target,
    },
};

awaitable! {
    Set: Stat, WriteError;
    SetAcl: Stat, WriteError;
    Delete: (), WriteError;
    DeleteIfExists: bool, WriteError;
}

/// Replaces a node's data; resolves to its [`Stat`] after the write.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Set<'a> {
    target: Target<'a>,
    path: &'a str,
    data: &'a [u8],
    version: Option<i32>,
}

impl<'a> Set<'a> {
    pub(crate) const fn new(target: Target<'a>, path: &'a str, data: &'a [u8]) -> Self {
        Self { target, path, data, version: None }
    }

    /// Requires that the data has this version; otherwise fails with [`BadVersion`](crate::Rejection::BadVersion). No
    /// data has version -1, which servers take as any: nothing is sent then, and the error is
    /// [`InvalidArgument`](crate::Cause::InvalidArgument).
    pub const fn version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    fn start(self, admission: Admission) -> Pending<Stat, WriteError> {
        let Self { target, path, data, version } = self;
        let frame = |path: Str<'_>, version| {
            target.frame(&SetDataRequest { path, data: Some(data), version })
        };
        versioned(target, (path, version), OnLoss::Report, frame, admission, |answer, _| {
            body(&answer).map(|SetDataResponse { stat }| stat)
        })
    }
}

/// Replaces a node's access control list: see [`Client::set_acl`](crate::Client::set_acl).
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct SetAcl<'a> {
    target: Target<'a>,
    path: &'a str,
    acl: AclList,
    version: Option<i32>,
}

impl<'a> SetAcl<'a> {
    pub(crate) fn new(target: Target<'a>, path: &'a str, acl: &AclList) -> Self {
        Self { target, path, acl: acl.clone(), version: None }
    }

    /// Requires that the list has this version ([`Stat::aversion`]); otherwise fails with
    /// [`BadVersion`](crate::Rejection::BadVersion). Nothing is sent for -1, as with [`Set::version`].
    pub const fn version(mut self, aversion: i32) -> Self {
        self.version = Some(aversion);
        self
    }

    fn start(self, admission: Admission) -> Pending<Stat, WriteError> {
        let Self { target, path, acl, version } = self;
        let frame = |path: Str<'_>, version| target.frame(&SetAclRequest { path, acl, version });
        versioned(target, (path, version), OnLoss::Report, frame, admission, |answer, _| {
            body(&answer).map(|SetAclResponse { stat }| stat)
        })
    }
}

/// Deletes a node without children.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Delete<'a> {
    target: Target<'a>,
    path: &'a str,
    version: Option<i32>,
}

impl<'a> Delete<'a> {
    pub(crate) const fn new(target: Target<'a>, path: &'a str) -> Self {
        Self { target, path, version: None }
    }

    /// Requires that the data has this version; otherwise fails with [`BadVersion`](crate::Rejection::BadVersion). No
    /// data has version -1, which servers take as any: nothing is sent then, and the error is
    /// [`InvalidArgument`](crate::Cause::InvalidArgument).
    pub const fn version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    /// Succeeds even if there is no such node: resolves to `false` then. In return it is never in doubt while the
    /// session lives: if the reply is lost, the delete is sent again.
    ///
    /// If another client creates the node again between the two, that node is deleted too, unless it has another
    /// [version](Self::version). And `false` may then mean that the first delete succeeded.
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
    pub const fn if_exists(self) -> DeleteIfExists<'a> {
        let Self { target, path, version } = self;
        DeleteIfExists { target, path, version }
    }

    fn start(self, admission: Admission) -> Pending<(), WriteError> {
        let Self { target, path, version } = self;
        let on_loss = OnLoss::Report;
        versioned(target, (path, version), on_loss, delete(target), admission, |answer, _| {
            body(&answer)
        })
    }
}

/// A [`Delete`] that succeeds if there is nothing to delete: see [`Delete::if_exists`].
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct DeleteIfExists<'a> {
    target: Target<'a>,
    path: &'a str,
    version: Option<i32>,
}

impl DeleteIfExists<'_> {
    fn start(self, admission: Admission) -> Pending<bool, WriteError> {
        let Self { target, path, version } = self;
        let on_loss = OnLoss::Resend;
        versioned(target, (path, version), on_loss, delete(target), admission, |answer, _| {
            match body(&answer) {
                Ok(()) => Ok(true),
                Err(Unread::Code(ErrorCode::NO_NODE)) => Ok(false),
                Err(unread) => Err(unread),
            }
        })
    }
}

fn delete(target: Target<'_>) -> impl FnOnce(Str<'_>, i32) -> RequestFrame {
    move |path, version| target.frame(&DeleteRequest { path, version })
}

/// Submits a write to a node, which requires a version if one is given.
fn versioned<T>(
    target: Target<'_>,
    (path, version): (&str, Option<i32>),
    on_loss: OnLoss,
    frame: impl FnOnce(Str<'_>, i32) -> RequestFrame,
    admission: Admission,
    read: ReadAnswer<T>,
) -> Pending<T, WriteError> {
    match expected(version) {
        Ok(version) => {
            let frame = |path: Str<'_>| (frame(path, version), None);
            write(target, (path, Naming::Exact), on_loss, frame, admission, read)
        }
        Err(cause) => Pending::failed(WriteError::not_sent(cause)),
    }
}
