//! The requests that restore watches: `SetWatches`, in batches.

use super::{kind::ByKind, registry::Registry, subscribers::Watcher};
use crate::{
    data::Zxid,
    frame::RequestFrame,
    list::Growing,
    request::{SetWatches, SetWatches2},
    text::Str,
};

/// Bytes of paths in one frame of watch restoration, as in the Java client: far below what servers
/// accept, so that ten thousand watches cannot make them drop the connection (ZOOKEEPER-706).
pub(crate) const BATCH_LEN_MAX: usize = 128 << 10;

/// Bytes that a path occupies besides its characters.
const PATH_OVERHEAD: usize = 4;

/// Bytes of such a frame besides its paths, without the length prefix: header, zxid, five counts.
const BATCH_OVERHEAD: usize = 8 + 8 + 5 * 4;

/// Makes the frames that arm all watches again, one at a time, in batches that fit into frames of `len_max` bytes.
///
/// A batch without persistent watches uses the operation that servers of all versions know.
pub(crate) fn set_watches<W: Watcher>(
    registry: &mut Registry<W>,
    since: Zxid,
    len_max: usize,
    mut send: impl FnMut(RequestFrame),
) {
    let batch_len_max = BATCH_LEN_MAX.min(len_max.saturating_sub(BATCH_OVERHEAD));
    let mut batch = Batch::default();
    registry.each(|kind, path| {
        let len = path.len().saturating_add(PATH_OVERHEAD);
        let fits = batch.len.saturating_add(len) <= batch_len_max;
        if batch.len > 0 && !fits {
            send(core::mem::take(&mut batch).frame(since));
        }
        batch.len = batch.len.saturating_add(len);
        batch.paths.of_mut(kind).push(&Str::from(path));
    });
    if batch.len > 0 {
        send(batch.frame(since));
    }
}

/// Paths, encoded in the order of iteration: each is read once, wherever it is in memory.
#[derive(Default)]
struct Batch {
    len: usize,
    paths: ByKind<Growing>,
}

impl Batch {
    fn frame(self, relative_zxid: Zxid) -> RequestFrame {
        let ByKind { data, exist, child, persistent, recursive } = self.paths;
        let is_persistent = !(persistent.is_empty() && recursive.is_empty());
        let data_watches = data.grown();
        let exist_watches = exist.grown();
        let child_watches = child.grown();
        if !is_persistent {
            let set = SetWatches { relative_zxid, data_watches, exist_watches, child_watches };
            return RequestFrame::of(&set);
        }
        let set = SetWatches2 {
            relative_zxid,
            data_watches,
            exist_watches,
            child_watches,
            persistent_watches: persistent.grown(),
            persistent_recursive_watches: recursive.grown(),
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
        session::watch::kind::Kind,
    };

    /// The request in a frame of restoration.
    fn told<R: Request + for<'a> Decode<'a>>(frame: &RequestFrame) -> R {
        assert_eq!(frame.op(), R::OP);
        let mut out = BytesMut::new();
        frame.write(Xid::FIRST, &mut out);
        decode_exact(&out.split_off(LEN_PREFIX + RequestHeader::LEN_MIN).freeze()).unwrap()
    }

    fn frames(registry: &mut Registry<()>) -> Vec<RequestFrame> {
        let mut frames = Vec::new();
        set_watches(registry, Zxid(7), usize::MAX, |frame| frames.push(frame));
        frames
    }

    #[test]
    fn each_path_is_listed_once_by_its_kind() {
        let mut registry = Registry::default();
        for (kind, path) in [
            (Kind::Child, "/c"),
            (Kind::Data, "/d2"),
            (Kind::Data, "/d1"),
            (Kind::Data, "/d1"),
            (Kind::Exist, "/e"),
        ] {
            registry.register(kind, path.into(), ());
        }
        let paths = |list: List<Text>| list.strs().map(String::from).collect::<Vec<_>>();
        let [frame] = &frames(&mut registry)[..] else { panic!("one frame") };
        let set: SetWatches = told(frame);
        assert_eq!(set.relative_zxid, Zxid(7));
        assert_eq!(paths(set.data_watches), ["/d1", "/d2"]);
        assert_eq!(paths(set.exist_watches), ["/e"]);
        assert_eq!(paths(set.child_watches), ["/c"]);

        registry.register(Kind::Recursive, "/r".into(), ());
        registry.register(Kind::Persistent, "/p".into(), ());
        let [frame] = &frames(&mut registry)[..] else { panic!("one frame") };
        let set: SetWatches2 = told(frame);
        assert_eq!(paths(set.data_watches), ["/d1", "/d2"]);
        assert_eq!(paths(set.persistent_watches), ["/p"]);
        assert_eq!(paths(set.persistent_recursive_watches), ["/r"]);
    }
}
