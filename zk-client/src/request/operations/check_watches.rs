//! Checks for watches and removes them, by path and kind.

use zk_proto::{
    ErrorCode, Str, WatcherType, frame::RequestFrame, path::Naming, request::CheckWatchesRequest,
    session::WatchBy,
};

use crate::{
    error::ReadError,
    request::{
        answer::{Unread, body},
        call_options::Admission,
        operations::builder::{awaitable, read_with},
        pending::Pending,
        target::Target,
    },
};

/// A kind of watches on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchKind {
    /// Those that fire once when the set of children changes.
    Children,
    /// Those that fire once when the node is created, written or deleted.
    Data,
    /// [`WatchMode::Node`](crate::WatchMode::Node).
    Node,
    /// [`WatchMode::Recursive`](crate::WatchMode::Recursive).
    Recursive,
    /// All of them.
    Any,
}

impl WatchKind {
    const fn on_wire(self) -> WatcherType {
        match self {
            Self::Children => WatcherType::CHILDREN,
            Self::Data => WatcherType::DATA,
            Self::Node => WatcherType::PERSISTENT,
            Self::Recursive => WatcherType::PERSISTENT_RECURSIVE,
            Self::Any => WatcherType::ANY,
        }
    }

    pub(crate) const fn armed_by(self) -> &'static [WatchBy] {
        match self {
            Self::Children => &[WatchBy::Children],
            Self::Data => &[WatchBy::Data],
            Self::Node => &[WatchBy::Persistent],
            Self::Recursive => &[WatchBy::Recursive],
            Self::Any => {
                &[WatchBy::Children, WatchBy::Data, WatchBy::Persistent, WatchBy::Recursive]
            }
        }
    }
}

awaitable! {
    CheckWatches: bool, ReadError;
}

/// Asks whether a server keeps a watch: see [`Client::check_watches`](crate::Client::check_watches).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct CheckWatches<'a> {
    target: Target<'a>,
    path: &'a str,
    kind: WatchKind,
}

impl<'a> CheckWatches<'a> {
    pub(crate) const fn new(target: Target<'a>, path: &'a str, kind: WatchKind) -> Self {
        Self { target, path, kind }
    }

    fn start(self, admission: Admission) -> Pending<bool, ReadError> {
        let kind = self.kind.on_wire();
        let frame = |path: Str<'_>| RequestFrame::of(&CheckWatchesRequest { path, kind });
        read_with(self.target, self.path, Naming::Exact, None, frame, admission, |answer, _| {
            match body(&answer) {
                Ok(()) => Ok(true),
                Err(Unread::Code(ErrorCode::NO_WATCHER)) => Ok(false),
                // The kind is the only part that servers may not know: the rest has the form of any request.
                Err(Unread::Code(ErrorCode::MARSHALLING_ERROR)) => {
                    Err(Unread::Code(ErrorCode::UNIMPLEMENTED))
                }
                Err(unread) => Err(unread),
            }
        })
    }
}
