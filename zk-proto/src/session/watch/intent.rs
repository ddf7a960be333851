//! The watches that requests ask for, and their watchers.

use alloc::sync::Arc;

use bytes::Buf as _;

use crate::{data::AddWatchMode, frame::RequestFrame, op::OpCode};

/// A watch to be armed by the answer to a request.
#[derive(Debug)]
pub struct WatchIntent<W> {
    /// The node, as the server knows it.
    pub path: Arc<str>,
    /// The request that arms it.
    pub by: WatchBy,
    /// Returned with each notice.
    pub watcher: W,
}

/// The requests that arm watches. They differ in when a watch is armed, and in how it is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchBy {
    /// `getData`: only if the node exists.
    Data,
    /// `exists`: whether or not the node exists.
    Exists,
    /// `getChildren`: only if the node exists.
    Children,
    /// `addWatch`, not recursive.
    Persistent,
    /// `addWatch`, recursive.
    Recursive,
}

impl WatchBy {
    pub(crate) const fn is_persistent(self) -> bool {
        matches!(self, Self::Persistent | Self::Recursive)
    }

    /// The watch that a request asks for, if any: in every read that can ask for one, the last byte is the flag.
    #[inline(always)]
    pub(crate) fn asked_by(frame: &RequestFrame) -> Option<Self> {
        let by = match frame.op() {
            OpCode::GET_DATA => Self::Data,
            OpCode::EXISTS => Self::Exists,
            OpCode::GET_CHILDREN | OpCode::GET_CHILDREN2 => Self::Children,
            OpCode::ADD_WATCH => {
                let mode = frame.body().last_chunk::<4>().map(|mode| mode.as_slice().get_i32());
                let is_recursive = mode == Some(AddWatchMode::PERSISTENT_RECURSIVE.0);
                return Some(if is_recursive { Self::Recursive } else { Self::Persistent });
            }
            _ => return None,
        };
        frame.body().last().is_some_and(|flag| *flag != 0).then_some(by)
    }
}
