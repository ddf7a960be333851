//! Several operations in one request: writes that happen together or not at all, and reads of one state.

use bytes::Bytes;
use zk_proto::{
    AclList, ErrorCode, Stat,
    request::{
        Create2Response, CreateResponse, GetChildrenResponse, GetDataResponse, MultiResponse,
        MultiResult, SetDataResponse,
    },
    session::Answer,
};

use super::{
    answer::{ReplyContext, Unresolved, body, detached},
    ask::Ask,
    asked::{Mismatch, results as results_of},
    builder::Request,
    client::Client,
    create::CreateMode,
    ops::{Op, Ops},
};
use crate::error::{MultiError, ReadError, Rejection, WriteError, failed};

/// What a transaction resolves to.
type Outcome = Result<Vec<OpResult>, MultiError>;

/// The result of one operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpResult {
    /// A node was created. Servers before 3.7.2, 3.8.2 and 3.9.0 do not return its [`Stat`].
    Created {
        /// Its path, with its sequence number, relative to the client's chroot.
        path: String,
        /// Its metadata at creation.
        stat: Option<Stat>,
    },
    /// Data was written.
    Set(Stat),
    /// A node was deleted.
    Deleted,
    /// A version was as expected.
    Checked,
}

/// The result of one of several reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadResult {
    /// A node's data and its metadata.
    Data(Bytes, Stat),
    /// The names of a node's children, in no order.
    Children(Vec<String>),
}

impl Client {
    /// Several writes and checks, carried out together or not at all. Resolves to their results, in order.
    ///
    /// A failed transaction resolves to [`Err`] inside of `Ok`: a server has answered, and nothing was written. An empty
    /// one succeeds. One with an operation that the server does not support, such as the creation of a container before
    /// 3.5, is refused as a whole with [`Unimplemented`](crate::Rejection::Unimplemented). One that requires version
    /// -1, which servers take as any, is not sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::{CreateMode, MultiError, Rejection};
    ///
    /// zk.create("/inbox", b"a job").await?;
    /// let moved = zk
    ///     .multi()
    ///     .check_version("/inbox", 0)
    ///     .create("/done", b"a job", CreateMode::Persistent)
    ///     .delete("/inbox");
    /// assert_eq!(moved.clone().await?.map(|results| results.len()), Ok(3));
    /// // All or nothing: it no longer exists.
    /// assert_eq!(moved.await?, Err(MultiError { index: 0, rejection: Rejection::NoNode }));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn multi(&self) -> Request<'_, Outcome, WriteError> {
        Request::in_context(self.target(), Ask::Several(Ops::Writes(Vec::new())), read)
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
    pub const fn multi_read(&self) -> Request<'_, Vec<Result<ReadResult, Rejection>>, ReadError> {
        let ask = Ask::Several(Ops::Reads(Vec::new()));
        Request::in_context(self.target(), ask, |answer, context| {
            let results: MultiResponse = body(&answer)?;
            results_of(&context.asked, &results).map(|result| Ok(read_result(result?)?)).collect()
        })
    }
}

impl<'a, T, E> Request<'a, T, E> {
    #[inline(always)]
    fn with(mut self, op: Op<'a>) -> Self {
        if let Ask::Several(ops) = &mut self.ask {
            ops.push(op);
        }
        self
    }
}

impl<'a> Request<'a, Vec<Result<ReadResult, Rejection>>, ReadError> {
    /// Also reads a node's data.
    pub fn get(self, path: &'a str) -> Self {
        self.with(Op::Data { path })
    }

    /// Also lists a node's children.
    pub fn children(self, path: &'a str) -> Self {
        self.with(Op::Children { path })
    }
}

impl<'a> Request<'a, Outcome, WriteError> {
    /// Uses the options that the client was [given](crate::Client::with) before it was made
    /// [patient](crate::Client::patient): for transactions that a patient client lends to its caller.
    pub fn as_told(mut self) -> Self {
        self.target.options = self.target.handle.told;
        self
    }

