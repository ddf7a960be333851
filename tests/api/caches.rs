//! Local copies that follow the servers' nodes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use tokio::time::interval;
use zk_client::{
    AclList, Cache, CacheEvent, CacheState, CachedNode, Client, CreateMode, ErrorCode, OpCode,
    Perms, ReadError, Rejection, SessionEnd, WatchKind, Zxid, digest_id,
};
use zk_testkit::{TestServer, proxy::Match, real::Release, server::Config};
use zk_tests::{
    busy::refuse_with,
    feature::Feature,
    patience::{LIMIT, closed, within},
    test_with,
};

use crate::api::{Place, behind_proxy, client, on_each_release};

/// What tells one state of a node from another, by path.
pub(crate) type Nodes = BTreeMap<String, (Vec<u8>, Zxid, Zxid)>;

pub(crate) fn seen(nodes: impl IntoIterator<Item = CachedNode>) -> Nodes {
    let seen = |node: CachedNode| {
        (node.path.to_string(), (node.data.to_vec(), node.stat.czxid, node.stat.mzxid))
    };
    nodes.into_iter().map(seen).collect()
}

/// What servers have at `root` and `depth` levels below it.
pub(crate) async fn truth(zk: &Client, root: &str, depth: usize) -> Nodes {
    zk.sync("/").await.unwrap();
    let mut found = BTreeMap::new();
    let mut level = vec![root.to_owned()];
    for _ in 0..=depth {
        let mut below = Vec::new();
        for path in level {
            let Ok((data, stat)) = zk.get(&path).await else { continue };
            let (names, _) = zk.children(&path).await.unwrap();
            found.insert(path.clone(), (data.to_vec(), stat.czxid, stat.mzxid));
            below.extend(names.iter().map(|name| zk_client::path::join(&path, name)));
        }
        level = below;
    }
    found
}

/// Waits until the copy is equal to what the servers have, and stays so.
pub(crate) async fn converged(cache: &Cache, zk: &Client, root: &str, depth: usize) {
    let expected = truth(zk, root, depth).await;
    let mut last = None;
    let done = async {
        while last.as_ref() != Some(&expected) {
            tokio::time::sleep(Duration::from_millis(2)).await;
            match cache.state() {
                CacheState::Ended(end) => panic!("the cache has ended: {end}"),
                CacheState::Following => last = Some(seen(cache.nodes())),
                _ => {}
            }
        }
    };
    if tokio::time::timeout(LIMIT, done).await.is_err() {
        let last = last.unwrap_or_default();
        let differs = |path: &&String| last.get(*path) != expected.get(*path);
        let paths: BTreeSet<_> = last.keys().chain(expected.keys()).filter(differs).collect();
        panic!("{:?}: others at {:?}", cache.state(), paths.iter().take(5).collect::<Vec<_>>());
    }
}

#[test_with(on_each_release)]
async fn cache_holds_its_scope_and_tells_changes(server: &Place) {
    let zk = client(server).await;
    zk.create("/c/a/x", b"1").parents().await.unwrap();
    let node = Cache::node(&zk, "/c").start().unwrap();
    let children = Cache::children(&zk, "/c").start().unwrap();
    let tree = Cache::subtree(&zk, "/c").start().unwrap();
    for cache in [&node, &children, &tree] {
        cache.ready().await.unwrap();
    }
    let paths = |cache: &Cache| -> Vec<String> {
        cache.nodes().iter().map(|node| node.path.to_string()).collect()
    };
    assert_eq!(paths(&node), ["/c"]);
    assert_eq!(paths(&children), ["/c", "/c/a"]);
    assert_eq!(paths(&tree), ["/c", "/c/a", "/c/a/x"]);
    assert_eq!(tree.get("/c/a/x").unwrap().data, "1");
    assert_eq!(tree.children_of("/c/a").len(), 1);
    assert_eq!(tree.get("/c/nothing"), None);

    let mut events = tree.events();
    zk.create("/c/b", b"new").await.unwrap();
    let Some(CacheEvent::Created(created)) = events.next().await else { panic!("no node") };
    assert_eq!((&*created.path, &*created.data), ("/c/b", &b"new"[..]));
    zk.set("/c/b", b"newer").await.unwrap();
    let Some(CacheEvent::Changed { old, new }) = events.next().await else { panic!("no write") };
    assert_eq!((old, &*new.data), (created, &b"newer"[..]));
    zk.delete("/c/b").await.unwrap();
    assert_eq!(events.next().await, Some(CacheEvent::Deleted(new)));

    zk.delete_recursive("/c").await.unwrap();
    for (cache, depth) in [(&node, 0), (&children, 1), (&tree, 9)] {
        converged(cache, &zk, "/c", depth).await;
        assert_eq!(cache.nodes(), []);
    }
    zk.create("/c/again", b"").parents().await.unwrap();
    for (cache, depth) in [(&node, 0), (&children, 1), (&tree, 9)] {
        converged(cache, &zk, "/c", depth).await;
    }
    let mut from_the_start = tree.events_from_the_start();
    let first = std::iter::from_fn(|| from_the_start.try_next()).count();
    assert_eq!(first, 2);
}

