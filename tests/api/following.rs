//! Caches that follow whatever is drawn for their nodes and their connections, and say so only when they do.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use zk_client::{
    Acl, AclList, Cache, CacheEvent, CacheEvents, CacheState, CachedNode, CallOptions, Client,
    CreateMode, OpCode, SessionState,
    path::{join, parent},
};
use zk_testkit::{
    proxy::{Match, Proxy, RuleHandle},
    real::Release,
    sim::Rng,
};
use zk_tests::{
    busy::{Busy, too_busy_for},
    feature::Feature,
    patience::{LIMIT, closed, within},
    site::Kind,
    test_with,
};

use crate::api::{
    Place, behind_proxy,
    caches::{converged, seen, truth},
    client, on_each_release,
    place::on_each_of,
};

/// A cache, and what a listener has made of its events.
struct Followed {
    name: &'static str,
    cache: Cache,
    events: CacheEvents,
    told: BTreeMap<String, CachedNode>,
    depth: usize,
    with_data: bool,
}

impl Followed {
    fn all(zk: &Client) -> [Self; 5] {
        let node = Cache::node(zk, "/c").start();
        let children = Cache::children(zk, "/c").start();
        let tree = Cache::subtree(zk, "/c").start();
        let names = Cache::children(zk, "/c").without_data().start();
        let lean_tree = Cache::subtree(zk, "/c").without_data().start();
        let new = |name, cache: Result<Cache, _>, depth, with_data| {
            let cache: Cache = cache.unwrap();
            let (events, told) = (cache.events_from_the_start(), BTreeMap::new());
            Self { name, cache, events, told, depth, with_data }
        };
        [
            new("node", node, 0, true),
            new("children", children, 1, true),
            new("tree", tree, 9, true),
            new("children without data", names, 1, false),
            new("tree without data", lean_tree, 9, false),
        ]
    }

    /// Takes part in every event, which must fit the earlier ones.
    fn listen(&mut self) {
        while let Some(event) = self.events.try_next() {
            match event {
                CacheEvent::Created(node) => {
                    let above = parent(&node.path).filter(|_| &*node.path != "/c");
                    assert!(above.is_none_or(|above| self.told.contains_key(above)), "{node:?}");
                    let before = self.told.insert(node.path.to_string(), node);
                    assert_eq!(before, None, "{}", self.name);
                }
                CacheEvent::Changed { old, new } => {
                    assert!(old.stat.mzxid < new.stat.mzxid);
                    let before = self.told.insert(new.path.to_string(), new);
                    assert_eq!(before.unwrap().stat.mzxid, old.stat.mzxid, "{}", self.name);
                }
                CacheEvent::Deleted(node) => {
                    let before = self.told.remove(&*node.path);
                    assert_eq!(before.unwrap().stat.mzxid, node.stat.mzxid, "{}", self.name);
                }
                CacheEvent::Loaded => {}
                other => panic!("{}: {other:?}", self.name),
            }
        }
    }

