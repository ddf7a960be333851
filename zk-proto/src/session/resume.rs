//! What precedes user traffic on a new connection, behind credentials: watches.

use super::watches::{Kind, Watcher, Watches};
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

/// Bytes that a path occupies besides its characters.
const PATH_OVERHEAD: usize = 4;

/// Bytes of such a frame besides its paths, without the length prefix: header, zxid, five counts.
const BATCH_OVERHEAD: usize = 8 + 8 + 5 * 4;

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
