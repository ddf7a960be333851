//! Watches that go on until they are dropped.

use zk_client::{
    Client, EventType, ReadError, Rejection, Resync, WatchEnd, WatchItem, WatchKind, WatchStream,
};
use zk_tests::{feature::Feature, patience::within, test_with};

use crate::api::{Place, client, on_each_release};

/// What has come, up to the event of this path; the kinds of events, and their paths.
async fn up_to(stream: &mut WatchStream, last: &str) -> Vec<(EventType, String)> {
    let mut events = Vec::new();
    while events.last().is_none_or(|(_, path)| path != last) {
        match stream.next().await {
            Some(WatchItem::Event(event)) => events.push((event.kind, event.path)),
            other => panic!("{other:?} after {events:?}"),
        }
    }
    events
}

/// Whether servers lack such watches: then they say so.
async fn are_lacking(server: &Place) -> bool {
    if server.has(Feature::PersistentWatches) {
        return false;
    }
    let zk = client(server).await;
    for watch in [zk.watch("/w"), zk.watch("/w").recursive()] {
        let refused = watch.await.unwrap_err();
        assert_eq!(refused, ReadError::Rejected(Rejection::Unimplemented));
    }
    true
}

fn events(list: &[(EventType, &str)]) -> Vec<(EventType, String)> {
    list.iter().map(|(kind, path)| (*kind, (*path).to_owned())).collect()
}

#[test_with(on_each_release)]
async fn stream_reports_all_events_of_its_mode(server: &Place) {
    if are_lacking(server).await {
        return;
    }
    let (zk, other) = (client(server).await, client(server).await);
    let mut node = zk.watch("/w").await.unwrap();
    let mut tree = zk.watch("/").recursive().await.unwrap();
    assert_eq!((node.path(), tree.path()), ("/w", "/"));
    for round in 0..3 {
        other.create("/w", b"").await.unwrap();
        other.create("/w/c", b"").await.unwrap();
        other.set("/w/c", b"x").await.unwrap();
        other.set("/w", b"x").await.unwrap();
        other.delete("/w/c").await.unwrap();
        other.delete("/w").await.unwrap();
        other.create("/end", b"").await.unwrap();
        other.delete("/end").await.unwrap();
        use EventType as Type;
        let seen = [
            (Type::NODE_CREATED, "/w"),
            (Type::NODE_CREATED, "/w/c"),
            (Type::NODE_DATA_CHANGED, "/w/c"),
            (Type::NODE_DATA_CHANGED, "/w"),
            (Type::NODE_DELETED, "/w/c"),
            (Type::NODE_DELETED, "/w"),
            (Type::NODE_CREATED, "/end"),
        ];
        assert_eq!(up_to(&mut tree, "/end").await, events(&seen), "round {round}");
        assert_eq!(tree.next().await.map(kind), Some(Type::NODE_DELETED));
        let seen = [
            (Type::NODE_CREATED, "/w"),
            (Type::NODE_CHILDREN_CHANGED, "/w"),
            (Type::NODE_DATA_CHANGED, "/w"),
            (Type::NODE_CHILDREN_CHANGED, "/w"),
            (Type::NODE_DELETED, "/w"),
        ];
        let told: Vec<_> = std::iter::from_fn(|| node.try_next()).map(kind).collect();
        assert_eq!(told, seen.map(|(kind, _)| kind), "round {round}");
    }
}

fn kind(item: WatchItem) -> EventType {
    match item {
        WatchItem::Event(event) => event.kind,
        other => panic!("{other:?}"),
    }
}

/// Servers before 3.9 keep one watch for each path: without care, the later one replaces the earlier one.
#[test_with(on_each_release)]
async fn watch_kinds_on_one_path_are_independent(server: &Place) {
    if are_lacking(server).await {
        return;
    }
    let (zk, other) = (client(server).await, client(server).await);
    other.create("/w", b"").await.unwrap();
    let mut node = zk.watch("/w").await.unwrap();
    let mut tree = zk.watch("/w").recursive().await.unwrap();
    let mut again = zk.watch("/w").await.unwrap();
    // All watches are restored now; a gap may have been reported meanwhile.
    zk.sync("/").await.unwrap();
    while tree.try_next().is_some() {}
    for version in 0..3 {
        let (_, mut data) = zk.get("/w").watch().await.unwrap();
        other.set("/w", b"x").await.unwrap();
        other.create(&format!("/w/{version}"), b"").await.unwrap();
        zk.sync("/").await.unwrap();
        assert!(data.try_event().is_some());
        let told: Vec<_> = std::iter::from_fn(|| tree.try_next()).map(kind).collect();
        assert_eq!(told, [EventType::NODE_DATA_CHANGED, EventType::NODE_CREATED]);
        for stream in [&mut node, &mut again] {
            let told: Vec<_> = std::iter::from_fn(|| stream.try_next()).map(kind).collect();
            let seen = [EventType::NODE_DATA_CHANGED, EventType::NODE_CHILDREN_CHANGED];
            assert_eq!(told, seen, "version {version}");
        }
    }

    // With one kind gone, the other goes on.
    drop(tree);
    let (_, mut data) = zk.get("/w").watch().await.unwrap();
    drop(node);
    drop(again);
    other.set("/w", b"y").await.unwrap();
    zk.sync("/").await.unwrap();
    assert!(data.try_event().is_some());
    zk.sync("/").await.unwrap();
    assert!(!zk.check_watches("/w", WatchKind::Any).await.unwrap());
}

