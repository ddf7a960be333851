//! A real ensemble: electing, losing and regaining members.

use std::time::Instant;

use zk_testkit::real::{Ensemble, Mode, Wanted};

#[tokio::test]
async fn an_ensemble_elects_one_leader_and_survives_its_death() {
    let before = Instant::now();
    let ensemble = Ensemble::start(Wanted::Any).await.expect("an ensemble");
    println!("{} x 3 serve after {:?}", ensemble.version(), before.elapsed());
    let leader = ensemble.leader().await.expect("a leader");
    assert_eq!(ensemble.followers().await.len(), 2);

    ensemble.kill(leader).await.expect("a kill");
    let before = Instant::now();
    let successor = ensemble.wait_for_quorum().await.expect("a quorum");
    println!("a new leader after {:?}", before.elapsed());
    assert_ne!(successor, leader);

    let before = Instant::now();
    ensemble.restart(leader).await.expect("a start");
    assert_eq!(ensemble.wait_for_all().await.expect("all"), successor);
    println!("the old leader is back after {:?}", before.elapsed());
    assert_eq!(ensemble.member(leader).mode().await, Some(Mode::Follower));
}

#[tokio::test]
async fn a_paused_leader_is_replaced_and_follows_when_it_wakes() {
    let ensemble = Ensemble::start(Wanted::Any).await.expect("an ensemble");
    let leader = ensemble.leader().await.expect("a leader");
    ensemble.pause(leader).expect("a pause");
    let before = Instant::now();
    let successor = ensemble.wait_for_quorum().await.expect("a quorum");
    println!("a new leader after {:?}", before.elapsed());
    assert_ne!(successor, leader);
    ensemble.resume(leader).expect("a wake-up");
    assert_eq!(ensemble.wait_for_all().await.expect("all"), successor);
}
