//! What precedes user traffic on a new connection, behind credentials: watches.

use alloc::{sync::Arc, vec::Vec};

use super::watches::{Kind, Watcher, Watches};
use crate::{
    data::Zxid,
    frame::RequestFrame,
    list::List,
    request::{SetWatches, SetWatches2},
    text::Text,
};

/// Bytes of paths in one frame of watch restoration, as in the Java client: far below what servers
/// accept, so that ten thousand watches cannot make them drop the connection (ZOOKEEPER-706).
const BATCH_LEN_MAX: usize = 128 << 10;

/// Bytes that a path occupies besides its characters.
const PATH_OVERHEAD: usize = 4;

/// Bytes of such a frame besides its paths, without the length prefix: header, zxid, five counts.
const BATCH_OVERHEAD: usize = 8 + 8 + 5 * 4;

/// The frames that arm all watches again, in batches that fit into frames of `len_max` bytes.
///
/// A batch without persistent watches uses the operation that servers of all versions have.
pub(crate) fn set_watches<W: Watcher>(
    watches: &mut Watches<W>,
    since: Zxid,
    len_max: usize,
) -> Vec<RequestFrame> {
    let batch_len_max = BATCH_LEN_MAX.min(len_max.saturating_sub(BATCH_OVERHEAD));
    let mut frames = Vec::new();
    let mut batch = Batch::default();
    for (kind, path) in watches.list() {
        let len = path.len().saturating_add(PATH_OVERHEAD);
        let fits = batch.len.saturating_add(len) <= batch_len_max || planted!(RestoreNotSplit);
        if batch.len > 0 && !fits {
            frames.push(core::mem::take(&mut batch).frame(since));
        }
        batch.len = batch.len.saturating_add(len);
        batch.paths(kind).push(path.clone());
    }
    if batch.len > 0 {
        frames.push(batch.frame(since));
    }
    frames
}

#[derive(Default)]
struct Batch {
    len: usize,
    data: Vec<Arc<str>>,
    exist: Vec<Arc<str>>,
    child: Vec<Arc<str>>,
    persistent: Vec<Arc<str>>,
    recursive: Vec<Arc<str>>,
}

impl Batch {
    const fn paths(&mut self, kind: Kind) -> &mut Vec<Arc<str>> {
        match kind {
            Kind::Data => &mut self.data,
            Kind::Exist => &mut self.exist,
            Kind::Child => &mut self.child,
            Kind::Persistent => &mut self.persistent,
            Kind::Recursive => &mut self.recursive,
        }
    }

    fn frame(self, relative_zxid: Zxid) -> RequestFrame {
        fn list(paths: &[Arc<str>]) -> List<Text> {
            List::of_strs(paths.iter().map(|path| &**path))
        }
        let data_watches = list(&self.data);
        let exist_watches = list(&self.exist);
        let child_watches = list(&self.child);
        if self.persistent.is_empty() && self.recursive.is_empty() {
            let set = SetWatches { relative_zxid, data_watches, exist_watches, child_watches };
            return RequestFrame::of(&set);
        }
        let set = SetWatches2 {
            relative_zxid,
            data_watches,
            exist_watches,
            child_watches,
            persistent_watches: list(&self.persistent),
            persistent_recursive_watches: list(&self.recursive),
        };
        RequestFrame::of(&set)
    }
}
