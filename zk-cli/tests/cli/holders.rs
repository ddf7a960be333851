//! `zk holders`.

use rustix::process::Signal;
use zk_client::{Acl, AclList, Client, ConnectOptions};
use zk_locks::{
    CohortLock, DurableLock, Election, Lock, RwLock, Semaphore, SimpleLock, zk_client::CreateMode,
};
use zk_testkit::{TestServer, proxy::Match, real::Release};

use crate::support::{Running, World, must, run, zk};

#[tokio::test]
async fn unused_lock_has_an_empty_queue() {
    let world = World::new().await;
    let text = world.run(["holders", "/none"]).await.ok();
    assert_eq!(text, "/none: no holder, no waiters: no such node\n");
    let json = world.run(["holders", "--json", "/none"]).await.json();
    assert_eq!(json, serde_json::json!({"path": "/none", "exists": false, "queue": []}));
    world.run(["create", "-p", "/some/lock"]).await.ok();
    let text = world.run(["holders", "/some"]).await.ok();
    let advice = "    zk holders -R /some lists the locks below it\n";
    assert_eq!(text, format!("/some: no holder, no waiters\n{advice}"));
}

#[tokio::test]
async fn holder_is_listed_first_then_waiters() {
    let world = World::new().await;
    let mut held = world.lock(&["--description", "the holder"], "/l", "echo ready; read -r go");
    held.line().await;
    let mut waiting = world.lock(&["--description", "a\tb\x1b[1m"], "/l", "echo ready");
    let queue = world.queue_of("/l", 2).await;

    let text = world.run(["holders", "/l"]).await.ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, (place, contender)) in lines[1..]
        .iter()
        .zip([("1  holds  exclusive", &queue[0]), ("2  waits  exclusive", &queue[1])])
    {
        assert!(line.starts_with(place), "{text}");
        assert!(line.ends_with(&contender.name), "{text}");
        assert!(line.contains(&contender.token.to_string()), "{text}");
        assert!(line.contains(&contender.session.to_string()), "{text}");
    }
    assert!(lines[1].contains("the holder"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");

    let json = world.run(["holders", "--json", "/l"]).await.json();
    for (index, contender) in queue.iter().enumerate() {
        let entry = &json["queue"][index];
        assert_eq!(entry["position"], index + 1);
        assert_eq!(entry["holds"], index == 0);
        assert_eq!(entry["node"], contender.name);
        assert_eq!(entry["kind"], "exclusive");
        assert_eq!(entry["sequence"], contender.sequence.unwrap());
        assert_eq!(entry["session"], contender.session.to_string());
        assert_eq!(entry["since_ms"], contender.since);
        assert_eq!(entry["token"], contender.token.get());
        assert_eq!(entry["description"], *contender.description());
        // One machine, one clock; and a test takes less than an hour.
        assert!((0..3_600_000).contains(&entry["age_ms"].as_i64().unwrap()), "{entry}");
    }
    held.tell("go").await;
    held.ended().await.ok();
    assert_eq!(waiting.line().await, "ready");
    waiting.ended().await.ok();
}

/// State, kind and description of each, as far as it is to be read in JSON.
async fn seen(world: &World, path: &str) -> Vec<String> {
    let json = world.run(["holders", "--json", path]).await.json();
    let queue = json["queue"].as_array().unwrap();
    let text = |entry: &serde_json::Value| {
        let state = if entry["holds"] == true { "holds" } else { "waits" };
        let (kind, who) = (entry["kind"].as_str().unwrap(), entry["description"].as_str().unwrap());
        format!("{state} {kind} {who}")
    };
    queue.iter().map(text).collect()
}

#[tokio::test]
async fn holders_of_every_kind_of_lock_are_shown() {
    let world = World::new().await;
    let zk = &world.client;

    let rw = RwLock::builder(zk, "/rw").description("me").build();
    let _readers = (rw.read().await.unwrap(), rw.read().await.unwrap());
    assert_eq!(seen(&world, "/rw").await, ["holds read me", "holds read me"]);

    let semaphore = Semaphore::builder(zk, "/s").description("me").build().with_permits(1);
    let _permit = semaphore.acquire().await.unwrap();
    let waiting = tokio::spawn(async move { semaphore.acquire().await });
    world.queue_of("/s/locks", 1).await;
    assert_eq!(seen(&world, "/s").await, ["holds lease me", "waits exclusive me"]);
    waiting.abort();

    let _lead = Election::new(zk, "/e").campaign(b"me").await.unwrap();
    assert_eq!(seen(&world, "/e").await, ["holds lead me"]);

    let cohort = CohortLock::builder(zk, "/c").description("us").build();
    let _one = cohort.acquire().await.unwrap();
    let _other = tokio::spawn(async move { cohort.acquire().await.map(drop) });
    assert_eq!(seen(&world, "/c").await, ["holds exclusive us"]);

    let _simple = SimpleLock::builder(zk, "/simple").description("me").build().acquire().await;
    let simple = seen(&world, "/simple").await;
    assert!(simple[0].starts_with("holds simple") && simple[0].ends_with("me"), "{simple:?}");

    let durable = DurableLock::builder(zk, "/d").description("me").build().owned_by("db-1");
    let _durable = durable.acquire().await.unwrap();
    assert_eq!(seen(&world, "/d").await, ["holds durable me"]);
    let other = durable.clone().owned_by("db-2");
    let waiting = tokio::spawn(async move { other.acquire().await.map(drop) });
    world.queue_of("/d/locks", 1).await;
    assert_eq!(seen(&world, "/d").await, ["holds durable me", "waits exclusive me"]);
    waiting.abort();

    // As kazoo's semaphore has them.
    zk.create("/k", b"1").await.unwrap();
    zk.create("/k-__lock__", b"").await.unwrap();
    let hex = "0123456789abcdef0123456789abcdef";
    let create = zk.create("/k/0123456789abcdef0123456789abcdef", b"them");
    create.mode(CreateMode::Ephemeral).await.unwrap();
    let waiter = format!("/k-__lock__/{hex}__lock__");
    zk.create(&waiter, b"them").mode(CreateMode::EphemeralSequential).await.unwrap();
    assert_eq!(seen(&world, "/k").await, ["holds lease them", "waits exclusive them"]);
}

/// Permits are numbered by themselves, and so are those who wait for one.
#[tokio::test]
async fn permits_are_listed_before_waiters_with_lower_numbers() {
    let world = World::new().await;
    let semaphore =
        |who| Semaphore::builder(&world.client, "/s").description(who).build().with_permits(2);
    // One place in the queue for two permits.
    let both = semaphore("both");
    for _ in 0..5 {
        let permits = must("both permits", both.acquire_many(2)).await.unwrap();
        must("the release", permits.release()).await.unwrap();
    }
    let _one = must("one permit", semaphore("one").acquire()).await.unwrap();
    let _two = must("the other", semaphore("two").acquire()).await.unwrap();
    for (place, who) in [(1, "three"), (2, "four")] {
        let waiting = semaphore(who);
        let _waits = tokio::spawn(async move { waiting.acquire().await.map(drop) });
        world.queue_of("/s/locks", place).await;
    }
    let json = world.run(["holders", "--json", "/s"]).await.json();
    let queue = json["queue"].as_array().unwrap();
    let numbers = |holds: bool| {
        let group = queue.iter().filter(move |entry| entry["holds"] == holds);
        group.map(|entry| entry["sequence"].as_i64().unwrap())
    };
    assert!(numbers(true).min() > numbers(false).max(), "{json}");
    let places: Vec<_> = queue.iter().map(|entry| entry["position"].as_i64().unwrap()).collect();
    assert_eq!(places, [1, 2, 3, 4]);
    assert_eq!(
        seen(&world, "/s").await,
        ["holds lease one", "holds lease two", "waits exclusive three", "waits exclusive four"]
    );
}

#[tokio::test]
async fn all_locks_below_a_path_are_shown() {
    let world = World::new().await;
    let zk = &world.client;
    let _one = Lock::new(zk, "/locks/deep/down/one").acquire().await.unwrap();
    let _two = Lock::new(zk, "/locks/two").acquire().await.unwrap();
    let semaphore = Semaphore::new(zk, "/locks/three", 2);
    let _permit = semaphore.acquire().await.unwrap();
    // Neither is a lock: the one is nobody's, the other has no number.
    zk.create("/locks/jobs/j-", b"")
        .mode(CreateMode::PersistentSequential)
        .parents()
        .await
        .unwrap();
    zk.create("/locks/plain", b"").mode(CreateMode::Ephemeral).await.unwrap();
    let listed = world.run(["holders", "-R", "--json", "/locks"]).await.ok();
    let lines = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let paths: Vec<_> = lines.map(|line| line["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(paths, ["/locks/deep/down/one", "/locks/three", "/locks/two"]);
    let text = world.run(["holders", "-R", "/locks"]).await.ok();
    assert!(text.contains("/locks/two\n   STATE"), "{text}");
    assert_eq!(
        world.run(["holders", "-R", "/zookeeper"]).await.ok(),
        "/zookeeper: no locks below it\n"
    );
}

#[tokio::test]
async fn holders_are_printed_again_at_each_change() {
    for release in [Release::V3_4, Release::V3_9] {
        let world = World::of(release).await;
        let lock = Lock::builder(&world.client, "/l/a").description("me").build();
        let mut one = Running::start(world.zk().args(["holders", "--watch", "--json", "/l/a"]));
        let mut all = Running::start(world.zk().args(["holders", "-R", "--watch", "--json", "/l"]));
        let holding = async |watch: &mut Running| -> bool {
            let line: serde_json::Value = serde_json::from_str(&watch.line().await).unwrap();
            assert_eq!(line["path"], "/l/a");
            line["queue"][0]["holds"] == true
        };
        assert!(!holding(&mut one).await);
        let guard = lock.acquire().await.unwrap();
        assert!(holding(&mut one).await, "{release}");
        assert!(holding(&mut all).await, "{release}");
        guard.release().await.unwrap();
        assert!(!holding(&mut one).await, "{release}");
        assert!(!holding(&mut all).await, "{release}: no line says that it is free");
        one.signal(Signal::INT);
        assert_eq!(one.ended().await.code, Some(130));
    }
}

/// A lock whose path is deleted when it is free, as containers are, is free.
#[tokio::test]
async fn path_may_go_while_it_is_looked_at() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let client = Client::connect(&servers).await.unwrap();
    let mut request = 1;
    loop {
        client.create("/l", b"").await.unwrap();
        let before = server.on(Match::requests().path("/l").nth(request)).hold();
        let mut holders = zk(&servers);
        let mut ended = std::pin::pin!(run(holders.args(["holders", "/l"])));
        let ended = tokio::select! {
            _ = before.fired() => {
                client.delete("/l").await.unwrap();
                before.release();
                ended.await
            }
            ended = &mut ended => {
                assert!(request > 3, "it was looked at");
                break drop(ended.ok());
            }
        };
        assert!(ended.stdout.starts_with("/l: no holder, no waiters"), "{request}: {ended:?}");
        request += 1;
    }
}

/// Those who wait for one of kazoo's permits do so beside the path.
#[tokio::test]
async fn waiters_beside_the_path_are_heard_of() {
    let server = TestServer::start().await.unwrap();
    let client = Client::connect(&server.connect_string()).await.unwrap();
    let hex = "0123456789abcdef0123456789abcdef";
    let (permit, waiter) = (format!("/k/{hex}"), format!("/k-__lock__/{hex}__lock__"));
    let permit = client.create(&permit, b"one").parents();
    permit.mode(CreateMode::Ephemeral).await.unwrap();
    // The second time is when everything there has been heard of.
    let looked = server.on(Match::replies().path("/k-__lock__").nth(2)).watch();
    let args = ["holders", "--watch", "--json", "/k"];
    let mut watch = Running::start(zk(&server.connect_string()).args(args));
    let queue = async |watch: &mut Running| {
        let line: serde_json::Value = serde_json::from_str(&watch.line().await).unwrap();
        line["queue"].as_array().unwrap().len()
    };
    assert_eq!(queue(&mut watch).await, 1);
    must("another look", looked.fired()).await;
    let waiter = client.create(&waiter, b"two").parents();
    waiter.mode(CreateMode::EphemeralSequential).await.unwrap();
    assert_eq!(queue(&mut watch).await, 2);
}

/// What may be seen is printed, as by `zk ls -R`.
#[tokio::test]
async fn hidden_contender_hides_no_other_lock() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let client = Client::connect(&servers).await.unwrap();
    let private = ConnectOptions::new(&servers).unwrap().auth("digest", "ann:secret");
    let private = private.connect().await.unwrap();
    let _seen = must("the lock", Lock::new(&client, "/locks/b").acquire()).await.unwrap();
    client.create("/locks/a", b"").await.unwrap();
    let own = AclList::from_iter([Acl::creator_all()]);
    let hidden = Lock::builder(&private, "/locks/a").acl(&own).build();
    let _hidden = must("the lock", hidden.acquire()).await.unwrap();
    let ended = run(zk(&servers).args(["holders", "-R", "/locks"])).await;
    assert!(ended.stdout.contains("/locks/b\n   STATE"), "{ended:?}");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("/locks/a"), "{ended:?}");
}
