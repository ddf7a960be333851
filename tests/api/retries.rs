//! Which requests are tried again, and when.

use std::{future::ready, time::Duration};

use tokio::time::Instant;
use zk_client::{Cause, Error, OpCode, ReadError, Rejection, Retry, WriteError};
use zk_testkit::proxy::Match;
use zk_tests::{busy::too_busy_for, patience::within, paused, test_with};

use crate::api::{Place, behind_proxy, on_each_release};

/// Without a noticeable pause.
const RETRY: Retry = Retry::new().attempts(3).pause(Duration::from_millis(1));

/// A second one would not wait for a connection: it would end in another error than doubt.
#[test_with(on_each_release)]
async fn write_in_doubt_is_tried_once(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/a", b"").await.unwrap();
    let lost = proxy.on(Match::reply(OpCode::SET_DATA).once()).reset();
    let mut attempts = 0;
    let write = || {
        attempts += 1;
        zk.set("/a", b"x").fail_fast()
    };
    let written = within(RETRY.run(write)).await;
    assert!(matches!(written, Err(WriteError::InDoubt { .. })), "{written:?}");
    assert_eq!((attempts, lost.times_fired()), (1, 1));
    within(zk.resolve_in_doubt()).await.unwrap();
    assert_eq!(zk.exists("/a").await.unwrap().unwrap().version, 1);
    assert_eq!(proxy.counts().requests(OpCode::SET_DATA), 1);
}

#[test_with(on_each_release)]
async fn rejected_write_is_tried_once(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/a", b"").await.unwrap();
    let (mark, mut attempts) = (proxy.mark(), 0);
    let create = || {
        attempts += 1;
        zk.create("/a", b"")
    };
    let created = within(RETRY.run(create)).await.map(drop);
    assert_eq!(created, Err(WriteError::Rejected(Rejection::NodeExists)));
    let frames = proxy.frames_since(mark);
    assert_eq!((attempts, frames.counts().requests(server.create_op())), (1, 1), "{frames}");
}

/// What has been deleted by then would be missing in the number that a second attempt tells.
#[test_with(on_each_release)]
async fn partial_recursive_delete_is_not_retried(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    for done in [0, 1] {
        zk.create("/t/a/b", b"").parents().await.unwrap();
        let busy = too_busy_for(&proxy, Match::request(OpCode::DELETE).skip(done).once());
        let mut attempts = 0;
        let delete = || {
            attempts += 1;
            zk.delete_recursive("/t")
        };
        let deleted = within(RETRY.run(delete)).await;
        assert_eq!(busy.turned_away(), 1);
        if done == 0 {
            assert_eq!((deleted, attempts), (Ok(3), 2));
            continue;
        }
        let error = Error::DeleteRecursive {
            deleted: 1,
            path: "/t/a".to_owned(),
            error: Box::new(WriteError::NotApplied(Cause::Throttled).into()),
        };
        assert_eq!((deleted, attempts), (Err(error), 1));
        assert!(zk.exists("/t/a").await.unwrap().is_some());
    }
}

/// When each attempt of a request begins that never succeeds, in milliseconds.
async fn attempts_of(retry: Retry) -> Vec<u128> {
    let (began, mut attempts) = (Instant::now(), Vec::new());
    let throttled = ReadError::Unavailable(Cause::Throttled);
    let request = || {
        attempts.push(began.elapsed().as_millis());
        ready(Err::<(), _>(throttled.clone()))
    };
    let last = retry.run(request).await;
    assert_eq!(last, Err(throttled));
    attempts
}

#[test]
fn pauses_double_up_to_the_longest() {
    paused::block_on(async {
        let seconds = Duration::from_secs;
        let retry = Retry::new().attempts(5).pause(seconds(1)).pause_max(seconds(3));
        assert_eq!(attempts_of(retry).await, [0, 1000, 3000, 6000, 9000]);
        let retry = Retry::new().pause(seconds(5)).pause_max(seconds(3));
        assert_eq!(attempts_of(retry).await, [0, 3000, 6000]);
        assert_eq!(attempts_of(Retry::new()).await, [0, 100, 300]);
        assert_eq!(attempts_of(Retry::new().attempts(0)).await, [0], "at least one");
    });
}