    /// Creates a node with the [connection's](crate::ConnectOptions::default_acl) access control list.
    pub fn create(self, path: &'a str, data: &'a [u8], mode: CreateMode) -> Self {
        self.with(Op::Create { path, data, mode, acl: None })
    }

    /// Creates a node with this access control list.
    pub fn create_with_acl(
        self,
        path: &'a str,
        data: &'a [u8],
        mode: CreateMode,
        acl: &AclList,
    ) -> Self {
        self.with(Op::Create { path, data, mode, acl: Some(Box::new(acl.clone())) })
    }

    /// Replaces a node's data.
    pub fn set(self, path: &'a str, data: &'a [u8]) -> Self {
        self.with(Op::Set { path, data, version: None })
    }

    /// Replaces a node's data if it has this version.
    pub fn set_version(self, path: &'a str, data: &'a [u8], version: i32) -> Self {
        self.with(Op::Set { path, data, version: Some(version) })
    }

    /// Deletes a node.
    pub fn delete(self, path: &'a str) -> Self {
        self.with(Op::Delete { path, version: None })
    }

    /// Deletes a node if its data has this version.
    pub fn delete_version(self, path: &'a str, version: i32) -> Self {
        self.with(Op::Delete { path, version: Some(version) })
    }

    /// Requires that a node exists.
    pub fn check(self, path: &'a str) -> Self {
        self.with(Op::Check { path, version: None })
    }

    /// Requires that a node exists and that its data has this version.
    pub fn check_version(self, path: &'a str, version: i32) -> Self {
        self.with(Op::Check { path, version: Some(version) })
    }
}

fn read_result(result: MultiResult) -> Result<Result<ReadResult, Rejection>, Mismatch> {
    match result {
        MultiResult::GetData(GetDataResponse { data, stat }) => {
            let data = data.unwrap_or_default();
            Ok(Ok(ReadResult::Data(detached(&data, &data), stat)))
        }
        MultiResult::GetChildren(GetChildrenResponse { children }) => {
            Ok(Ok(ReadResult::Children(children.strs().map(Into::into).collect())))
        }
        MultiResult::Error(code) => Ok(Err(code.into())),
        _ => Err(Mismatch("a result of no operation")),
    }
}

/// Reads the results. The header of a failed transaction carries no error; the results do: 0 before the operation that
/// failed, and "runtime inconsistency" after it.
fn read(answer: Answer, context: Box<ReplyContext>) -> Result<Outcome, Unresolved> {
    // Servers before 3.5 cannot parse unknown operations inside of a transaction.
    if answer.code == ErrorCode::MARSHALLING_ERROR {
        return Err(context.unknown_operation());
    }
    // What is in a transaction, only this shows.
    if let Some(instead) = context.instead.as_ref().filter(|_| answer.code.is_ok()) {
        instead.was_needless();
    }
    let response: MultiResponse = body(&answer)?;
    let relative = |path: &zk_proto::Text| context.chroot.relative(&path.lossy()).to_owned();
    let mut stopped = None;
    let mut results = Vec::with_capacity(context.asked.len());
    for (index, result) in results_of(&context.asked, &response).enumerate() {
        results.push(match result? {
            MultiResult::Create(CreateResponse { path }) => {
                OpResult::Created { path: relative(&path), stat: None }
            }
            MultiResult::Create2(Create2Response { path, stat }) => {
                OpResult::Created { path: relative(&path), stat: Some(stat) }
            }
            MultiResult::SetData(SetDataResponse { stat }) => OpResult::Set(stat),
            MultiResult::Delete => OpResult::Deleted,
            MultiResult::Check => OpResult::Checked,
            MultiResult::Error(code) => {
                stopped = stopped.or_else(|| failed(index, code));
                continue;
            }
            _ => return Err(Mismatch("a result of no operation").into()),
        });
    }
    match stopped {
        Some(failure) => Ok(Err(failure)),
        None if results.len() < context.asked.len() => {
            Err(Mismatch("operations that were not carried out, and no reason").into())
        }
        None => Ok(Ok(results)),
    }
}
