//! Servers that do not know an operation, and sessions that go from one release to another.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use zk_client::{CreateMode, OpCode, ReadError, Rejection, WriteError};
use zk_testkit::server::Config;
use zk_tests::network::{Disposition, Network, pass};

use super::promises::{ME, MOMENT, connected, play, slow_reads};

/// Answers like a server that does not know these operations, for as long as that is said.
fn lacking(network: &Network, ops: &'static [OpCode]) -> Arc<AtomicBool> {
    let lacks = Arc::new(AtomicBool::new(true));
    let is_old = lacks.clone();
    network.direct(move |_, op| match ops.contains(&op) && is_old.load(SeqCst) {
        true => Disposition::Unknown,
        false => Disposition::Answered,
    });
    lacks
}

#[test]
fn upgraded_server_is_asked_for_watches_again() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        let lacks = lacking(network, &[OpCode::ADD_WATCH]);
        for _ in 0..3 {
            let refused = zk.watch("/").await.map(drop);
            assert_eq!(refused, Err(ReadError::Rejected(Rejection::Unimplemented)));
            zk.exists("/").await.unwrap();
        }
        assert_eq!(zk.session().epoch(), 2, "the first refusal costs the connection");
        lacks.store(false, SeqCst);
        network.cut(ME);
        network.heal();
        pass(Duration::from_secs(3)).await;
        drop(zk.watch("/").await.unwrap());
    });
}

#[test]
fn older_member_behind_a_newer_one_creates_too() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        zk.create("/by-the-newer", b"").await.unwrap();
        lacking(network, &[OpCode::CREATE2]);
        network.cut(ME);
        network.heal();
        pass(Duration::from_secs(3)).await;
        zk.create("/by-the-older", b"").await.unwrap();
    });
}

/// What was made for a newer server and waited when the session went to an older one is refused, not written.
#[test]
fn create_for_a_newer_member_is_refused_once() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        zk.create("/by-the-newer", b"").await.unwrap();
        slow_reads(network);
        let owed = zk.get("/").submit();
        pass(MOMENT).await;
        zk.update_servers("elsewhere").unwrap();
        let waiting = zk.create("/waiting", b"").submit();
        pass(MOMENT).await;
        lacking(network, &[OpCode::CREATE2]);
        owed.await.unwrap();
        let refused = waiting.await.map(drop);
        assert_eq!(refused, Err(WriteError::Rejected(Rejection::Unimplemented)));
        assert_eq!(zk.exists("/waiting").await.unwrap(), None);
        zk.create("/waiting", b"").await.unwrap();
    });
}

#[test]
fn create_unless_there_suits_an_older_member() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        zk.create("/by-the-newer", b"").await.unwrap();
        let first = AtomicBool::new(true);
        network.direct(move |_, op| match op {
            OpCode::CREATE2 if first.swap(false, SeqCst) => Disposition::AnswerLost,
            OpCode::CREATE2 => Disposition::Unknown,
            _ => Disposition::Answered,
        });
        let created = zk.create("/there", b"").or_exists().await.unwrap();
        assert!(created.existed, "the first one has made it");
    });
}

/// As the page on compatibility has it.
#[test]
fn what_has_no_substitute_is_asked_again() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        lacking(network, &[OpCode::ADD_WATCH]);
        for round in 1..=3 {
            for _ in 0..2 {
                let refused = zk.watch("/").await.map(drop);
                assert_eq!(refused, Err(ReadError::Rejected(Rejection::Unimplemented)));
                zk.exists("/").await.unwrap();
                assert_eq!(zk.session().epoch(), 2 * round, "one connection each time");
            }
            network.cut(ME);
            network.heal();
            pass(Duration::from_secs(3)).await;
        }
    });
}

#[test]
fn substitutes_stay_until_a_newer_operation() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        let lacks = lacking(network, &[OpCode::CREATE2]);
        zk.create("/by-the-older", b"1").await.unwrap();
        lacks.store(false, SeqCst);
        network.cut(ME);
        network.heal();
        pass(Duration::from_secs(3)).await;
        let created = zk.create("/by-the-upgraded", b"1").await.unwrap();
        assert_eq!(created.stat.data_length, 0, "it is not asked for");
        zk.create("/container", b"").mode(CreateMode::Container).await.unwrap();
        let created = zk.create("/since-then", b"1").await.unwrap();
        assert_eq!(created.stat.data_length, 1);
    });
}

/// What an answer shows of its server says nothing of the next one, however late it is looked at.
#[test]
fn late_result_of_a_transaction_does_not_stand_for_another_member() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        let transaction = zk.multi().create("/first", b"", CreateMode::Persistent).submit();
        pass(MOMENT).await;
        lacking(network, &[OpCode::CREATE2]);
        network.cut(ME);
        network.heal();
        pass(Duration::from_secs(3)).await;
        transaction.await.unwrap().unwrap();
        zk.create("/second", b"").await.unwrap();
    });
}
