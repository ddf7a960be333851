//! Several reads in one request.

use bytes::Bytes;
use zk_proto::{
    Stat, Str,
    path::Naming,
    request::{
        GetChildrenRequest, GetChildrenResponse, GetDataRequest, GetDataResponse, MultiOp,
        MultiReadRequest, MultiRequest, MultiResponse, MultiResult,
    },
    session::OnLoss,
};

use super::builder::awaitable;
use crate::{
    error::{CallError as _, Cause, ReadError, Rejection},
    request::{
        answer::{Unread, body, detached},
        asked::{Asked, Part},
        call::Call,
        call_options::Admission,
        pending::Pending,
        target::Target,
    },
};

awaitable! {
    MultiRead: Vec<Result<ReadResult, Rejection>>, ReadError;
}

/// Collects reads that are carried out together: see [`Client::multi_read`](crate::Client::multi_read).
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct MultiRead<'a> {
    target: Target<'a>,
    reads: Vec<Read<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Read<'a> {
    Data(&'a str),
    Children(&'a str),
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

impl<'a> MultiRead<'a> {
    pub(crate) const fn new(target: Target<'a>) -> Self {
        Self { target, reads: Vec::new() }
    }

    /// Also reads a node's data.
    pub fn get(mut self, path: &'a str) -> Self {
        self.reads.push(Read::Data(path));
        self
    }

    /// Also lists a node's children.
    pub fn children(mut self, path: &'a str) -> Self {
        self.reads.push(Read::Children(path));
        self
    }

    fn start(self, admission: Admission) -> Pending<Vec<Result<ReadResult, Rejection>>, ReadError> {
        let frame = match self.encode() {
            Ok(reads) => self.target.frame(&MultiReadRequest(reads)),
            Err(cause) => return Pending::failed(ReadError::not_sent(cause)),
        };
        let call = Call {
            frame,
            on_loss: OnLoss::Resend,
            watch: None,
            instead: None,
            read: |answer, context| {
                let results: MultiResponse = body(&answer)?;
                context.asked.results(&results).map(|result| read_result(result?)).collect()
            },
        };
        let part = |read: &Read<'_>| match read {
            Read::Data(_) => Part::Data,
            Read::Children(_) => Part::Children,
        };
        let asked = Asked::several(self.reads.iter().map(part));
        self.target.call_asking(call, asked, admission)
    }

    fn encode(&self) -> Result<MultiRequest, Cause> {
        let resolve = |read: &Read<'a>| {
            let (Read::Data(path) | Read::Children(path)) = *read;
            self.target.handle.chroot.resolve(path, Naming::Exact)
        };
        let paths = self.reads.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        let ops = self.reads.iter().zip(&paths).map(|(read, path)| {
            let path = Str::from(&**path);
            match read {
                Read::Data(_) => MultiOp::GetData(GetDataRequest { path, watch: false }),
                Read::Children(_) => {
                    MultiOp::GetChildren(GetChildrenRequest { path, watch: false })
                }
            }
        });
        Ok(ops.collect())
    }
}

fn read_result(result: MultiResult) -> Result<Result<ReadResult, Rejection>, Unread> {
    match result {
        MultiResult::GetData(GetDataResponse { data, stat }) => {
            let data = data.unwrap_or_default();
            Ok(Ok(ReadResult::Data(detached(&data, &data), stat)))
        }
        MultiResult::GetChildren(GetChildrenResponse { children }) => {
            Ok(Ok(ReadResult::Children(children.strs().map(Into::into).collect())))
        }
        MultiResult::Error(code) => Ok(Err(code.into())),
        _ => Err(Unread::Mismatch("a result of no operation")),
    }
}
