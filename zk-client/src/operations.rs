//! Builders of the plain operations: reads, `set`, `delete`, `sync`.

use std::future::IntoFuture;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, Stat, Str, Zxid,
    frame::RequestFrame,
    path::Naming,
    request::{
        DeleteRequest, ExistsRequest, ExistsResponse, GetChildren2Request, GetChildren2Response,
        GetDataRequest, GetDataResponse, SetDataRequest, SetDataResponse, SyncRequest,
        SyncResponse,
    },
    session::{Answer, OnLoss, WatchBy},
};

use crate::{
    call::{Call, CallError as _, Handle, Pending, ReadAnswer, Unread, body},
    error::{Cause, ReadError, WriteError},
    watch::Watch,
};

/// Lets a builder be awaited: it is submitted then.
macro_rules! awaitable {
    ($($builder:ident: $output:ty, $error:ty;)*) => {$(
        impl IntoFuture for $builder<'_> {
            type Output = Result<$output, $error>;
            type IntoFuture = Pending<$output, $error>;
            fn into_future(self) -> Self::IntoFuture {
                self.submit()
            }
        }
    )*};
}
pub(crate) use awaitable;

awaitable! {
    Get: (Bytes, Stat), ReadError;
    GetWatched: ((Bytes, Stat), Watch), ReadError;
    Exists: Option<Stat>, ReadError;
    ExistsWatched: (Option<Stat>, Watch), ReadError;
    Children: (Vec<String>, Stat), ReadError;
    ChildrenWatched: ((Vec<String>, Stat), Watch), ReadError;
    Sync: (), ReadError;
    Set: Stat, WriteError;
    Delete: (), WriteError;
}

/// Declares a read and its watched twin.
macro_rules! read {
    ($(#[$doc:meta])* $plain:ident, $watched:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[must_use = "nothing happens until it is awaited or submitted"]
        pub struct $plain<'a> {
            handle: &'a Handle,
            path: &'a str,
        }

        #[doc = concat!("A [`", stringify!($plain), "`] that also arms a watch.")]
        #[derive(Clone, Copy, Debug)]
        #[must_use = "nothing happens until it is awaited or submitted"]
        pub struct $watched<'a>($plain<'a>);

        impl<'a> $plain<'a> {
            pub(crate) const fn new(handle: &'a Handle, path: &'a str) -> Self {
                Self { handle, path }
            }

            /// Also arms a watch, in the same step on the server: no change falls in between.
            pub const fn watch(self) -> $watched<'a> {
                $watched(self)
            }
        }
    };
}

read! {
    /// Reads a node's data: resolves to the data and the node's [`Stat`].
    ///
    /// The data of a node that was created with null reads as empty. A watch fires when the data is written
    /// or the node deleted; none is armed if there is no such node.
    Get, GetWatched
}

read! {
    /// Whether a node exists: resolves to its [`Stat`] if it does.
    ///
    /// A watch is armed either way; it fires when the node is created, written or deleted.
    Exists, ExistsWatched
}

read! {
    /// The names (not paths) of a node's children, in no order, and the node's own [`Stat`].
    ///
    /// A watch fires when a child is created or deleted, or the node itself is deleted.
    Children, ChildrenWatched
}

/// What a watched read must have: `call` made the watch when it submitted the request.
fn armed<T>(result: T, watch: Option<Watch>) -> Result<(T, Watch), Unread> {
    watch.map(|watch| (result, watch)).ok_or(Unread::Code(ErrorCode::NO_WATCHER))
}

fn read_data(answer: &Answer) -> Result<(Bytes, Stat), Unread> {
    let GetDataResponse { data, stat } = body(answer)?;
    Ok((detached(data.unwrap_or_default()), stat))
}

/// Data up to this long is copied out of the buffer that it was read into, which it would otherwise keep
/// from being reused.
const COPY_LEN_MAX: usize = 4 << 10;

fn detached(data: Bytes) -> Bytes {
    if data.len() <= COPY_LEN_MAX { Bytes::copy_from_slice(&data) } else { data }
}

