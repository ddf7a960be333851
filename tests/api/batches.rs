//! Caches that read many nodes with few requests, and what happens meanwhile.

use std::iter::{from_fn, successors};

use zk_client::{Cache, CacheEvent, Client, CreateMode, OpCode};
use zk_proto::ErrorCode;
use zk_testkit::proxy::{Mark, Match, Proxy, RuleHandle};
use zk_tests::{busy::refuse_with, feature::Feature, patience::within, test_with};

use crate::api::{Place, behind_proxy, caches::converged, client, on_each_release};

/// Most reads in one request of a cache.
const TOGETHER_MAX: usize = 32;

/// Creates nodes, in few requests.
async fn plant(zk: &Client, paths: &[String], data: &[u8]) {
    for some in paths.chunks(50) {
        let multi = some
            .iter()
            .fold(zk.multi(), |multi, path| multi.create(path, data, CreateMode::Persistent));
        multi.await.unwrap().unwrap();
    }
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number:04}")).collect()
}

/// Reads of nodes, reads of children, requests with several reads, and questions whether a node exists, since then.
fn reads(proxy: &Proxy, mark: Mark) -> [u64; 4] {
    let counts = proxy.frames_since(mark).counts();
    [OpCode::GET_DATA, OpCode::GET_CHILDREN2, OpCode::MULTI_READ, OpCode::EXISTS]
        .map(|op| counts.requests(op))
}

/// Has the server refuse to read several nodes in one request.
fn refuse_together(proxy: &Proxy, replies: Match) -> RuleHandle {
    proxy.on(replies).rewrite(|reply| refuse_with(reply, ErrorCode::UNIMPLEMENTED))
}

/// A reply to what a cache reads as it loads, behind that for its root.
fn early_reply(server: &Place) -> Match {
    let together = server.has(Feature::MultiRead);
    Match::reply(if together { OpCode::MULTI_READ } else { OpCode::GET_DATA }).nth(2)
}

#[test_with(on_each_release)]
async fn cache_reads_many_nodes_in_few_requests(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    let parents = numbered("/c/", 20);
    plant(&other, &parents, b"parent").await;
    for parent in &parents {
        plant(&other, &numbered(&format!("{parent}/"), 10), b"child").await;
    }
    plant(&other, &numbered("/c/leaf", 140), b"leaf").await;
    let nodes = 1 + 20 * 11 + 140;

    let mark = proxy.mark();
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let asked = reads(&proxy, mark);
    if server.has(Feature::MultiRead) {
        // The first ones have fewer reads, until it is known how long replies are.
        assert!(asked.iter().sum::<u64>() < nodes / TOGETHER_MAX as u64 + 40, "{asked:?}");
        assert_eq!(asked[3], 0, "what has been read exists");
    } else {
        assert_eq!(asked[..3], [nodes, nodes, 0], "with the watches of each node");
        // Of the root, and once more to hear from the connection that the attempt at one watch for all may have cost.
        assert!((1..=2).contains(&asked[3]), "{asked:?}");
    }
    converged(&cache, &other, "/c", 9).await;

    let mut events = cache.events();
    for path in ["/c", "/c/0007", "/c/0007/0003"] {
        let mark = proxy.mark();
        other.set(path, b"new").await.unwrap();
        let told = within(events.next()).await;
        assert!(matches!(told, Some(CacheEvent::Changed { new, .. }) if &*new.path == path));
        // The root may be missing, and is watched for that.
        let existence = u64::from(path == "/c" && !server.has(Feature::MultiRead));
        assert_eq!(reads(&proxy, mark), [1, 0, 0, existence], "a change is one read");
    }
    let mark = proxy.mark();
    other.create("/c/0007/new", b"").await.unwrap();
    let told = within(events.next()).await;
    assert!(matches!(told, Some(CacheEvent::Created(node)) if &*node.path == "/c/0007/new"));
    // Where the parent has a watch of its own, it is listed anew.
    let listed = u64::from(!server.has(Feature::MultiRead)) * 2;
    assert_eq!(reads(&proxy, mark), [1, listed, 0, 0], "a new node is read once");
}

/// The parent's metadata tell of no children, and its own read is over: only an event tells of the child.
#[test_with(on_each_release)]
async fn child_born_behind_its_parents_read_is_seen(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    let leaves = numbered("/c/", 20);
    plant(&other, &leaves, b"").await;
    for read in 1..=3 {
        let held = proxy.on(early_reply(server)).hold();
        let cache = Cache::subtree(&zk, "/c").start().unwrap();
        within(held.fired()).await;
        for leaf in &leaves {
            other.create(&format!("{leaf}/{read}/below"), b"").parents().await.unwrap();
        }
        held.release();
        converged(&cache, &other, "/c", 9).await;
    }
}

/// A node may come and go while the copy is being read: what was read last counts.
#[test_with(on_each_release)]
async fn changes_behind_reads_win(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    plant(&other, &numbered("/c/", 100), b"old").await;
    for round in 0..3 {
        let held = proxy.on(early_reply(server)).hold();
        let cache = Cache::subtree(&zk, "/c").start().unwrap();
        within(held.fired()).await;
        for path in numbered("/c/", 100).iter().step_by(3) {
            other.delete_recursive(path).await.unwrap();
            if round % 2 == 0 {
                other.create(&format!("{path}/below"), b"new").parents().await.unwrap();
            }
        }
        other.set("/c/0001", b"new").await.unwrap();
        other.create(&format!("/c/later{round}"), b"new").await.unwrap();
        if round == 2 {
            proxy.reset_all();
        }
        held.release();
        converged(&cache, &other, "/c", 9).await;
        for path in numbered("/c/", 100).iter().step_by(3) {
            let _ = other.create(path, b"old").await;
        }
    }
}