/// Up to 3.8 a plain watch replaces the recursive one at the server, and is not replaced by a read in its turn.
#[test_with(on_each_release)]
async fn read_costs_no_stream_its_events(server: &Place) {
    if are_lacking(server).await {
        return;
    }
    let zk = client(server).await;
    zk.create("/w", b"").await.unwrap();
    let tree = zk.watch("/w").recursive().await.unwrap();
    let mut streams = vec![zk.watch("/w").await.unwrap()];
    zk.sync("/").await.unwrap();
    drop(tree);
    streams.push(zk.watch("/w").await.unwrap());
    let (_, once) = zk.children("/w").watch().await.unwrap();
    zk.create("/w/a", b"").await.unwrap();
    zk.create("/w/b", b"").await.unwrap();
    zk.set("/w", b"end").await.unwrap();
    assert_eq!(once.await.unwrap().kind, EventType::NODE_CHILDREN_CHANGED);
    for mut stream in streams {
        let mut kinds = Vec::new();
        while kinds.last() != Some(&EventType::NODE_DATA_CHANGED) {
            kinds.push(stream.next().await.map(kind).unwrap());
        }
        let changed = EventType::NODE_CHILDREN_CHANGED;
        assert_eq!(kinds, [changed, changed, EventType::NODE_DATA_CHANGED]);
    }
}

#[test_with(on_each_release)]
async fn dropped_stream_leaves_other_watches(server: &Place) {
    if are_lacking(server).await {
        return;
    }
    let zk = client(server).await;
    zk.create("/w", b"").await.unwrap();
    let has = async |zk: &Client| zk.check_watches("/w", WatchKind::Any).await.unwrap();
    let first = zk.watch("/w").recursive().await.unwrap();
    let mut second = zk.watch("/w").recursive().await.unwrap();
    drop(first);
    assert!(has(&zk).await);
    zk.set("/w", b"x").await.unwrap();
    assert_eq!(second.next().await.map(kind), Some(EventType::NODE_DATA_CHANGED));

    // A new one behind the removal of the old one.
    drop(second);
    let mut third = zk.watch("/w").recursive().await.unwrap();
    assert!(has(&zk).await);
    zk.set("/w", b"y").await.unwrap();
    assert_eq!(third.next().await.map(kind), Some(EventType::NODE_DATA_CHANGED));
    drop(third);
    assert!(!has(&zk).await);

    // Dropped before the answer.
    drop(zk.watch("/w").submit());
    assert!(!has(&zk).await);
}

#[test_with(on_each_release)]
async fn watches_can_be_removed_from_listeners(server: &Place) {
    if are_lacking(server).await {
        return;
    }
    let zk = client(server).await;
    zk.create("/w", b"").await.unwrap();
    let (_, data) = zk.get("/w").watch().await.unwrap();
    let (_, children) = zk.children("/w").watch().await.unwrap();
    let mut stream = zk.watch("/w").await.unwrap();
    zk.remove_watches("/w", WatchKind::Data).unwrap();
    assert_eq!(data.await.unwrap().kind, EventType::DATA_WATCH_REMOVED);
    zk.set("/w", b"x").await.unwrap();
    assert_eq!(stream.next().await.map(kind), Some(EventType::NODE_DATA_CHANGED));
    zk.remove_watches("/w", WatchKind::Any).unwrap();
    assert_eq!(children.await.unwrap().kind, EventType::CHILD_WATCH_REMOVED);
    assert_eq!((stream.next().await, stream.end()), (None, Some(WatchEnd::Removed)));
    assert!(!zk.check_watches("/w", WatchKind::Any).await.unwrap());
    assert!(zk.remove_watches("w", WatchKind::Any).is_err());
}

