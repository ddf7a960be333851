//! `zk health`, `completion`, and where the connection's settings come from.

use std::fs;

use zk_testkit::{
    TestServer,
    real::{Ensemble, Release},
};

use crate::support::{World, run, zk};

#[tokio::test]
async fn health_reports_every_ensemble_member() {
    let ensemble = Ensemble::start(Release::V3_9).await.unwrap();
    let healthy = run(zk(&ensemble.connect_string()).args(["health", "--json"])).await.json();
    assert_eq!(healthy["healthy"], true);
    let servers = healthy["servers"].as_array().unwrap();
    let modes = |servers: &[serde_json::Value]| {
        let mut modes: Vec<_> = servers.iter().filter_map(|it| it["mode"].as_str()).collect();
        modes.sort_unstable();
        modes.join(" ")
    };
    assert_eq!(modes(servers), "follower follower leader");
    assert!(servers.iter().all(|it| it["version"].as_str().unwrap().starts_with("3.9.")));
    let follower = servers.iter().position(|it| it["mode"] == "follower").unwrap();
    ensemble.kill(follower).await.unwrap();
    let ended = run(zk(&ensemble.connect_string()).args(["health"])).await;
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 4, "{}", ended.stdout);
    assert!(ended.stdout.contains("refused"), "{}", ended.stdout);
}

#[tokio::test]
async fn config_lists_members_and_own_identity() {
    let ensemble = Ensemble::start(Release::V3_9).await.unwrap();
    let servers = ensemble.connect_string();
    let config = run(zk(&servers).args(["config", "--json"])).await.json();
    let members = config["members"].as_array().unwrap();
    assert_eq!(members.len(), 3);
    assert!(members.iter().all(|member| member["votes"] == true), "{config}");
    assert_eq!(run(zk(&servers).args(["config"])).await.ok().lines().count(), 4);
    let mut whoami = zk(&servers);
    whoami.env("ZK_AUTH", "digest:ann:secret").args(["whoami"]);
    assert_eq!(run(&mut whoami).await.ok(), "digest:ann\nip:127.0.0.1\n");
}

#[tokio::test]
async fn health_works_on_the_in_process_server() {
    let server = TestServer::start().await.unwrap();
    let health = run(zk(&server.connect_string()).args(["health"])).await.ok();
    assert!(health.lines().nth(1).unwrap().contains(" standalone "), "{health}");
}

#[tokio::test]
async fn profile_fills_in_unset_options() {
    let world = World::new().await;
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config.toml");
    let server = world.server.connect_string();
    let text = format!(
        "[profile.here]\nserver = \"{server}\"\n[profile.nowhere]\nserver = \"127.0.0.1:1\"\nconnect_timeout = \"100ms\"\n"
    );
    fs::write(&config, text).unwrap();
    let with = |profile: &str, server: Option<&str>| {
        let mut command = zk("");
        command.env_remove("ZK_SERVER").env("ZK_CONFIG", &config).env("ZK_PROFILE", profile);
        server.map(|server| command.env("ZK_SERVER", server));
        command.args(["ls", "/"]);
        command
    };
    assert_eq!(run(&mut with("here", None)).await.ok(), "zookeeper\n");
    assert_eq!(run(&mut with("nowhere", None)).await.code, Some(69));
    assert_eq!(run(&mut with("nowhere", Some(&server))).await.ok(), "zookeeper\n");
    let unknown = run(&mut with("elsewhere", None)).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("there is no profile elsewhere"), "{unknown:?}");
}

#[tokio::test]
async fn completion_scripts_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(zk("").args(["completion", shell])).await.ok();
        assert!(script.contains("holders"), "{shell}: {script}");
    }
}
