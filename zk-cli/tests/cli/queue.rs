//! `zk revoke`, `zk evict`, and the kinds of locks that `zk lock` takes.

use zk_client::{Client, CreateMode, path::name};
use zk_locks::{DurableLock, Lost, Semaphore, SimpleLock};
use zk_testkit::TestServer;

use crate::support::{World, must, run, zk};

const HOLD: &str = "echo $ZK_LOCK_TOKEN; read -r go; exit 0";

#[tokio::test]
async fn shared_holders_coexist_writers_exclude() {
    let world = World::new().await;
    let mut one = world.lock(&["--shared"], "/l", HOLD);
    let mut other = world.lock(&["--shared"], "/l", HOLD);
    one.line().await;
    other.line().await;
    let tried = world.run(["lock", "--write", "--try", "/l", "--", "true"]).await;
    assert_eq!(tried.code, Some(75), "{tried:?}");
    let mut writer = world.lock(&["--write"], "/l", HOLD);
    world.queue_of("/l", 3).await;
    let tried = world.run(["lock", "--shared", "--try", "/l", "--", "true"]).await;
    assert_eq!(tried.code, Some(75), "{tried:?}");
    for reader in [&mut one, &mut other] {
        reader.tell("go").await;
    }
    writer.line().await;
    writer.tell("go").await;
    for running in [one, other, writer] {
        running.ended().await.ok();
    }
}

#[tokio::test]
async fn semaphore_has_as_many_holders_as_permits() {
    let world = World::new().await;
    let mut one = world.lock(&["--semaphore", "2"], "/s", HOLD);
    let mut other = world.lock(&["--semaphore", "2"], "/s", HOLD);
    one.line().await;
    other.line().await;
    let tried = world.run(["lock", "--semaphore", "2", "--try", "/s", "--", "true"]).await;
    assert_eq!(tried.code, Some(75), "{tried:?}");
    one.tell("go").await;
    one.ended().await.ok();
    let tried = world.run(["lock", "--semaphore", "2", "/s", "--", "echo", "mine"]).await;
    assert_eq!(tried.ok(), "mine\n");
    other.tell("go").await;
    other.ended().await.ok();
}