#[test_with(on_each_release)]
async fn cache_outlives_its_session(server: &Place) {
    let zk = client(server).await;
    zk.create("/c", b"old").await.unwrap();
    zk.create("/c/e", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let kept = Cache::subtree(&zk, "/c").start().unwrap();
    let cleared = Cache::subtree(&zk, "/c").clear_at_end().start().unwrap();
    // Nothing has been asked yet.
    assert_eq!(kept.state(), CacheState::Loading);
    kept.ready().await.unwrap();
    cleared.ready().await.unwrap();
    let (mut kept_events, mut cleared_events) = (kept.events(), cleared.events());
    closed(&zk).await;
    let ended = CacheState::Ended(SessionEnd::Closed);
    loop {
        let event = cleared_events.next().await.unwrap();
        if event == CacheEvent::Ended(SessionEnd::Closed) {
            break;
        }
        assert!(matches!(event, CacheEvent::Deleted(_)), "{event:?}");
    }
    while kept_events.next().await != Some(CacheEvent::Ended(SessionEnd::Closed)) {}
    assert_eq!((kept.nodes().is_empty(), kept.state()), (false, ended.clone()));
    assert_eq!((cleared.nodes(), cleared.state()), (Vec::new(), ended));
    kept.ready().await.unwrap_err();

    let zk = client(server).await;
    zk.set("/c", b"new").await.unwrap();
    kept.move_to(&zk);
    cleared.move_to(&zk);
    converged(&kept, &zk, "/c", 9).await;
    converged(&cleared, &zk, "/c", 9).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&CacheEvent::Loaded) {
        seen.push(kept_events.next().await.unwrap());
    }
    let of_root = |event: &&CacheEvent| matches!(event, CacheEvent::Changed { new, .. } if &*new.path == "/c" && new.data == "new");
    assert_eq!(seen.iter().filter(of_root).count(), 1, "{seen:?}");
}

/// That a node is there, servers before 3.8 tell everyone.
#[test_with(on_each_release)]
async fn nodes_without_their_data_need_no_permission(server: &Place) {
    let zk = client(server).await;
    let hidden = AclList::from_iter([digest_id("ann", "x").may(Perms::ALL)]);
    zk.create("/c", b"").await.unwrap();
    zk.create("/c/a", b"").acl(&hidden).await.unwrap();
    let cache = Cache::children(&zk, "/c").without_data().start().unwrap();
    let told = zk.exists("/c/a").await.map(drop);
    assert_eq!(within(cache.ready()).await, told);
    if told.is_err() {
        return;
    }
    let mut events = cache.events();
    for (is_created, name) in [(true, "/c/b"), (false, "/c/a"), (false, "/c/b"), (true, "/c/a")] {
        match is_created {
            true => drop(zk.create(name, b"").acl(&hidden).await.unwrap()),
            false => zk.delete(name).await.unwrap(),
        }
        let told = match within(events.next()).await {
            Some(CacheEvent::Created(node)) => (true, node.path),
            Some(CacheEvent::Deleted(node)) => (false, node.path),
            other => panic!("{other:?}"),
        };
        assert_eq!(told, (is_created, name.into()));
    }
    let owner = server.options().auth("digest", "ann:x").connect().await.unwrap();
    owner.set("/c/a", b"new").await.unwrap();
    let told = within(events.next()).await;
    assert!(
        matches!(&told, Some(CacheEvent::Changed { new, .. }) if &*new.path == "/c/a"),
        "{told:?}"
    );
    assert_eq!(cache.state(), CacheState::Following);
}