/// A reading that is broken off tells nothing of the nodes that it has not come to.
#[test_with(on_each_release)]
async fn nodes_stay_while_they_are_read_again(server: &Place) {
    if !server.has(Feature::MultiRead) {
        // Their watches tell what has happened meanwhile: nothing is read again.
        return;
    }
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    // Those below are read when those above were.
    for depth in 0..3 {
        let below = "/0000".repeat(depth);
        plant(&other, &numbered(&format!("/c{below}/"), 40), b"").await;
    }
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let mut events = cache.events();
    for _ in 0..3 {
        let cut = proxy.on(early_reply(server)).cut();
        proxy.reset_all();
        within(cut.fired()).await;
        converged(&cache, &other, "/c", 9).await;
    }
    other.create("/c/last", b"").await.unwrap();
    loop {
        match within(events.next()).await.unwrap() {
            CacheEvent::Deleted(node) => panic!("{} was there all the time", node.path),
            CacheEvent::Created(node) if &*node.path == "/c/last" => break,
            _ => {}
        }
    }
}

#[test_with(on_each_release)]
async fn refused_batch_is_read_one_by_one(server: &Place) {
    if !server.has(Feature::MultiRead) {
        return;
    }
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    plant(&other, &numbered("/c/", 100), b"data").await;
    let refused = refuse_together(&proxy, Match::reply(OpCode::MULTI_READ));
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    assert!(refused.times_fired() > 0);
    converged(&cache, &other, "/c", 9).await;

    let mark = proxy.mark();
    plant(&other, &numbered("/c/more", 100), b"data").await;
    converged(&cache, &other, "/c", 9).await;
    assert_eq!(reads(&proxy, mark)[2], 0, "a server refuses once");
}

/// Lengths are not known before, and a reply that is too long costs the connection.
#[test_with(on_each_release)]
async fn batch_with_too_long_a_reply_is_split(server: &Place) {
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let options = server.options_by(&proxy.connect_string()).reply_len_max(32 << 10);
    let zk = within(options.connect()).await.unwrap();
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    plant(&other, &numbered("/c/long", 80), &[7; 4 << 10]).await;
    // Listings are in no order, and reads in that of the paths: many are read together when the long ones come.
    plant(&other, &numbered("/c/a", 700), b"short").await;
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    converged(&cache, &other, "/c", 9).await;
    if server.has(Feature::MultiRead) {
        assert!(proxy.accepted() > 1, "no reply was too long");
    }
}

/// Of a chain of nodes, the first batch holds the upper ones, the next one those below, and the first one fails as a
/// whole.
#[test_with(on_each_release)]
async fn child_read_before_its_parent_is_kept(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    plant(&other, &numbered("/c/", 4 * TOGETHER_MAX), b"").await;
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let held = proxy.on(Match::notification().once()).hold();
    let _refused = refuse_together(&proxy, Match::reply(OpCode::MULTI_READ).once());
    let deeper = |path: &String| Some(format!("{path}/p"));
    let chain: Vec<_> = successors(Some("/c/p".to_owned()), deeper).take(90).collect();
    let multi = chain
        .iter()
        .fold(other.multi(), |multi, path| multi.create(path, b"", CreateMode::Persistent));
    multi.await.unwrap().unwrap();
    other.sync("/").await.unwrap();
    within(held.fired()).await;
    held.release();
    converged(&cache, &other, "/c", 99).await;
}

/// More than are kept for a listener.
#[test_with(on_each_release)]
async fn changes_during_a_long_read_do_not_repeat_it(server: &Place) {
    if !server.has(Feature::MultiRead) {
        return;
    }
    let proxy = Proxy::start(server.addr()).await.unwrap();
    let options = server.options_by(&proxy.connect_string()).watch_items_max(40);
    let zk = within(options.connect()).await.unwrap();
    let other = client(server).await;
    other.create("/c", b"").await.unwrap();
    let paths = numbered("/c/", 3000);
    plant(&other, &paths, b"old").await;

    let requests = [40, 55, 70, 85].map(|nth| Match::request(OpCode::MULTI_READ).nth(nth));
    let pauses = requests.map(|request| proxy.on(request).hold());
    let told = proxy.on(Match::notification()).watch();
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    let mut events = cache.events();
    let mut changes = 0;
    for pause in &pauses {
        within(pause.fired()).await;
        for path in paths.iter().skip(changes).take(30) {
            other.set(path, b"new").await.unwrap();
            changes += 1;
        }
        within(told.fired_times(changes as u64)).await;
        pause.release();
    }
    converged_shallow(&cache, &other, &paths).await;
    let loaded = from_fn(|| events.try_next()).filter(|event| *event == CacheEvent::Loaded);
    assert_eq!(loaded.count(), 1);
}

/// Waits until the copy has the data of these nodes.
async fn converged_shallow(cache: &Cache, zk: &Client, paths: &[String]) {
    within(cache.ready()).await.unwrap();
    for some in paths.chunks(200) {
        let reads: Vec<_> = some.iter().map(|path| (path, zk.get(path).submit())).collect();
        for (path, read) in reads {
            let (data, stat) = read.await.unwrap();
            let kept = cache.get(path).unwrap();
            assert_eq!((kept.data, kept.stat.mzxid), (data, stat.mzxid), "{path}");
        }
    }
}