fn read_exists(answer: &Answer) -> Result<Option<Stat>, Unread> {
    match body::<ExistsResponse>(answer) {
        Ok(ExistsResponse { stat }) => Ok(Some(stat)),
        Err(Unread::Code(ErrorCode::NO_NODE)) => Ok(None),
        Err(unread) => Err(unread),
    }
}

fn read_children(answer: &Answer) -> Result<(Vec<String>, Stat), Unread> {
    let GetChildren2Response { children, stat } = body(answer)?;
    Ok((children.strs().map(Into::into).collect(), stat))
}

impl Get<'_> {
    /// Submits the read now.
    pub fn submit(self) -> Pending<(Bytes, Stat), ReadError> {
        let frame = |path: Str<'_>| RequestFrame::of(&GetDataRequest { path, watch: false });
        read(self.handle, self.path, None, frame, |answer, _| read_data(&answer))
    }
}

impl GetWatched<'_> {
    /// Submits the read now.
    pub fn submit(self) -> Pending<((Bytes, Stat), Watch), ReadError> {
        let Get { handle, path } = self.0;
        let frame = |path: Str<'_>| RequestFrame::of(&GetDataRequest { path, watch: true });
        read(handle, path, Some(WatchBy::Data), frame, |answer, context| {
            armed(read_data(&answer)?, context.watch)
        })
    }
}

impl Exists<'_> {
    /// Submits the read now.
    pub fn submit(self) -> Pending<Option<Stat>, ReadError> {
        let frame = |path: Str<'_>| RequestFrame::of(&ExistsRequest { path, watch: false });
        read(self.handle, self.path, None, frame, |answer, _| read_exists(&answer))
    }
}

impl ExistsWatched<'_> {
    /// Submits the read now.
    pub fn submit(self) -> Pending<(Option<Stat>, Watch), ReadError> {
        let Exists { handle, path } = self.0;
        let frame = |path: Str<'_>| RequestFrame::of(&ExistsRequest { path, watch: true });
        read(handle, path, Some(WatchBy::Exists), frame, |answer, context| {
            armed(read_exists(&answer)?, context.watch)
        })
    }
}

impl Children<'_> {
    /// Submits the read now.
    pub fn submit(self) -> Pending<(Vec<String>, Stat), ReadError> {
        let frame = |path: Str<'_>| RequestFrame::of(&GetChildren2Request { path, watch: false });
        read(self.handle, self.path, None, frame, |answer, _| read_children(&answer))
    }
}

impl ChildrenWatched<'_> {
    /// Submits the read now.
    pub fn submit(self) -> Pending<((Vec<String>, Stat), Watch), ReadError> {
        let Children { handle, path } = self.0;
        let frame = |path: Str<'_>| RequestFrame::of(&GetChildren2Request { path, watch: true });
        read(handle, path, Some(WatchBy::Children), frame, |answer, context| {
            armed(read_children(&answer)?, context.watch)
        })
    }
}

/// Waits until this server has caught up with the leader: see [`Client::sync`](crate::Client::sync).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Sync<'a> {
    handle: &'a Handle,
    path: &'a str,
}

impl<'a> Sync<'a> {
    pub(crate) const fn new(handle: &'a Handle, path: &'a str) -> Self {
        Self { handle, path }
    }

    /// Submits the sync now.
    pub fn submit(self) -> Pending<(), ReadError> {
        self.submit_as(|answer, _| body::<SyncResponse>(&answer).map(drop))
    }

    /// Submits the sync now; resolves to the transaction that the server has caught up with.
    pub(crate) fn submit_for_zxid(self) -> Pending<Zxid, ReadError> {
        self.submit_as(|answer, _| body::<SyncResponse>(&answer).map(|_| answer.zxid))
    }

    fn submit_as<T>(self, read_answer: ReadAnswer<T>) -> Pending<T, ReadError> {
        let frame = |path: Str<'_>| RequestFrame::of(&SyncRequest { path });
        read(self.handle, self.path, None, frame, read_answer)
    }
}