/// As from a backup: what the next session reads is older than the copy, and has other zxids.
#[test_with(on_each_release)]
async fn cache_follows_servers_that_were_set_back(restored: &Place) {
    let server = TestServer::start().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    for path in ["/c", "/c/a", "/c/b"] {
        zk.create(path, b"before").await.unwrap();
    }
    for _ in 0..200 {
        zk.set("/c/a", b"before").await.unwrap();
    }
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    closed(&zk).await;

    let zk = client(restored).await;
    for path in ["/c", "/c/a"] {
        zk.create(path, b"restored").await.unwrap();
    }
    cache.move_to(&zk);
    converged(&cache, &zk, "/c", 1).await;
    zk.set("/c/a", b"behind").await.unwrap();
    converged(&cache, &zk, "/c", 1).await;
}

/// There is always something that has changed since the last answer.
#[tokio::test]
async fn cache_follows_what_never_rests() {
    for release in [Release::V3_5, Release::V3_9] {
        let mut config = Config::default();
        let latency = Duration::from_millis(10);
        (config.release, config.latency) = (release, latency);
        let server = TestServer::start_with(config).await.unwrap();
        let zk = Client::connect(&server.connect_string()).await.unwrap();
        zk.create("/c", b"").await.unwrap();
        let writer = Client::connect(&server.connect_string()).await.unwrap();
        let writes = async {
            let (mut ticks, mut under_way) = (interval(latency / 20), VecDeque::new());
            loop {
                ticks.tick().await;
                under_way.push_back(writer.set("/c", b"new").submit());
                if under_way.len() > 100 {
                    under_way.pop_front().unwrap().await.unwrap();
                }
            }
        };
        let followed = async {
            let cache = Cache::subtree(&zk, "/c").start().unwrap();
            within(cache.ready()).await.unwrap();
        };
        tokio::select! {
            () = writes => {}
            () = followed => {}
        }
    }
}

/// What it was reading stays as it was known.
#[test_with(on_each_release)]
async fn session_that_is_closed_in_a_read_takes_nothing_away(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"old").await.unwrap();
    other.create("/c/x", b"old").await.unwrap();
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let (known, mut events) = (seen(cache.nodes()), cache.events());
    let reads = proxy.on(Match::requests()).hold();
    other.set("/c/x", b"new").await.unwrap();
    within(reads.fired()).await;
    // Nothing is confirmed any more.
    let _ = within(zk.close()).await;
    let ended = CacheEvent::Ended(SessionEnd::Closed);
    assert_eq!(within(events.next()).await, Some(ended));
    let state = CacheState::Ended(SessionEnd::Closed);
    assert_eq!((seen(cache.nodes()), cache.state()), (known, state));
}

#[test_with(on_each_release)]
async fn slow_listener_resyncs_and_drop_unwatches(server: &Place) {
    let zk = client(server).await;
    zk.create("/c", b"").await.unwrap();
    let cache = Cache::subtree(&zk, "/c").events_max(2).without_data().start().unwrap();
    cache.ready().await.unwrap();
    let mut events = cache.events();
    for child in 0..5 {
        zk.create(&format!("/c/{child}"), b"not copied").await.unwrap();
    }
    converged_without_data(&cache, 6).await;
    let first = events.next().await;
    assert_eq!(first, Some(CacheEvent::Lagged));
    assert!(cache.nodes().iter().all(|node| node.data.is_empty()));
    assert_eq!(cache.get("/c/0").unwrap().stat.data_length, 10);
    drop((cache, events));
    let is_watched = || zk.check_watches("/c", WatchKind::Any);
    if server.has(Feature::PersistentWatches) {
        while is_watched().await.unwrap() {}
    } else if server.has(Feature::WatchCheck) {
        assert!(is_watched().await.unwrap(), "what fires once is left to the server until it does");
    } else {
        let unimplemented = ReadError::Rejected(Rejection::Unimplemented);
        assert_eq!(is_watched().await.unwrap_err(), unimplemented);
    }
}

