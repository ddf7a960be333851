//! Servers that have too much to do, and say so instead of doing what they are asked.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use bytes::{Buf as _, BufMut as _};
use zk_proto::{ErrorCode, Xid};
use zk_testkit::proxy::{Frame, Match, Proxy, RuleHandle};

/// Bytes of a request's number.
const LEN_XID: usize = 4;

/// Bytes of a reply's header in front of its error code.
const LEN_BEFORE_ERROR: usize = 12;

/// Requests that are turned away, as long as this lives.
#[derive(Debug)]
#[must_use = "dropping it has the server do what it is asked"]
pub struct Busy(RuleHandle);

/// Has the server behind a proxy with a single client be too busy for these requests: they are not carried out, and
/// answered in their turn as servers since 3.7 do.
pub fn too_busy_for(proxy: &Proxy, requests: Match) -> Busy {
    let turned_away = Arc::new(Mutex::new(BTreeSet::new()));
    let asked = turned_away.clone();
    let requests = proxy.on(requests).rewrite(move |request| {
        let number = request.as_slice().get_i32();
        asked.lock().unwrap().insert(Xid(number));
        ask_for_nothing(request);
    });
    let is_owed = move |frame: &Frame| {
        frame.xid.is_some_and(|xid| turned_away.lock().unwrap().contains(&xid))
    };
    let replies = proxy.on(Match::replies().when(is_owed));
    let replies = replies.rewrite(|reply| refuse_with(reply, ErrorCode::THROTTLED_OP));
    // What has been turned away has to be answered so, whatever is done with those that come later.
    std::mem::forget(replies);
    Busy(requests)
}

/// Rewrites a reply: the server refuses what it was asked.
pub fn refuse_with(reply: &mut Vec<u8>, code: ErrorCode) {
    reply.truncate(LEN_BEFORE_ERROR);
    reply.put_i32(code.0);
}

/// Rewrites a request, so that the server is asked something else, which keeps its turn: exists "/", unwatched.
pub fn ask_for_nothing(request: &mut Vec<u8>) {
    request.truncate(LEN_XID);
    request.extend([0, 0, 0, 3, 0, 0, 0, 1, b'/', 0]);
}

impl Busy {
    /// How many requests have been turned away.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.0.times_fired()
    }

    /// Waits until so many have been.
    pub async fn has_turned_away(&self, requests: u64) {
        self.0.fired_times(requests).await;
    }
}
