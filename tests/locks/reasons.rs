//! Losses whose reason takes a while to find out: a holder asks whether its session still exists, and the answer is late.

use std::{future::pending, time::Duration};

use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    time::Instant,
};
use zk_locks::{Lock, Lost};
use zk_proto::OpCode;
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{client_on, in_virtual_time, within};

/// A lock that has been held for so long is watched.
const LONG: Duration = Duration::from_secs(2);

/// Has the holder's question answered so much later.
fn answer_late(network: &Network, by: Duration) {
    network.direct(move |name, op| match (name, op) {
        ("ours", OpCode::EXISTS) => Disposition::Late(by),
        _ => Disposition::Answered,
    });
}

#[test_with(in_virtual_time)]
async fn work_stops_before_the_reason_is_known(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let guard = within(Lock::new(&zk, "/lock").acquire()).await.unwrap();
    let node = guard.path().to_owned();
    let (at_work, mut stopped) = oneshot::channel::<()>();
    let work = async move {
        pending::<()>().await;
        drop(at_work);
    };
    let scope = tokio::spawn(async move { guard.scope(work).await });
    pass(LONG).await;
    assert_eq!(stopped.try_recv(), Err(TryRecvError::Empty));
    answer_late(&network, Duration::from_secs(1));
    other.delete(&node).await.unwrap();
    let deleted = Instant::now();
    // Less than any wait for the reason.
    pass(Duration::from_millis(50)).await;
    assert_eq!(stopped.try_recv(), Err(TryRecvError::Closed), "it goes on");
    assert!(!scope.is_finished(), "the reason cannot be known");
    assert_eq!(within(scope).await.unwrap(), Err(Lost::NodeDeleted));
    let took = deleted.elapsed();
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(2), "{took:?}");
}

/// A holder that waits for its loss may still be at work: it is told soon. One whose work has stopped has more time.
#[test_with(in_virtual_time)]
async fn late_reason_is_waited_for_in_bounds(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let guard = within(Lock::new(&zk, "/lock").acquire()).await.unwrap();
    answer_late(&network, Duration::from_secs(3));
    let lost = async { (guard.lost().await, Instant::now()) };
    let scope = async { (guard.scope(pending::<()>()).await, Instant::now()) };
    let deleted = async {
        pass(LONG).await;
        other.delete(guard.path()).await.unwrap();
        Instant::now()
    };
    let ((lost, told), (ended, returned), deleted) =
        within(async { tokio::join!(lost, scope, deleted) }).await;
    assert_eq!((lost, ended), (Lost::NodeDeleted, Err(Lost::NodeDeleted)));
    let (told, returned) = (told.duration_since(deleted), returned.duration_since(deleted));
    assert!(told <= Duration::from_millis(200), "{told:?}");
    assert!(returned <= Duration::from_millis(2100), "{returned:?}");
}
