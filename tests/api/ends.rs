//! What is awaited again and again comes to an end with the session: nothing waits for what will never come.

use zk_client::{
    Cache, CacheEvent, CacheState, Cause, ReadError, SessionEnd, SessionState, WatchEnd,
};
use zk_locks::{Election, Group, Lock};
use zk_tests::{
    feature::Feature,
    patience::{closed, within},
    test_with,
};

use crate::api::{Place, client, on_each_release};

fn is_of_session<T>(told: Result<T, ReadError>) -> bool {
    matches!(told, Err(ReadError::Unavailable(Cause::SessionEnded(SessionEnd::Closed))))
}

/// All that has a `next`, in both crates.
#[test_with(on_each_release)]
async fn all_streams_end_with_the_session(server: &Place) {
    let zk = client(server).await;
    zk.create("/c/a", b"").parents().await.unwrap();
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    cache.ready().await.unwrap();
    let mut changes = cache.events();
    let mut slow = Cache::subtree(&zk, "/c").events_max(1).start().unwrap().events_from_the_start();
    let mut stream = match server.has(Feature::PersistentWatches) {
        true => Some(zk.watch("/c").recursive().await.unwrap()),
        false => None,
    };
    let lock = Lock::new(&zk, "/lock");
    let held = lock.acquire().await.unwrap();
    let ticket = lock.enqueue().await.unwrap();
    let mut positions = ticket.positions().unwrap();
    let mut gone = lock.enqueue().await.unwrap().positions().unwrap();
    while within(gone.next()).await.unwrap().is_some() {}
    let mut leaders = Election::new(&zk, "/election").follow();
    let mut members = Group::new(&zk, "/group").follow();
    assert_eq!(within(positions.next()).await.unwrap(), Some(1));
    assert!(within(leaders.next()).await.unwrap().is_none());
    assert!(within(members.next()).await.unwrap().is_empty());
    let mut session = zk.session();
    zk.create("/c/b", b"").await.unwrap();
    while cache.get("/c/b").is_none() {
        tokio::task::yield_now().await;
    }

    closed(&zk).await;
    let mut told = Vec::new();
    while let Some(event) = within(changes.next()).await {
        told.push(event);
    }
    let ended = CacheEvent::Ended(SessionEnd::Closed);
    assert!(matches!(&told[..], [CacheEvent::Created(_), last] if *last == ended), "{told:?}");
    let mut last = None;
    while let Some(event) = within(slow.next()).await {
        last = Some(event);
    }
    assert_eq!(last, Some(ended), "however slow the listener");
    assert_eq!(cache.state(), CacheState::Ended(SessionEnd::Closed));
    if let Some(stream) = &mut stream {
        while within(stream.next()).await.is_some() {}
        assert_eq!(stream.end(), Some(WatchEnd::Session(SessionEnd::Closed)));
    }
    for _ in 0..2 {
        assert_eq!(within(changes.next()).await, None);
        assert_eq!(within(cache.events().next()).await, None, "for those who come late");
        if let Some(stream) = &mut stream {
            assert_eq!(within(stream.next()).await, None);
        }
        assert!(is_of_session(within(positions.next()).await));
        assert_eq!(within(gone.next()).await, Ok(None), "there is no place any more");
        assert!(is_of_session(within(leaders.next()).await));
        assert!(is_of_session(within(members.next()).await));
        let state = within(session.changed()).await;
        assert!(matches!(state, SessionState::Closing | SessionState::Ended(_)), "{state:?}");
    }
    drop((held, ticket));

    // The stream of a cache that goes on elsewhere goes on too.
    let zk = client(server).await;
    zk.create("/c/new", b"").await.unwrap();
    cache.move_to(&zk);
    let event = within(changes.next()).await;
    assert!(
        matches!(&event, Some(CacheEvent::Created(node)) if &*node.path == "/c/new"),
        "{event:?}"
    );
}
