//! `zk quota`: limits, and what servers count.

use serde_json::json;
use zk_client::OpCode;
use zk_testkit::{
    TestServer,
    proxy::Match,
    real::{Release, Server},
};

use crate::support::{World, must, run, zk};

#[tokio::test]
async fn quotas_are_set_shown_and_deleted() {
    for release in Release::ALL {
        let world = World::of(release).await;
        world.run(["create", "--parents", "/q/a", "12345"]).await.ok();
        world.run(["create", "--parents", "/r/s"]).await.ok();
        assert_eq!(world.run(["quota"]).await.ok().lines().count(), 1, "{release}");
        let none = world.run(["quota", "/q"]).await;
        assert!(none.complaint().contains("no limits"), "{none:?}");
        world.run(["quota", "/q", "--nodes", "10"]).await.ok();
        world.run(["quota", "/q", "--bytes", "100"]).await.ok();
        // Servers count in their own time.
        let used = must("counts", async {
            loop {
                let shown = world.run(["quota", "--json", "/q"]).await.json();
                if shown["quotas"][0]["used"]["bytes"] == 5 {
                    return shown["quotas"][0].clone();
                }
            }
        });
        let used = used.await;
        assert_eq!(used["limits"], json!({"nodes": 10, "bytes": 100}), "{release}");
        assert_eq!(used["used"]["nodes"], 2, "{release}: {used}");
        let nested = world.run(["quota", "/q/a", "--nodes", "1"]).await;
        assert!(nested.complaint().contains("/q has limits"), "{nested:?}");
        assert_eq!(world.run(["quota", "/r/s", "--hard-nodes", "1"]).await.code, Some(0));
        let above = world.run(["quota", "/r", "--nodes", "1"]).await;
        assert!(above.complaint().contains("/r/s has limits"), "{above:?}");
        assert_eq!(world.run(["quota"]).await.ok().lines().count(), 3, "{release}");
        world.run(["quota", "/q", "--delete=nodes"]).await.ok();
        let left = world.run(["quota", "--json", "/q"]).await.json();
        assert_eq!(left["quotas"][0]["limits"], json!({"nodes": null, "bytes": 100}));
        for path in ["/q", "/r/s"] {
            world.run(["quota", path, "--delete"]).await.ok();
        }
        assert_eq!(world.run(["ls", "/zookeeper/quota"]).await.ok(), "", "{release}");
        // What a deletion has left that was interrupted.
        let left = "/zookeeper/quota/q/zookeeper_stats";
        world.run(["create", "--parents", left, "count=2,bytes=5"]).await.ok();
        world.run(["quota", "/q", "--nodes", "10"]).await.ok();
    }
    let chroot = run(zk("127.0.0.1:1/app").args(["quota", "/a"])).await;
    assert_eq!(chroot.code, Some(2), "{chroot:?}");
}

#[tokio::test]
async fn hard_quota_is_enforced_if_servers_do() {
    let builder = Server::builder().release(Release::V3_9).config("enforceQuota=true");
    let server = builder.start().await.unwrap();
    let addr = server.connect_string();
    run(zk(&addr).args(["create", "/q"])).await.ok();
    run(zk(&addr).args(["quota", "/q", "--hard-bytes", "3"])).await.ok();
    let refused = run(zk(&addr).args(["create", "/q/a", "12345"])).await;
    assert_eq!(refused.complaint(), "/q/a: the quota would be exceeded");
    run(zk(&addr).args(["create", "/q/a", "123"])).await.ok();
}

/// Real servers do not survive them.
#[tokio::test]
async fn limits_of_the_root_are_refused() {
    let world = World::new().await;
    for limit in ["--nodes", "--bytes", "--hard-nodes", "--hard-bytes"] {
        let refused = world.run(["quota", "/", limit, "9"]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
    assert_eq!(world.run(["ls", "/zookeeper/quota"]).await.ok(), "");
    assert_eq!(world.run(["quota", "/"]).await.code, Some(1));
}

/// Of two at once, the first has looked and not yet written when the second one does both.
#[tokio::test]
async fn limits_set_at_once_are_all_kept() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    for (path, write, before) in
        [("/new", OpCode::MULTI, None), ("/old", OpCode::SET_DATA, Some("--hard-bytes=7"))]
    {
        run(zk(&addr).args(["create", path])).await.ok();
        if let Some(limit) = before {
            run(zk(&addr).args(["quota", path, limit])).await.ok();
        }
        let held = server.on(Match::request(write).once()).hold();
        let mut first = zk(&addr);
        let first = run(first.args(["quota", path, "--nodes", "10"]));
        let second = async {
            must("a write", held.fired()).await;
            run(zk(&addr).args(["quota", path, "--bytes", "100"])).await.ok();
            held.release();
        };
        let (first, ()) = tokio::join!(first, second);
        first.ok();
        let shown = run(zk(&addr).args(["quota", "--json", path])).await.json();
        let limits = &shown["quotas"][0]["limits"];
        assert_eq!((&limits["nodes"], &limits["bytes"]), (&json!(10), &json!(100)), "{shown}");
    }
}