    /// Waits until the copy equals the tree, and says so.
    async fn converges(&mut self, zk: &Client, context: &str) {
        let mut expected = truth(zk, "/c", self.depth).await;
        if !self.with_data {
            expected.values_mut().for_each(|(data, ..)| data.clear());
        }
        let is_equal =
            || self.cache.state() == CacheState::Following && seen(self.cache.nodes()) == expected;
        let done = async {
            while !is_equal() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if tokio::time::timeout(LIMIT, done).await.is_err() {
            let (name, state) = (self.name, self.cache.state());
            let seen = seen(self.cache.nodes());
            panic!("{context}, {name}, {state:?}: {seen:?} where {expected:?} was due");
        }
        self.listen();
        let told = seen(self.told.values().cloned());
        assert_eq!(told, expected, "{context}, {}: told", self.name);
    }
}

/// One step of the clients that change nodes, alone or several at once. Refusals are part of it.
async fn meddle(zk: &Client, rng: &mut Rng) {
    let path = match rng.below(4) {
        0 => "/c".to_owned(),
        1 => format!("/c/{}", rng.below(3)),
        _ => format!("/c/{}/{}", rng.below(3), rng.below(2)),
    };
    let data = rng.below(1000).to_string();
    let data = data.as_bytes();
    let mode = if rng.below(3) == 0 { CreateMode::Ephemeral } else { CreateMode::Persistent };
    let there = truth(zk, &path, 9).await;
    let mut several = zk.multi();
    // Servers delete leaves.
    let delete_all = there.keys().rev();
    let below = [join(&path, "0"), join(&path, "1")];
    match rng.below(8) {
        0 => return drop(zk.create(&path, data).mode(mode).await),
        1 => return drop(zk.create(&path, data).parents().await),
        2 => return drop(zk.set(&path, data).await),
        3 => return drop(zk.delete_recursive(&path).await),
        // Another in its place, perhaps of another mode.
        4 => {
            for path in delete_all {
                several = several.delete(path);
            }
            several = several.create(&path, data, mode);
            if mode == CreateMode::Persistent && rng.below(2) == 0 {
                several = several.create(&below[0], data, CreateMode::Persistent);
            }
        }
        // Come and gone, or gone, come and gone.
        5 => {
            for path in delete_all {
                several = several.delete(path);
            }
            several = several.create(&path, data, mode).delete(&path);
        }
        6 => {
            several = several.create(&path, data, CreateMode::Persistent);
            for path in &below {
                several = several.create(path, data, mode).set(path, b"at once");
            }
        }
        _ => several = several.set(&path, data).set("/c", data),
    }
    let _ = several.await;
}

/// What troubles a client's connection.
struct Troubles {
    proxy: Proxy,
    /// How many reads are to be turned away from now on.
    reads: Arc<AtomicU64>,
    busy: Busy,
    rules: Vec<RuleHandle>,
}

impl Troubles {
    async fn new(server: &Place) -> Self {
        let proxy = Proxy::start(server.addr()).await.unwrap();
        let reads = Arc::new(AtomicU64::new(0));
        let left = reads.clone();
        let ops = [
            OpCode::EXISTS,
            OpCode::GET_DATA,
            OpCode::GET_CHILDREN2,
            OpCode::MULTI_READ,
            OpCode::ADD_WATCH,
        ];
        let reading = Match::requests().when(move |frame| {
            let less = |left: u64| left.checked_sub(1);
            frame.op.is_some_and(|op| ops.contains(&op))
                && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
        });
        // In front of all other rules: of frames that several are about the first one decides.
        let busy = too_busy_for(&proxy, reading);
        Self { proxy, reads, busy, rules: Vec::new() }
    }

    /// One trouble, or none.
    fn draw(&mut self, rng: &mut Rng) {
        let on = |frames| self.proxy.on(frames);
        let rule = match rng.below(8) {
            0 => return self.proxy.reset_all(),
            1 => on(Match::replies().once()).reset(),
            2 => on(Match::replies().nth(3)).after_forwarding_bytes(9).reset(),
            3 => on(Match::notification().once()).cut(),
            4 => on(Match::replies().times(3)).delay(Duration::from_millis(3)),
            5 => return self.reads.store(rng.below(4) + 1, Ordering::Relaxed),
            _ => return,
        };
        self.rules.push(rule);
    }

