//! A waiter's place among others.

use std::hint::black_box;

use zk_locks::ahead_in_line;

use crate::Piece;

const WAITERS: usize = 10_000;

/// Nodes of so many who wait for a lock, named as Curator and we do.
#[must_use]
pub fn lock_nodes(count: usize) -> Vec<String> {
    let node = |number| format!("_c_3b5f6a0e-0000-4000-8000-0123456789ab-lock-{number:010}");
    (0..count).map(node).collect()
}

pub(crate) fn piece() -> Piece {
    Piece::new("lock: the line, of 10 000 children", 1, || {
        let names = lock_nodes(WAITERS);
        let own = names[WAITERS - 1].clone();
        move || {
            let ahead = ahead_in_line(names.iter().map(String::as_str), black_box(&own));
            assert_eq!(ahead, Some(WAITERS - 1));
        }
    })
}
