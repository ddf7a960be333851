//! The order of submission, also of what needs no room, and of what is held back.

use std::{
    future::Future as _,
    mem,
    sync::{Arc, Mutex},
    task::{Context, Waker},
    time::Duration,
};

use zk_client::{Client, CreateMode, OpCode, WatchKind};
use zk_testkit::server::Config;
use zk_tests::{
    network::{Disposition, Network, pass},
    patience::within,
    paused,
};

type Ops = Arc<Mutex<Vec<OpCode>>>;

/// What reaches the server from now on; requests for data are answered a second late.
fn recorded(network: &Network) -> Ops {
    let ops = Ops::default();
    let seen = ops.clone();
    network.direct(move |_, op| {
        seen.lock().unwrap().push(op);
        match op {
            OpCode::GET_DATA => Disposition::Late(Duration::from_secs(1)),
            _ => Disposition::Answered,
        }
    });
    ops
}

fn play(requests_max: usize, test: impl AsyncFn(&Network, Client)) {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let options = network.options("me", "", 7).requests_max(requests_max);
        let zk = options.connect().await.unwrap();
        test(&network, zk).await;
    });
}

#[test]
fn dropped_owner_deletes_behind_what_waits() {
    play(1, async |network, zk| {
        let create = zk.create("/seat", b"").mode(CreateMode::Ephemeral).protected();
        let seat = create.await.unwrap().owned.unwrap();
        recorded(network);
        let owed = zk.get("/").submit();
        let write = zk.patient().set(seat.path(), b"last words").submit();
        drop(seat);
        let behind = zk.patient().exists("/seat").submit();
        owed.await.unwrap();
        write.await.unwrap();
        assert_eq!(behind.await.unwrap(), None);
    });
}

/// Neither of those that wait is there when its turn comes.
#[test]
fn withdrawn_requests_hold_up_no_delete() {
    play(1, async |network, zk| {
        let create = zk.create("/seat", b"").mode(CreateMode::Ephemeral).protected();
        let seat = create.await.unwrap().owned.unwrap();
        recorded(network);
        let owed = zk.get("/").submit();
        let (mut line, mut cx) = (Vec::new(), Context::from_waker(Waker::noop()));
        for _ in 0..2 {
            let mut write = Box::pin(async { zk.set("/", b"").await });
            assert!(write.as_mut().poll(&mut cx).is_pending());
            line.push(write);
        }
        let gone = seat.delete();
        drop(line);
        gone.await.unwrap();
        owed.await.unwrap();
    });
}

#[test]
fn identity_comes_behind_what_waits() {
    play(1, async |network, zk| {
        let ops = recorded(network);
        let owed = zk.get("/").submit();
        let waits = zk.patient().exists("/").submit();
        let known = zk.add_auth("digest", "ann:secret");
        owed.await.unwrap();
        waits.await.unwrap();
        known.await.unwrap();
        assert_eq!(*ops.lock().unwrap(), [OpCode::GET_DATA, OpCode::EXISTS, OpCode::AUTH]);
    });
}

#[test]
fn watches_that_wait_are_removed_too() {
    play(1, async |network, zk| {
        recorded(network);
        let owed = zk.get("/").submit();
        let waits = zk.patient().exists("/").watch().submit();
        zk.remove_watches("/", WatchKind::Any).unwrap();
        owed.await.unwrap();
        let (_, watch) = waits.await.unwrap();
        pass(Duration::from_secs(1)).await;
        assert_eq!(network.look(|server| server.watch_count()), 0);
        drop(watch);
    });
}

#[test]
fn corks_on_corks_keep_the_order() {
    play(9, async |network, zk| {
        let ops = recorded(network);
        for outer_first in [true, false] {
            let outer = zk.cork();
            let first = outer.get("/").submit();
            let inner = outer.cork();
            let second = inner.exists("/").submit();
            let third = outer.children("/").submit();
            let late = Client::clone(&inner);
            let left = if outer_first {
                drop(outer);
                inner
            } else {
                drop(inner);
                within(async { late.exists("/").await }).await.unwrap();
                outer
            };
            within(first).await.unwrap();
            within(second).await.unwrap();
            within(third).await.unwrap();
            let held = left.exists("/").submit();
            pass(Duration::from_secs(1)).await;
            let order = [OpCode::GET_DATA, OpCode::EXISTS, OpCode::GET_CHILDREN2];
            let seen = mem::take(&mut *ops.lock().unwrap());
            assert_eq!(seen[..3], order);
            assert_eq!(seen.len(), if outer_first { 3 } else { 4 }, "the other still holds");
            drop(left);
            within(held).await.unwrap();
            ops.lock().unwrap().clear();
        }
    });
}

/// What follows a create comes with what its client holds back, not in front of it.
#[test]
fn create_with_company_stays_under_the_cork() {
    paused::block_on(async {
        let network = Network::new(Config::default());
        let zk = network.options("me", "", 7).connect().await.unwrap();
        let cork = zk.cork();
        let corked = Client::clone(&cork);
        let create = |path| corked.create(path, b"").mode(CreateMode::Ephemeral).protected();
        let alone = create("/alone-").followed_by(|client| client.get("/").submit());
        let all = corked.create_all_protected([create("/all-")]);
        let all = all.followed_by(|client| client.get("/").submit());
        pass(Duration::from_secs(1)).await;
        let names = async || zk.children("/").await.unwrap().0.len();
        let before = names().await;
        drop(cork);
        let (alone, all) = (alone.await.unwrap(), all.await.unwrap().unwrap());
        assert_eq!(names().await, before + 2);
        drop((alone, all));
    });
}