    fn end(&mut self) {
        self.rules.clear();
        self.reads.store(0, Ordering::Relaxed);
    }
}

/// The releases that differ in their watches.
const RELEASES: [Kind; 8] = [
    Kind::InProcess(Release::V3_4),
    Kind::InProcess(Release::V3_5),
    Kind::InProcess(Release::V3_6),
    Kind::InProcess(Release::V3_9),
    Kind::Real(Release::V3_4),
    Kind::Real(Release::V3_5),
    Kind::Real(Release::V3_6),
    Kind::Real(Release::V3_9),
];

/// `ZK_TEST_RUNS` is how many seeds are drawn on each server.
fn runs(server: &Place) -> u64 {
    match env::var("ZK_TEST_RUNS") {
        Ok(number) => number.parse().expect("ZK_TEST_RUNS must be a number"),
        Err(_) if server.is_real() => 4,
        Err(_) => 12,
    }
}

#[test]
fn caches_equal_their_tree_after_faults() {
    on_each_of(&RELEASES, async |server| {
        let mut turned_away = 0;
        for seed in 0..runs(server) {
            let other = client(server).await;
            let _ = other.delete_recursive("/c").await;
            let mut rng = Rng::new(seed);
            let mut troubles = Troubles::new(server).await;
            // So few that caches lag now and then.
            let options = server.options_by(&troubles.proxy.connect_string()).watch_items_max(6);
            let zk = within(options.connect()).await.unwrap();
            let mut caches = Followed::all(&zk);
            for round in 0..6 {
                for _ in 0..8 {
                    troubles.draw(&mut rng);
                    within(meddle(&other, &mut rng)).await;
                }
                troubles.end();
                for cache in &mut caches {
                    cache.converges(&other, &format!("seed {seed}, round {round}")).await;
                }
            }
            turned_away += troubles.busy.turned_away();
            closed(&zk).await;
            closed(&other).await;
        }
        assert!(turned_away > 0);
    });
}

/// What tells of changes while watches are still being asked for again is the change of everything in between.
#[test_with(on_each_release)]
async fn cache_is_current_only_with_its_watches(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c/a", b"old").parents().await.unwrap();
    let caches = [Cache::node(&zk, "/c"), Cache::children(&zk, "/c"), Cache::subtree(&zk, "/c")]
        .map(|cache| cache.start().unwrap());
    for cache in &caches {
        within(cache.ready()).await.unwrap();
    }
    let persistent = server.has(Feature::PersistentWatches);
    let restore = if persistent { OpCode::SET_WATCHES2 } else { OpCode::SET_WATCHES };
    let held = proxy.on(Match::reply(restore).once()).hold();
    proxy.reset_all();
    within(held.fired()).await;
    for path in ["/c", "/c/a"] {
        other.set(path, b"new").await.unwrap();
    }
    assert!(matches!(zk.session().state(), SessionState::Connected { .. }));
    for _ in 0..300 {
        for cache in &caches {
            assert_eq!(cache.state(), CacheState::Behind);
        }
        tokio::task::yield_now().await;
    }
    // Nor before what they tell of is read.
    let reads = [OpCode::GET_DATA, OpCode::MULTI_READ];
    let reads = Match::replies().when(move |reply| reply.op.is_some_and(|op| reads.contains(&op)));
    let read = proxy.on(reads).hold();
    held.release();
    within(read.fired()).await;
    for _ in 0..300 {
        for cache in &caches {
            assert_eq!(cache.state(), CacheState::Behind);
        }
        tokio::task::yield_now().await;
    }
    drop(read);
    for (cache, depth) in caches.iter().zip([0, 1, 9]) {
        converged(cache, &other, "/c", depth).await;
    }
}

#[test_with(on_each_release)]
async fn cache_losing_its_connection_is_behind(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c", b"old").await.unwrap();
    let cache = Cache::node(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let read = proxy.on(Match::reply(OpCode::GET_DATA)).hold();
    let dialed = proxy.on(Match::connect_request()).hold();
    other.set("/c", b"new").await.unwrap();
    within(read.fired()).await;
    proxy.reset_all();
    within(dialed.fired()).await;
    let behind = async {
        while cache.state() != CacheState::Behind {
            tokio::task::yield_now().await;
        }
    };
    within(behind).await;
    drop((read, dialed));
    converged(&cache, &other, "/c", 0).await;
}

/// Its reads go on for as long as the session lives, whatever single requests of its client would put up with.
#[test_with(on_each_release)]
async fn cache_ignores_the_clients_call_options(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/c/a", b"").parents().await.unwrap();
    let hasty = zk.with(CallOptions::new().timeout(Duration::from_millis(1)).fail_fast());
    let corked = zk.cork();
    let dialed = proxy.on(Match::connect_request()).hold();
    proxy.reset_all();
    within(dialed.fired()).await;
    let caches = [
        Cache::subtree(&hasty, "/c").start().unwrap(),
        Cache::subtree(&corked, "/c").start().unwrap(),
    ];
    let slow = proxy.on(Match::replies().times(4)).delay(Duration::from_millis(10));
    drop(dialed);
    for cache in &caches {
        within(cache.ready()).await.unwrap();
    }
    other.create("/c/b", b"").await.unwrap();
    for cache in &caches {
        converged(cache, &other, "/c", 9).await;
    }
    drop((slow, corked));
}

#[test_with(on_each_release)]
async fn throttled_cache_is_soon_ready(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    for node in 0..40 {
        zk.create(&format!("/c/{node:02}"), b"").parents().await.unwrap();
    }
    let (seen, several) = (Mutex::new(BTreeSet::new()), AtomicU64::new(0));
    let first_reads = Match::requests().when(move |frame| match frame.op {
        Some(op @ (OpCode::GET_DATA | OpCode::GET_CHILDREN2)) => {
            seen.lock().unwrap().insert((op.0, frame.path.clone()))
        }
        // Of these, every other.
        Some(OpCode::MULTI_READ) => several.fetch_add(1, Ordering::Relaxed) % 2 == 0,
        _ => false,
    });
    let busy = too_busy_for(&proxy, first_reads);
    let since = Instant::now();
    let cache = Cache::children(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap();
    let took = since.elapsed();
    assert_eq!(cache.nodes().len(), 41);
    // Several nodes are read in one request, by and by.
    let least = if server.has(Feature::PersistentWatches) { 5 } else { 41 };
    assert!(busy.turned_away() >= least, "{}", busy.turned_away());
    // Pauses one behind the other would take 8 s; they take a tenth of one, and machines may be slow.
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// No event reports nodes that may not be read, nor their children.
#[test_with(on_each_release)]
async fn readable_again_node_brings_its_children(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    owner.create("/c/closed/below", b"").parents().await.unwrap();
    let mine = AclList::from_iter([Acl::creator_all()]);
    let open = AclList::from_iter([Acl::open_unsafe()]);
    owner.set_acl("/c/closed", &mine).await.unwrap();
    let zk = client(server).await;
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap_err();
    assert_eq!(cache.nodes().len(), 1);
    owner.set_acl("/c/closed", &open).await.unwrap();
    owner.set("/c/closed", b"open").await.unwrap();
    converged(&cache, &owner, "/c", 9).await;
    if server.has(Feature::PersistentWatches) {
        return;
    }

    // Refused by a write, not by the first read; in the end, another node is in its place.
    for is_replaced in [false, true] {
        owner.set_acl("/c/closed", &mine).await.unwrap();
        let mut events = cache.events();
        owner.set("/c/closed", b"closed").await.unwrap();
        while !matches!(within(events.next()).await, Some(CacheEvent::Deleted(_))) {}
        owner.set_acl("/c/closed", &open).await.unwrap();
        if is_replaced {
            owner.delete("/c/closed/below").await.unwrap();
            let multi = owner.multi().delete("/c/closed");
            let multi = multi.create("/c/closed", b"", CreateMode::Persistent);
            multi.await.unwrap().unwrap();
            owner.create("/c/closed/below", b"").await.unwrap();
        } else {
            owner.set("/c/closed", b"open again").await.unwrap();
        }
        converged(&cache, &owner, "/c", 9).await;
    }
}

/// No event tells that a refused node has gone, but one that what was above it has.
#[test_with(on_each_release)]
async fn refused_node_goes_with_what_is_above_it(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    owner.create("/c/a/closed", b"").parents().await.unwrap();
    owner.create("/c/ab", b"").await.unwrap();
    let mine = AclList::from_iter([Acl::creator_all()]);
    owner.set_acl("/c/a/closed", &mine).await.unwrap();
    let zk = client(server).await;
    let cache = Cache::subtree(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap_err();
    owner.delete("/c/a/closed").await.unwrap();
    owner.delete("/c/a").await.unwrap();
    converged(&cache, &owner, "/c", 9).await;
}

/// The write is while the session is between two connections: the next server tells of it.
#[test_with(on_each_release)]
async fn refused_node_is_read_after_a_reconnect(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    owner.create("/c/closed", b"").parents().await.unwrap();
    owner.set_acl("/c/closed", &AclList::from_iter([Acl::creator_all()])).await.unwrap();
    let (proxy, zk) = behind_proxy(server).await;
    let cache = Cache::children(&zk, "/c").start().unwrap();
    within(cache.ready()).await.unwrap_err();
    let dialed = proxy.on(Match::connect_request()).hold();
    proxy.reset_all();
    within(dialed.fired()).await;
    owner.set_acl("/c/closed", &AclList::from_iter([Acl::open_unsafe()])).await.unwrap();
    owner.set("/c/closed", b"open").await.unwrap();
    drop(dialed);
    converged(&cache, &owner, "/c", 2).await;
}
