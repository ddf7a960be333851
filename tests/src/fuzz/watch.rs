//! Watches: events, arming, restoring, removing; and what a session makes of an event.

use bytes::Bytes;
use zk_proto::{
    jute::decode_prefix,
    request::{
        AddWatchRequest, CheckWatchesRequest, RemoveWatchesRequest, SetWatches, SetWatches2,
        WatcherEvent,
    },
};

use super::{
    choice,
    decode::{holds_together, with_content},
};

/// A byte that chooses the record, and its bytes.
pub(super) fn watch(input: &[u8]) {
    let Some((which, content)) = choice::<6>(input) else { return };
    with_content(&content, |frame| match which {
        0 => frame.check::<(), WatcherEvent>(),
        1 => frame.check::<(), SetWatches>(),
        2 => frame.check::<(), SetWatches2>(),
        3 => frame.check::<(), AddWatchRequest<'_>>(),
        4 => frame.check::<(), CheckWatchesRequest<'_>>(),
        _ => frame.check::<(), RemoveWatchesRequest<'_>>(),
    });
    match which {
        1 => one_shot(&content),
        2 => all(&content),
        _ => {}
    }
}

fn one_shot(content: &Bytes) {
    if let Ok(set) = decode_prefix::<SetWatches>(content) {
        for paths in [&set.data_watches, &set.exist_watches, &set.child_watches] {
            holds_together(paths);
        }
    }
}

/// The older record is the beginning of the newer one.
fn all(content: &Bytes) {
    if let Ok(set) = decode_prefix::<SetWatches2>(content) {
        let older = decode_prefix::<SetWatches>(content).expect("it is the beginning");
        assert_eq!(
            (older.relative_zxid, &older.data_watches, &older.child_watches),
            (set.relative_zxid, &set.data_watches, &set.child_watches)
        );
        holds_together(&set.persistent_watches);
        holds_together(&set.persistent_recursive_watches);
    }
}