/// Replaces a node's data; resolves to its [`Stat`] after the write.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Set<'a> {
    handle: &'a Handle,
    path: &'a str,
    data: &'a [u8],
    version: Option<i32>,
}

impl<'a> Set<'a> {
    pub(crate) const fn new(handle: &'a Handle, path: &'a str, data: &'a [u8]) -> Self {
        Self { handle, path, data, version: None }
    }

    /// Only if the data has this version; otherwise [`BadVersion`](crate::Rejection::BadVersion). No data has
    /// version -1, by which servers understand any: nothing is sent then, and the error is
    /// [`InvalidArgument`](crate::Cause::InvalidArgument).
    pub const fn version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    /// Submits the write now.
    pub fn submit(self) -> Pending<Stat, WriteError> {
        let Self { handle, path, data, version } = self;
        let version = match expected(version) {
            Ok(version) => version,
            Err(cause) => return Pending::failed(WriteError::not_sent(cause)),
        };
        let frame =
            |path: Str<'_>| RequestFrame::of(&SetDataRequest { path, data: Some(data), version });
        write(handle, path, Naming::Exact, frame, |answer, _| {
            body(&answer).map(|SetDataResponse { stat }| stat)
        })
    }
}

/// Deletes a node without children.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Delete<'a> {
    handle: &'a Handle,
    path: &'a str,
    version: Option<i32>,
}

impl<'a> Delete<'a> {
    pub(crate) const fn new(handle: &'a Handle, path: &'a str) -> Self {
        Self { handle, path, version: None }
    }

    /// Only if the data has this version; otherwise [`BadVersion`](crate::Rejection::BadVersion). No data has
    /// version -1, by which servers understand any: nothing is sent then, and the error is
    /// [`InvalidArgument`](crate::Cause::InvalidArgument).
    pub const fn version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    /// Submits the delete now.
    pub fn submit(self) -> Pending<(), WriteError> {
        let Self { handle, path, version } = self;
        let version = match expected(version) {
            Ok(version) => version,
            Err(cause) => return Pending::failed(WriteError::not_sent(cause)),
        };
        let frame = |path: Str<'_>| RequestFrame::of(&DeleteRequest { path, version });
        write(handle, path, Naming::Exact, frame, |answer, _| body(&answer))
    }
}

/// What servers take for "whatever the version is".
pub(crate) const ANY_VERSION: i32 = -1;

/// The version to send, if one was asked for: one that was computed may happen to be what servers take for any.
pub(crate) const fn expected(version: Option<i32>) -> Result<i32, Cause> {
    match version {
        None => Ok(ANY_VERSION),
        Some(ANY_VERSION) => Err(Cause::InvalidArgument("version -1 would stand for any")),
        Some(version) => Ok(version),
    }
}

/// Submits a read. Reads are sent again if their connection is lost before the answer.
fn read<T>(
    handle: &Handle,
    path: &str,
    watch: Option<WatchBy>,
    frame: impl FnOnce(Str<'_>) -> RequestFrame,
    read: ReadAnswer<T>,
) -> Pending<T, ReadError> {
    match handle.chroot.resolve(path, Naming::Exact) {
        Ok(path) => {
            let frame = frame(Str::from(&*path));
            let watch = watch.map(|by| (&*path, by));
            handle.call(Call { frame, on_loss: OnLoss::Resend, watch, read })
        }
        Err(error) => Pending::failed(ReadError::not_sent(Cause::InvalidPath(error))),
    }
}

/// Submits a write. Writes are never sent twice.
pub(crate) fn write<T>(
    handle: &Handle,
    path: &str,
    naming: Naming,
    frame: impl FnOnce(Str<'_>) -> RequestFrame,
    read: ReadAnswer<T>,
) -> Pending<T, WriteError> {
    match handle.chroot.resolve(path, naming) {
        Ok(path) => {
            let frame = frame(Str::from(&*path));
            handle.call(Call { frame, on_loss: OnLoss::Report, watch: None, read })
        }
        Err(error) => Pending::failed(WriteError::not_sent(Cause::InvalidPath(error))),
    }
}