/// Before 3.5 servers do not know of it, and end the connection of a client that asks.
#[test_with(on_each_release)]
async fn removing_watches_costs_one_connection_at_most(server: &Place) {
    let zk = client(server).await;
    zk.create("/w", b"").await.unwrap();
    zk.sync("/w").await.unwrap();
    let mut epochs = vec![zk.session().epoch()];
    for _ in 0..4 {
        let (_, data) = zk.get("/w").watch().await.unwrap();
        zk.remove_watches("/w", WatchKind::Data).unwrap();
        assert_eq!(data.await.unwrap().kind, EventType::DATA_WATCH_REMOVED);
        zk.sync("/w").await.unwrap();
        epochs.push(zk.session().epoch());
    }
    assert!(epochs[4] - epochs[0] <= 1, "{epochs:?}");
}

/// Servers that do not know of them refuse them ahead of the answers to what was asked before.
#[test_with(on_each_release)]
async fn watch_behind_other_requests_costs_one_connection_at_most(server: &Place) {
    let zk = client(server).await;
    zk.create("/w", b"").await.unwrap();
    for _ in 0..10 {
        let before = zk.session().epoch();
        let cork = zk.cork();
        let asked: Vec<_> = (0..20).map(|_| cork.get("/w").submit()).collect();
        let watches = [cork.watch("/w").submit(), cork.watch("/w").recursive().submit()];
        drop(cork);
        for data in asked {
            within(data).await.unwrap();
        }
        for watch in watches {
            assert_eq!(within(watch).await.is_ok(), server.has(Feature::PersistentWatches));
        }
        within(zk.sync("/w")).await.unwrap();
        let lost = zk.session().epoch() - before;
        assert!(lost <= 1, "{lost} connections lost");
    }
}

#[test_with(on_each_release)]
async fn slow_reader_gets_a_resync_then_events(server: &Place) {
    if are_lacking(server).await {
        return;
    }
    let zk = client(server).await;
    let mut stream = zk.watch("/w").recursive().capacity(10).await.unwrap();
    zk.create("/w", b"").await.unwrap();
    for _ in 0..10 {
        zk.set("/w", b"x").await.unwrap();
    }
    assert_eq!(stream.next().await, Some(WatchItem::Resync(Resync::Lagged)));
    assert_eq!(stream.try_next(), None);
    zk.delete("/w").await.unwrap();
    assert_eq!(stream.next().await.map(kind), Some(EventType::NODE_DELETED));
}

#[test_with(on_each_release)]
async fn events_carry_zxid_and_relative_paths(server: &Place) {
    if are_lacking(server).await {
        return;
    }
    let root = client(server).await;
    root.create("/app", b"").await.unwrap();
    let zk = root.chrooted("/app").unwrap();
    let mut stream = zk.watch("/").recursive().await.unwrap();
    let created = root.create("/app/a", b"").await.unwrap();
    let Some(WatchItem::Event(event)) = stream.next().await else { panic!("no event") };
    assert_eq!(event.path, "/a");
    assert!(event.zxid.is_none_or(|zxid| zxid == created.stat.czxid), "{event:?}");
    assert_eq!(event.zxid.is_some(), server.has(Feature::EventZxid));
}

#[test_with(on_each_release)]
async fn streams_are_refused_before_3_6(server: &Place) {
    if server.has(Feature::PersistentWatches) {
        return;
    }
    let zk = server.options().connect().await.unwrap();
    for _ in 0..2 {
        let refused = zk.watch("/w").await.unwrap_err();
        assert_eq!(refused, ReadError::Rejected(Rejection::Unimplemented));
    }
    zk.get("/").await.unwrap();
    // The first attempt costs the connection, and only that one.
    assert_eq!(zk.session().epoch(), 2);
}

#[test_with(on_each_release)]
async fn watches_are_shown_as_their_callers_see_them(server: &Place) {
    let zk = client(server).await;
    zk.create("/a/b", b"").parents().await.unwrap();
    let zk = zk.chrooted("/a").unwrap();
    let (_, once) = zk.get("/b").watch().await.unwrap();
    assert_eq!(format!("{once:?}"), r#"Watch { path: "/b", .. }"#);
    if are_lacking(server).await {
        return;
    }
    let stream = zk.watch("/b").await.unwrap();
    zk.set("/b", b"1").await.unwrap();
    let shown = r#"WatchStream { path: "/b", queued: 1, end: None, .. }"#;
    assert_eq!(format!("{stream:?}"), shown);
}