#[tokio::test]
async fn node_names_follow_the_chosen_mode() {
    let world = World::new().await;
    for (mode, end) in
        [("kazoo", "__lock__"), ("go", "-lock-"), ("recipe", "-"), ("curator", "-lock-")]
    {
        let mut held = world.lock(&["--mode", mode], "/l", HOLD);
        held.line().await;
        let queue = world.queue_of("/l", 1).await;
        let name = &queue[0].name;
        assert!(name[..name.len() - 10].ends_with(end), "{mode}: {name}");
        held.tell("go").await;
        held.ended().await.ok();
    }
    let own = ["--mode", "custom", "--names=-a-,-r-,-w-", "--prefix=job-"];
    for (side, name) in [(None, "-a-"), (Some("--shared"), "-r-"), (Some("--write"), "-w-")] {
        let arguments: Vec<_> = own.into_iter().chain(side).collect();
        let mut held = world.lock(&arguments, "/own", HOLD);
        held.line().await;
        let queue = world.queue_of("/own", 1).await;
        let node = &queue[0].name;
        assert!(node.starts_with("job-") && node[..node.len() - 10].ends_with(name), "{node}");
        held.tell("go").await;
        held.ended().await.ok();
    }
    let without_sides = ["lock", "--mode", "custom", "--names=-a-", "--shared", "/own"];
    let recipe = ["lock", "--mode", "recipe", "--shared", "/l"];
    for refused in [&["lock", "--mode", "custom", "/own"][..], &without_sides, &recipe] {
        let arguments: Vec<_> = refused.iter().copied().chain(["--", "true"]).collect();
        let refused = world.run(arguments).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

#[tokio::test]
async fn revocation_ends_a_revocable_command() {
    let world = World::new().await;
    let mut held = world.lock(&["--revocable"], "/l", "echo $ZK_LOCK_TOKEN; sleep 1000");
    let token = held.line().await;
    let json = world.run(["revoke", "--json", "/l", &token]).await.json();
    assert_eq!(json["done"], true);
    let ended = held.ended().await;
    assert_eq!(ended.code, Some(123), "{ended:?}");
    assert!(ended.stderr.contains("requested by another client"), "{ended:?}");
    let gone = world.run(["revoke", "/l", &token]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
}

#[tokio::test]
async fn revocation_says_whom_it_asked() {
    let world = World::new().await;
    let mut held = world.lock(&["--description", "web-7 pid 4711"], "/l", HOLD);
    let token = held.line().await;
    let said = world.run(["revoke", "/l", &token]).await.ok();
    assert!(said.starts_with("web-7 pid 4711 was asked for /l\n"), "{said}");
    assert!(said.contains(&format!("zk evict /l {token} ")), "{said}");
    let there = world.run(["holders", "/l"]).await.ok();
    assert!(there.contains("holds, asked"), "{there}");
    assert_eq!(world.run(["holders", "--json", "/l"]).await.json()["queue"][0]["revoked"], true);
    let said = world.run(["evict", "/l", &token]).await.ok();
    assert_eq!(said, format!("the contender with token {token} was evicted from /l\n"));
    held.ended().await;
}

#[tokio::test]
async fn eviction_needs_the_holders_token() {
    let world = World::new().await;
    let mut held = world.lock(&[], "/l", "echo $ZK_LOCK_TOKEN; sleep 1000");
    let token: i64 = held.line().await.parse().unwrap();
    let missed = world.run(["evict", "/l", &(token + 1).to_string()]).await;
    assert_eq!(missed.code, Some(1), "{missed:?}");
    let said = world.run(["evict", "/l", &token.to_string()]).await;
    assert!(said.ok().ends_with(" was evicted from /l\n"));
    let ended = held.ended().await;
    assert_eq!(ended.code, Some(123), "{ended:?}");
}

/// Whatever `zk holders` lists can be taken away by the token that it shows.
#[tokio::test]
async fn every_kind_of_holder_can_be_evicted() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let client = Client::connect(&servers).await.unwrap();
    let evict = async |path: &str, token: i64| {
        let ended = run(zk(&servers).args(["evict", path, &token.to_string()])).await;
        assert!(ended.ok().ends_with(&format!(" was evicted from {path}\n")));
    };

    let semaphore = Semaphore::new(&client, "/s", 3);
    let both = must("permits", semaphore.acquire_many(2)).await.unwrap();
    let tokens: Vec<_> = both.iter().map(|permit| permit.token().get()).collect();
    assert_eq!(tokens[0], tokens[1], "one transaction has made them");
    let asked = run(zk(&servers).args(["revoke", "/s", &tokens[0].to_string()])).await.ok();
    assert!(asked.contains(" was asked for /s\n"), "{asked}");
    for permit in &both {
        must("the request", permit.revoked()).await.unwrap();
    }
    evict("/s", tokens[0]).await;
    for permit in &both {
        assert_eq!(must("the loss", permit.lost()).await, Lost::NodeDeleted);
    }

    let simple = must("the lock", SimpleLock::new(&client, "/single").acquire()).await.unwrap();
    evict("/single", simple.token().get()).await;
    assert_eq!(must("the loss", simple.lost()).await, Lost::NodeDeleted);

    let durable = must("the lock", DurableLock::new(&client, "/d", "us").acquire()).await.unwrap();
    evict("/d", durable.token().get()).await;
    assert_eq!(must("the loss", durable.lost()).await, Lost::NodeDeleted);

    // As kazoo's semaphore has them.
    client.create("/k/0123456789abcdef0123456789abcdef", b"them").parents().await.unwrap();
    let permit = "/k/fedcba9876543210fedcba9876543210";
    let created = client.create(permit, b"them").mode(CreateMode::Ephemeral).await.unwrap();
    evict("/k", created.stat.czxid.0).await;
    let (left, _) = client.children("/k").await.unwrap();
    assert!(left.len() == 1 && left[0] != name(permit), "{left:?}");
}
