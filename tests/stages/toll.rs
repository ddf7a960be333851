//! Which requests are refused, or whose answers are lost.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use zk_client::OpCode;

/// What becomes of some of the requests that come one after the other.
#[derive(Default)]
pub(crate) struct Toll {
    /// So many of them.
    next: AtomicU32,
    /// The first one of each kind, besides those of these kinds.
    firsts: Mutex<Option<Vec<OpCode>>>,
}

impl Toll {
    pub(crate) fn take(&self, next: u32) {
        self.next.store(next, Ordering::Relaxed);
        *self.firsts.lock().expect("no panic") = None;
    }

    pub(crate) fn take_firsts(&self) {
        *self.firsts.lock().expect("no panic") = Some(Vec::new());
    }

    /// Whether it takes this one.
    pub(crate) fn takes(&self, op: OpCode) -> bool {
        if let Some(seen) = &mut *self.firsts.lock().expect("no panic") {
            let is_first = !seen.contains(&op);
            if is_first {
                seen.push(op);
            }
            return is_first;
        }
        let one_less = |next: u32| next.checked_sub(1);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }
}
