//! `zk revoke`, `zk evict`, and the kinds of locks that `zk lock` takes.

use crate::support::World;

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
