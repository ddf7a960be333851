//! A waiter's place among others.

use bytes::BytesMut;
use zk_locks::Lock;
use zk_proto::{
    OpCode, Stat, Text,
    jute::{Decode as _, Encode as _},
    request::Create2Response,
};

use crate::{
    Piece,
    client::{Answer, connected},
};

const WAITERS: usize = 10_000;

/// Nodes of so many who wait for a lock, named as Curator and we do.
#[must_use]
pub fn lock_nodes(count: usize) -> Vec<String> {
    let node = |number| format!("_c_3b5f6a0e-0000-4000-8000-0123456789ab-lock-{number:010}");
    (0..count).map(node).collect()
}

/// Joins the queue of a lock, behind so many.
pub fn joining(count: usize) -> impl FnMut() {
    let (runtime, client) = connected(move || queue(count));
    let lock = Lock::new(&client, "/lock");
    move || {
        let ticket = runtime.block_on(lock.enqueue()).expect("whoever is asked answers");
        assert_eq!(ticket.ahead(), Some(count));
    }
}

/// What a server answers where so many wait.
fn queue(count: usize) -> Answer {
    let mut names = BytesMut::new();
    for name in lock_nodes(count) {
        Text::from(name).encode(&mut names);
    }
    let mut own = Text::default();
    Box::new(move |op, mut frame, out| match op {
        OpCode::CREATE2 => {
            let path = Text::decode(&mut frame).expect("it begins with the path");
            let path = format!("{path}{count:010}");
            own = Text::from(zk_client::path::name(&path));
            Create2Response { path: Text::from(path), stat: Stat::default() }.encode(out);
        }
        OpCode::GET_CHILDREN2 => {
            i32::try_from(count + 1).expect("few enough").encode(out);
            out.extend_from_slice(&names);
            own.encode(out);
            Stat::default().encode(out);
        }
        _ => {}
    })
}

pub(crate) fn piece() -> Piece {
    Piece::new("lock: joining a queue of 10 000", 1, || joining(WAITERS))
}
