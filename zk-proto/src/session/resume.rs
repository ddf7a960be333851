//! What precedes user traffic on a new connection, behind credentials: watches.

use super::{
    fault::LinkError,
    phase::Phase,
    state::Session,
    watches::{Kind, Watcher, Watches},
};
use crate::{
    data::Zxid,
    frame::RequestFrame,
    list::Growing,
    request::{SetWatches, SetWatches2},
    text::Str,
};

/// Bytes of paths in one frame of watch restoration, as in the Java client: far below what servers
/// accept, so that ten thousand watches cannot make them drop the connection (ZOOKEEPER-706).
const BATCH_LEN_MAX: usize = 128 << 10;

/// Such batches are not made smaller: no server is known to be set to less.
const BATCH_LEN_MIN: usize = 4 << 10;

/// Bytes that a path occupies besides its characters.
const PATH_OVERHEAD: usize = 4;

/// Bytes of such a frame besides its paths, without the length prefix: header, zxid, five counts.
const BATCH_OVERHEAD: usize = 8 + 8 + 5 * 4;

impl<R, W: Watcher> Session<R, W> {
    /// A connection is gone. If a server has ended it when it was told of watches, and had not taken any batch of them,
    /// that may have been too much at once (`jute.maxbuffer`): the next one is told in batches half as long.
    pub(super) fn shorten_batches(&mut self, why: &LinkError) {
        let restoring = matches!(self.phase, Phase::Up(up) if up.restoring > 0);
        let is_ended = matches!(why, LinkError::Closed | LinkError::Reset);
        if restoring && is_ended && !self.link.has_restored {
            let longest = self.batch_len_max.min(BATCH_LEN_MAX);
            let half = longest.checked_div(2).unwrap_or_default();
            self.batch_len_max = half.max(BATCH_LEN_MIN.min(longest));
        }
    }
}

/// Makes the frames that arm all watches again, one at a time, in batches that fit into frames of `len_max` bytes.
///
/// A batch without persistent watches uses the operation that servers of all versions have.
pub(crate) fn set_watches<W: Watcher>(
    watches: &mut Watches<W>,
    since: Zxid,
    len_max: usize,
    mut send: impl FnMut(RequestFrame),
) {
    let batch_len_max = BATCH_LEN_MAX.min(len_max.saturating_sub(BATCH_OVERHEAD));
    let mut batch = Batch::default();
    watches.each(|kind, path| {
        let len = path.len().saturating_add(PATH_OVERHEAD);
        let fits = batch.len.saturating_add(len) <= batch_len_max || planted!(RestoreNotSplit);
        if batch.len > 0 && !fits {
            send(core::mem::take(&mut batch).frame(since));
        }
        batch.len = batch.len.saturating_add(len);
        batch.paths(kind).push(&Str::from(path));
    });
    if batch.len > 0 {
        send(batch.frame(since));
    }
}

/// Paths, encoded as they come: each is looked at once, wherever it is in memory.
#[derive(Default)]
struct Batch {
    len: usize,
    data: Growing,
    exist: Growing,
    child: Growing,
    persistent: Growing,
    recursive: Growing,
}

impl Batch {
    const fn paths(&mut self, kind: Kind) -> &mut Growing {
        match kind {
            Kind::Data => &mut self.data,
            Kind::Exist => &mut self.exist,
            Kind::Child => &mut self.child,
            Kind::Persistent => &mut self.persistent,
            Kind::Recursive => &mut self.recursive,
        }
    }

    fn frame(self, relative_zxid: Zxid) -> RequestFrame {
        let is_persistent = !(self.persistent.is_empty() && self.recursive.is_empty());
        let data_watches = self.data.grown();
        let exist_watches = self.exist.grown();
        let child_watches = self.child.grown();
        if !is_persistent {
            let set = SetWatches { relative_zxid, data_watches, exist_watches, child_watches };
            return RequestFrame::of(&set);
        }
        let set = SetWatches2 {
            relative_zxid,
            data_watches,
            exist_watches,
            child_watches,
            persistent_watches: self.persistent.grown(),
            persistent_recursive_watches: self.recursive.grown(),
        };
        RequestFrame::of(&set)
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec::Vec};

    use bytes::BytesMut;

    use super::*;
    use crate::{
        List, Request, Text, Xid,
        frame::{LEN_PREFIX, RequestHeader},
        jute::{Decode, decode_exact},
    };

    /// What a request of that type is told by a frame of restoration.
    fn told<R: Request + for<'a> Decode<'a>>(frame: &RequestFrame) -> R {
        assert_eq!(frame.op(), R::OP);
        let mut out = BytesMut::new();
        frame.write(Xid::FIRST, &mut out);
        decode_exact(&out.split_off(LEN_PREFIX + RequestHeader::LEN_MIN).freeze()).unwrap()
    }

    fn frames(watches: &mut Watches<()>) -> Vec<RequestFrame> {
        let mut frames = Vec::new();
        set_watches(watches, Zxid(7), usize::MAX, |frame| frames.push(frame));
        frames
    }

    #[test]
    fn each_path_is_told_once_as_what_it_is_watched_for() {
        let mut watches = Watches::new();
        for (kind, path) in [
            (Kind::Child, "/c"),
            (Kind::Data, "/d2"),
            (Kind::Data, "/d1"),
            (Kind::Data, "/d1"),
            (Kind::Exist, "/e"),
        ] {
            watches.arm(kind, path.into(), ());
        }
        let paths = |list: List<Text>| list.strs().map(String::from).collect::<Vec<_>>();
        let [frame] = &frames(&mut watches)[..] else { panic!("one frame") };
        let set: SetWatches = told(frame);
        assert_eq!(set.relative_zxid, Zxid(7));
        assert_eq!(paths(set.data_watches), ["/d1", "/d2"]);
        assert_eq!(paths(set.exist_watches), ["/e"]);
        assert_eq!(paths(set.child_watches), ["/c"]);

        watches.arm(Kind::Recursive, "/r".into(), ());
        watches.arm(Kind::Persistent, "/p".into(), ());
        let [frame] = &frames(&mut watches)[..] else { panic!("one frame") };
        let set: SetWatches2 = told(frame);
        assert_eq!(paths(set.data_watches), ["/d1", "/d2"]);
        assert_eq!(paths(set.persistent_watches), ["/p"]);
        assert_eq!(paths(set.persistent_recursive_watches), ["/r"]);
    }
}
