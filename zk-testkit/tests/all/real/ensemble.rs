//! A real ensemble: electing, losing and regaining members.

use std::time::{Duration, Instant};

use zk_proto::ErrorCode;
use zk_testkit::real::{Ensemble, Mode, Server, Wanted};

use crate::support::{RawClient, create2, exists, within_limit};

#[tokio::test]
async fn ensemble_survives_the_leaders_death() {
    let before = Instant::now();
    let ensemble = Ensemble::start(Wanted::Any).await.expect("an ensemble");
    let version = ensemble.version();
    println!("three of {version} serve after {:?}", before.elapsed());
    let leader = ensemble.leader().await.expect("a leader");
    assert_eq!(ensemble.followers().await.len(), 2);
    let mut client = RawClient::connect(ensemble.member(leader).addr()).await;
    client.call(&create2("/kept")).await.expect("a reply");

    let before = Instant::now();
    ensemble.kill(leader).await.expect("a kill");
    let successor = ensemble.wait_for_quorum().await.expect("a quorum");
    println!("a new leader serves after {:?}", before.elapsed());
    assert_ne!(successor, leader);
    let mut client = RawClient::connect(ensemble.member(successor).addr()).await;
    let found = client.call(&exists("/kept")).await.expect("a reply");
    assert_eq!(found, ErrorCode::OK);

    let before = Instant::now();
    ensemble.restart(leader).await.expect("a start");
    assert_eq!(ensemble.wait_for_all().await.expect("all"), successor);
    println!("the old leader is back after {:?}", before.elapsed());
    assert_eq!(ensemble.member(leader).mode().await, Some(Mode::Follower));
}

#[tokio::test]
async fn paused_leader_is_replaced_and_follows() {
    let ensemble = Ensemble::start(Wanted::Any).await.expect("an ensemble");
    let leader = ensemble.leader().await.expect("a leader");
    let before = Instant::now();
    ensemble.pause(leader).expect("a pause");
    let successor = ensemble.wait_for_quorum().await.expect("a quorum");
    println!("a new leader serves after {:?}", before.elapsed());
    assert_ne!(successor, leader);
    ensemble.resume(leader).expect("a wake-up");
    assert_eq!(ensemble.wait_for_all().await.expect("all"), successor);
}

#[tokio::test]
async fn minority_does_not_serve_and_quorum_does() {
    let ensemble = Ensemble::start(Wanted::Any).await.expect("an ensemble");
    ensemble.kill(0).await.expect("a kill");
    ensemble.stop(1).await.expect("a stop");
    within_limit(mode_becomes(ensemble.member(2), None)).await;
    assert_eq!(ensemble.leader().await, None);
    ensemble.restart(0).await.expect("a start");
    ensemble.wait_for_quorum().await.expect("a quorum");
    assert!(!ensemble.member(1).is_running());
}

/// A server announces nothing, so it is asked again and again.
async fn mode_becomes(server: &Server, wanted: Option<Mode>) {
    while server.mode().await != wanted {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn connection_strings_list_members_in_order() {
    let ensemble = Ensemble::start(Wanted::Any).await.expect("an ensemble");
    let addr = |index: usize| ensemble.member(index).addr();
    let all = format!("{},{},{}", addr(0), addr(1), addr(2));
    assert_eq!(ensemble.connect_string(), all);
    let some = format!("{},{}", addr(2), addr(0));
    assert_eq!(ensemble.connect_string_of(&[2, 0]), some);
}

/// Cut off from its quorum, a member that may do so still answers reads.
#[tokio::test]
async fn read_only_member_serves_without_quorum() {
    let ensemble = Ensemble::builder().read_only_mode(true).start().await;
    let ensemble = ensemble.expect("an ensemble");
    ensemble.kill(0).await.expect("a kill");
    ensemble.kill(1).await.expect("a kill");
    within_limit(mode_becomes(ensemble.member(2), Some(Mode::ReadOnly))).await;
    assert_eq!(ensemble.leader().await, None);
}
