//! `zk elect`.

use rustix::process::Signal;
use zk_client::{Acl, AclList, ConnectOptions};
use zk_locks::Election;

use crate::support::{Running, World, must};

fn elect(world: &World, args: &[&str], script: &str) -> Running {
    let mut command = world.zk();
    command.args(["elect", "/e"]).args(args).args(["--", "sh", "-c", script]);
    Running::start(&mut command)
}

#[tokio::test]
async fn commands_run_one_by_one_while_leading() {
    let world = World::new().await;
    let script = "echo $ZK_LOCK_TOKEN; read -r go; exit 7";
    let mut first = elect(&world, &["--data", "first"], script);
    let token: i64 = first.line().await.parse().unwrap();
    let election = Election::new(&world.client, "/e");
    let candidates = election.queue().contenders().await.unwrap();
    assert_eq!((&*candidates[0].description(), candidates[0].token.get()), ("first", token));

    let mut second = elect(&world, &[], script);
    world.queue_of("/e", 2).await;
    let remark = second.remark().await;
    assert!(remark.contains("first leads"), "{remark}");
    first.tell("go").await;
    let ended = first.ended().await;
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let next: i64 = second.line().await.parse().unwrap();
    assert!(next > token);
    second.tell("go").await;
    let ended = second.ended().await;
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(election.queue().contenders().await.unwrap().is_empty());
}

#[tokio::test]
async fn command_ends_when_leadership_is_lost() {
    let world = World::new().await;
    let mut leader = elect(&world, &[], "echo $ZK_LOCK_TOKEN; sleep 1000");
    let token = leader.line().await;
    let said = world.run(["evict", "/e", &token]).await;
    assert!(said.ok().ends_with(" was evicted from /e\n"));
    let ended = leader.ended().await;
    assert_eq!(ended.code, Some(123), "{ended:?}");
}

#[tokio::test]
async fn a_signal_while_standing_is_standing_down() {
    let world = World::new().await;
    let election = Election::new(&world.client, "/e");
    let lead = election.campaign(b"me").await.unwrap();
    let candidate = elect(&world, &[], "echo never");
    world.queue_of("/e", 2).await;
    candidate.signal(Signal::TERM);
    let ended = candidate.ended().await;
    assert_eq!((ended.code, &*ended.stdout), (Some(143), ""), "{ended:?}");
    world.queue_of("/e", 1).await;
    lead.resign().await.unwrap();
}

#[tokio::test]
async fn without_command_leaders_are_printed() {
    let world = World::new().await;
    let election = Election::new(&world.client, "/e");
    let mut text = Running::start(world.zk().args(["elect", "/e"]));
    let mut json = Running::start(world.zk().args(["elect", "--json", "/e"]));
    assert_eq!(text.line().await, "/e: no leader");
    assert_eq!(json.line().await, r#"{"path":"/e","leader":null}"#);
    let lead = election.campaign(b"one\x1b").await.unwrap();
    let line = text.line().await;
    assert!(line.starts_with("/e: one\u{FFFD} leads"), "{line}");
    assert!(line.contains(&format!("token {},", lead.token())), "{line}");
    let line: serde_json::Value = serde_json::from_str(&json.line().await).unwrap();
    assert_eq!(line["leader"]["token"], lead.token().get());
    lead.proclaim(b"two").await.unwrap();
    assert!(text.line().await.starts_with("/e: two leads"));
    lead.resign().await.unwrap();
    assert_eq!(text.line().await, "/e: no leader");
    text.signal(Signal::INT);
    assert_eq!(text.ended().await.code, Some(130));
    json.signal(Signal::TERM);
    json.ended().await;
}

/// Candidates behind the first one need only their predecessor.
#[tokio::test]
async fn unreadable_leader_ends_no_candidacy() {
    let world = World::new().await;
    let private = ConnectOptions::new(&world.server.connect_string()).unwrap();
    let private = private.auth("digest", "ann:secret").connect().await.unwrap();
    world.client.create("/e", b"").await.unwrap();
    let own = AclList::from_iter([Acl::creator_all()]);
    let lead = Election::builder(&private, "/e").acl(&own).build().campaign(b"one").await.unwrap();
    let open = Election::new(&private, "/e");
    let second = tokio::spawn(async move { open.campaign(b"two").await });
    must("two candidates", async {
        while world.client.children("/e").await.unwrap().0.len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut third = elect(&world, &[], "echo led");
    let remark = third.remark().await;
    assert_eq!(remark, "zk: /e: no permission: who leads is not shown");
    lead.resign().await.unwrap();
    must("the second", second).await.unwrap().unwrap().resign().await.unwrap();
    assert_eq!(third.line().await, "led");
    assert_eq!(third.ended().await.code, Some(0));
}