async fn converged_without_data(cache: &Cache, count: usize) {
    while cache.nodes().len() < count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) async fn follows(cache: &Cache) {
    let following = async {
        while cache.state() != CacheState::Following {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within(following).await;
}

#[test_with(on_each_release)]
async fn unreadable_node_is_absent_and_reported(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    owner.create("/c/open", b"").parents().await.unwrap();
    let acl = AclList::from_iter([zk_client::Acl::creator_all()]);
    owner.create("/c/closed", b"").acl(&acl).await.unwrap();
    let zk = client(server).await;
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    let refused = cache.ready().await.unwrap_err();
    assert_eq!(refused.rejection(), Some(Rejection::NoAuth));
    let paths: Vec<_> = cache.nodes().iter().map(|node| node.path.to_string()).collect();
    assert_eq!(paths, ["/c", "/c/open"]);
    // No event reports what happens to it, but what replaces it.
    owner.delete("/c/closed").await.unwrap();
    if !server.has(Feature::PersistentWatches) {
        // But the list of children is read again where nodes have one watch each.
        follows(&cache).await;
    }
    owner.create("/c/closed", b"open now").await.unwrap();
    converged(&cache, &zk, "/c", 9).await;
}

/// For all who listen, this cache among them, which watches anew.
#[test_with(on_each_release)]
async fn cache_watches_anew_when_its_watches_are_removed(server: &Place) {
    let (zk, other) = (client(server).await, client(server).await);
    other.create("/c/a", b"").parents().await.unwrap();
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let kinds = [WatchKind::Data, WatchKind::Children, WatchKind::Node, WatchKind::Recursive];
    for (number, kind) in kinds.into_iter().enumerate() {
        for path in ["/c", "/c/a"] {
            zk.remove_watches(path, kind).unwrap();
        }
        other.create(&format!("/c/a/{number}"), b"").await.unwrap();
        other.set("/c/a", b"written").await.unwrap();
        converged(&cache, &other, "/c", 9).await;
    }
}

/// Its data were read, but not who its children are.
#[test_with(on_each_release)]
async fn node_whose_children_cannot_be_listed_is_reported(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c/a/x", b"").parents().await.unwrap();
    // Behind the one of the root.
    let refused = proxy.on(Match::reply(OpCode::GET_CHILDREN2).nth(2));
    let refused = refused.rewrite(|reply| refuse_with(reply, ErrorCode::NO_AUTH));
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    let told = within(cache.ready()).await.unwrap_err();
    assert_eq!(told.rejection(), Some(Rejection::NoAuth));
    assert_eq!(refused.times_fired(), 1);
    let paths: Vec<_> = cache.nodes().iter().map(|node| node.path.to_string()).collect();
    assert_eq!(paths, ["/c", "/c/a"]);
    other.set("/c/a", b"written").await.unwrap();
    converged(&cache, &other, "/c", 9).await;
}

/// The first thing that it reads then is answered without a watch, and proves nothing.
#[tokio::test]
async fn cache_that_moves_to_an_older_server_is_behind() {
    let server = TestServer::start().await.unwrap();
    let other = Client::connect(&server.connect_string()).await.unwrap();
    other.create("/c/x", b"old").parents().await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let read = server.on(Match::reply(OpCode::GET_DATA).once()).hold();
    other.set("/c/x", b"new").await.unwrap();
    within(read.fired()).await;
    // A server before 3.6 does not know how persistent watches are armed again.
    let unknown = server.on(Match::reply(OpCode::SET_WATCHES2));
    let unknown = unknown.rewrite(|reply| refuse_with(reply, ErrorCode::UNIMPLEMENTED));
    let listing = server.on(Match::reply(OpCode::GET_CHILDREN2).once()).hold();
    server.drop_connections();
    within(listing.fired()).await;
    assert_eq!(unknown.times_fired(), 1);
    assert_eq!(cache.state(), CacheState::Behind, "the children are not watched yet");
    listing.release();
    converged(&cache, &other, "/c", 1).await;
}
