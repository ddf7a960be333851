//! `zk holders`.

use crate::support::World;

#[tokio::test]
async fn a_lock_that_nobody_has_ever_asked_for_has_an_empty_queue() {
    let world = World::new().await;
    let text = world.run(["holders", "/none"]).await.ok();
    assert_eq!(text, "/none: nobody holds it, nobody waits\n");
    let json = world.run(["holders", "--json", "/none"]).await.json();
    assert_eq!(json, serde_json::json!({"path": "/none", "queue": []}));
}

#[tokio::test]
async fn the_holder_comes_first_and_those_who_wait_follow_in_their_order() {
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
        assert_eq!(entry["sequence"], contender.sequence);
        assert_eq!(entry["session"], contender.session.to_string());
        assert_eq!(entry["since_ms"], contender.since);
        assert_eq!(entry["token"], contender.token);
        assert_eq!(entry["description"], contender.description);
        // One machine, one clock; and a test takes less than an hour.
        assert!((0..3_600_000).contains(&entry["age_ms"].as_i64().unwrap()), "{entry}");
    }
    held.tell("go").await;
    held.ended().await.ok();
    assert_eq!(waiting.line().await, "ready");
    waiting.ended().await.ok();
}
