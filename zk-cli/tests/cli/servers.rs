//! `zk health`, `completion`, and where the connection's settings come from.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use zk_testkit::{
    TestServer,
    real::{Ensemble, Release, Server},
    tls::{Authority, ClientAuth},
};

use crate::support::{Running, World, run, zk};

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
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(" does not answer\n    does it run"), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 4, "{}", ended.stdout);
    assert!(ended.stdout.contains("refused"), "{}", ended.stdout);
}

/// All of them serve: what is wrong is what is not among them.
#[tokio::test]
async fn health_says_that_no_leader_is_among_the_servers() {
    let args = ["serve", "--port", "0", "--members", "3"];
    let mut serve = Running::start(zk("").args(args));
    let servers = serve.line().await;
    let health = run(zk(&servers).args(["health", "--json"])).await.json();
    let of = |mode: &str| {
        let mut members = health["servers"].as_array().unwrap().iter();
        members.find(|it| it["mode"] == mode).unwrap()["server"].as_str().unwrap().to_owned()
    };
    let followed = run(zk(&of("follower")).args(["health"])).await;
    assert_eq!(followed.code, Some(1), "{followed:?}");
    assert_eq!(followed.complaint(), "no leader is among these servers");
    let other = TestServer::start().await.unwrap();
    let two = format!("{},{}", of("leader"), other.connect_string());
    let two = run(zk(&two).args(["health"])).await;
    assert_eq!(two.code, Some(1), "{two:?}");
    assert_eq!(two.complaint(), "2 of these servers lead, or stand alone");
}

#[tokio::test]
async fn config_lists_members_and_own_identity() {
    let ensemble = Ensemble::start(Release::V3_9).await.unwrap();
    let servers = ensemble.connect_string();
    let config = run(zk(&servers).args(["config", "--json"])).await.json();
    let members = config["members"].as_array().unwrap();
    assert_eq!(members.len(), 3);
    assert!(members.iter().all(|member| member["votes"] == true), "{config}");
    assert_eq!(run(zk(&servers).args(["config"])).await.ok().lines().count(), 5);
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
        "[profile.here]\nserver = \"{server}\"\n[profile.nowhere]\nserver = \"127.0.0.1:1\"\nconnect_timeout = \"5s\"\n"
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
    // Its limit applies beside a longer one of all that a command waits for.
    let mut lock = zk("127.0.0.1:1");
    lock.env("ZK_CONFIG", &config).env("ZK_PROFILE", "nowhere");
    lock.args(["lock", "--timeout", "60s", "/l", "--", "true"]);
    let began = Instant::now();
    assert_eq!(run(&mut lock).await.code, Some(69));
    assert!(began.elapsed() < Duration::from_secs(40));
    let unknown = run(&mut with("elsewhere", None)).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("there is no profile elsewhere"), "{unknown:?}");
}

#[tokio::test]
async fn completion_scripts_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(zk("").args(["completion", shell])).await.ok();
        for word in ["holders", "tls-ca", "ephemeral"] {
            assert!(script.contains(word), "{shell} {word}: {script}");
        }
        for inner in ["guard", "launch"] {
            assert!(!script.contains(inner), "{shell}: {script}");
        }
    }
}

#[tokio::test]
async fn each_subcommand_gets_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    run(zk("").arg("man").arg(&pages)).await.ok();
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    for (name, word) in [
        ("zk.1", "holders"),
        ("zk.1", "Log to"),
        ("zk-lock.1", "ZK_LOCK_TOKEN"),
        ("zk-get.1", "json"),
        ("zk-get.1", "Connect by TLS"),
    ] {
        let text = page(name);
        assert!(text.contains(".TH ") && text.contains(word), "{name}: {text}");
    }
}

#[tokio::test]
async fn health_and_sessions_are_asked_over_tls() {
    let authority = Authority::new("ours");
    let certificate = authority.server(&["localhost"]);
    let builder = Server::builder().release(Release::V3_9);
    let server = builder.secure(&certificate, ClientAuth::Need(&authority)).start().await.unwrap();
    let addr = format!("localhost:{}", server.secure_addr().unwrap().port());
    let folder = tempfile::tempdir().unwrap();
    let (ca, me) = (folder.path().join("ca.pem"), folder.path().join("me.pem"));
    let client = authority.client("ann");
    fs::write(&ca, authority.pem()).unwrap();
    fs::write(&me, format!("{}{}", client.chain, client.key)).unwrap();
    let secured = |args: &[&str]| {
        let mut command = zk(&addr);
        command.args(args).env("ZK_TLS_CA", &ca).env("ZK_TLS_CERT", &me);
        command
    };
    let health = run(&mut secured(&["health", "--json"])).await.json();
    assert_eq!(health["servers"][0]["mode"], "standalone", "{health}");
    let sessions = run(&mut secured(&["sessions", "--json"])).await.json();
    assert_eq!(sessions["failures"], serde_json::json!([]));
    // Without a certificate nothing is answered, and it is said why.
    let refused = run(zk(&addr).args(["health", "--timeout", "10s"])).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
}

/// A port on which no server is listening yet.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Told to be secure, and not whom to trust, it asks no server.
#[tokio::test]
async fn admin_server_is_not_asked_in_plain_text_for_https() {
    for args in [&["health"] as &[_], &["sessions", "0x1"], &["top"]] {
        let asked = zk("127.0.0.1:1").args(args).args(["--admin=1", "--admin-tls"]).output();
        let refused = asked.await.unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("--tls-ca"), "{args:?}: {said}");
    }
}

#[tokio::test]
async fn admin_server_answers_in_place_of_words() {
    for release in [Release::V3_5, Release::V3_9] {
        let admin = free_port();
        let builder = Server::builder().release(release).config("4lw.commands.whitelist=ruok,srvr");
        let builder = builder.config("admin.enableServer=true");
        let builder = builder.config("admin.serverAddress=127.0.0.1");
        let server = builder.config(format!("admin.serverPort={admin}")).start().await.unwrap();
        let addr = server.connect_string();
        let client = zk_client::Client::connect(&addr).await.unwrap();
        let session = client.session().id().to_string();

        let by_admin = format!("--admin={admin}");
        // Java takes its time for the first answer.
        let asked =
            run(zk(&addr).args(["health", "--timeout", "50s", "--json", &by_admin])).await.json();
        let (by_word, by_admin_server) =
            (run(zk(&addr).args(["health", "--json"])).await.json(), &asked["servers"][0]);
        for key in ["mode", "version", "nodes", "zxid"] {
            assert_eq!(
                by_admin_server[key], by_word["servers"][0][key],
                "{release} {key}: {asked}"
            );
        }
        let refused = run(zk(&addr).args(["sessions", &session])).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("whitelist") && refused.stderr.contains("--admin"));
        let sessions = ["sessions", "--timeout", "50s", "--json", &by_admin, &session];
        let asked = run(zk(&addr).args(sessions)).await.json();
        assert_eq!(asked["sessions"].as_array().unwrap().len(), 1, "{release}: {asked}");
        assert!(asked["sessions"][0]["client"].as_str().unwrap().contains(":"), "{asked}");
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn session_leads_to_its_clients_address() {
    for release in Release::ALL {
        let world = World::of(release).await;
        let session = world.client.session().id().to_string();
        let found = world.run(["sessions", "--json", &session]).await.json();
        let found = &found["sessions"][0];
        assert_eq!(found["session"], session, "{release}");
        assert_eq!(found["server"], world.server.connect_string());
        let client = found["client"].as_str().unwrap();
        let words = world.server.four_letter("cons").await.unwrap();
        assert!(words.contains(&format!("/{client}[")), "{release}: {client}: {words}");
        let table = world.run(["sessions"]).await.ok();
        assert!(table.contains(&session) && table.contains(client), "{table}");
        let servers = format!("127.0.0.1:1,{}", world.server.connect_string());
        let found = run(zk(&servers).args(["sessions", "--json", &session])).await;
        assert_eq!(found.code, Some(0), "found where one has answered: {found:?}");
        assert_eq!(run(zk(&servers).args(["sessions"])).await.code, Some(1));
        let none = world.run(["sessions", "0x7"]).await;
        assert_eq!(none.code, Some(1), "{none:?}");
        assert!(none.complaint().contains("no server has a connection"), "{none:?}");
    }
}

#[tokio::test]
async fn refusing_server_is_named_within_a_second() {
    let begin = Instant::now();
    let mut command = zk("127.0.0.1:1");
    let mut trying = Running::start(command.args(["ls", "/", "--connect-timeout", "1h"]));
    let remark = trying.remark().await;
    assert!(remark.contains("127.0.0.1:1: ") && remark.contains("refused"), "{remark}");
    assert!(remark.ends_with("still trying"), "{remark}");
    assert!(begin.elapsed() < Duration::from_secs(60), "and not within an hour");
    trying.signal(Signal::TERM);
    trying.ended().await;
    // Next to one that serves it is not worth a word.
    let world = World::new().await;
    let servers = format!("127.0.0.1:1,{}", world.server.connect_string());
    assert_eq!(run(zk(&servers).args(["ls", "/"])).await.ok(), "zookeeper\n");
}

#[tokio::test]
async fn logs_go_to_standard_error_if_asked_for() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    let quiet = run(zk(&addr).args(["ls", "/"])).await;
    assert_eq!(quiet.stderr, "");
    for args in [&["ls", "/", "-vvv"][..], &["-vv", "ls", "/"]] {
        let ended = run(zk(&addr).args(args)).await;
        assert_eq!(ended.stdout, "zookeeper\n");
        assert!(ended.stderr.contains("zk_client"), "{args:?}: {ended:?}");
    }
    let logged = run(zk(&addr).args(["ls", "/"]).env("ZK_LOG", "zk_client=trace")).await;
    assert!(logged.stderr.contains("zk_client"), "{logged:?}");
    let wrong = run(zk(&addr).args(["ls", "/"]).env("ZK_LOG", "zk_client=loud")).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.complaint().contains("ZK_LOG"), "{wrong:?}");
}

#[tokio::test]
async fn server_without_quorum_is_read_if_allowed() {
    let ensemble = Ensemble::builder().release(Release::V3_9).read_only_mode(true);
    let ensemble = ensemble.config("localSessionsEnabled=true").start();
    let ensemble = ensemble.await.unwrap();
    run(zk(&ensemble.connect_string()).args(["create", "/a", "x"])).await.ok();
    let left = ensemble.connect_string_of(&[0]);
    run(zk(&left).args(["sync"])).await.ok();
    for member in [1, 2] {
        ensemble.kill(member).await.unwrap();
    }
    let mut read = zk(&left);
    let read = run(read.args(["get", "/a", "--read-only", "--connect-timeout", "20s"])).await;
    assert_eq!((read.code, &*read.stdout), (Some(0), "x"), "{read:?}");
    let mut written = zk(&left);
    let written = run(written.args(["set", "/a", "y", "--read-only"])).await;
    assert_eq!(written.code, Some(1), "{written:?}");
    assert!(written.stderr.contains("cut off from the quorum"), "{written:?}");
}

/// The super user's name and password, and what servers are told of it.
const ADMIN: (&str, &str) = ("digest:super:admin", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");

#[tokio::test]
async fn members_are_changed_by_the_super_user() {
    let (identity, digest) = ADMIN;
    let builder = Ensemble::builder().release(Release::V3_9).config("reconfigEnabled=true");
    let property = "zookeeper.DigestAuthenticationProvider.superDigest";
    let ensemble = builder.property(property, digest).start().await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let servers = ensemble.connect_string_of(&[leader]);
    let before = run(zk(&servers).args(["config", "--json"])).await.json();
    ensemble.wait_for_all().await.unwrap();
    let follower = ensemble.followers().await[0] + 1;
    let member = before["members"].as_array().unwrap().iter().find(|it| it["id"] == follower);
    let spec = format!("{follower}={}", member.unwrap()["spec"].as_str().unwrap());
    let version = format!("0x{:x}", before["version"].as_i64().unwrap());

    let stranger = run(zk(&servers).args(["reconfig", "--remove", &follower.to_string()])).await;
    assert_eq!(stranger.code, Some(1), "{stranger:?}");
    assert!(stranger.complaint().contains("no permission"), "{stranger:?}");
    let admin = |args: &[&str]| {
        let mut command = zk(&servers);
        command.arg("reconfig").args(args).env("ZK_AUTH", identity);
        command
    };
    let remove = ["--remove", &follower.to_string(), "--version", &version, "--json"];
    let without = run(&mut admin(&remove)).await.json();
    assert_eq!(without["members"].as_array().unwrap().len(), 2, "{without}");
    let late = run(&mut admin(&remove)).await;
    assert!(late.complaint().contains("another version"), "{late:?}");
    let again = run(&mut admin(&["--add", &spec])).await.ok();
    assert_eq!(again.lines().count(), 5, "{again}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("members");
    let lines = before["members"].as_array().unwrap().iter();
    let lines = lines.map(|it| format!("server.{}={}\n", it["id"], it["spec"].as_str().unwrap()));
    fs::write(&file, lines.collect::<String>()).unwrap();
    // Of majorities no other member can be made at once: servers take the same ones.
    let same = run(&mut admin(&["--members", file.to_str().unwrap()])).await.ok();
    assert!(same.contains("votes"), "{same}");
}

#[tokio::test]
async fn what_a_release_lacks_is_named() {
    for (release, args, words) in [
        (Release::V3_4, &["reconfig", "--remove", "1"][..], "older than 3.5"),
        (Release::V3_4, &["config"], "older than 3.5"),
        (Release::V3_9, &["reconfig", "--remove", "1"], "reconfig"),
        (Release::V3_6, &["whoami"], "older than 3.7"),
    ] {
        let world = World::of(release).await;
        let ended = world.run(args).await;
        assert_eq!(ended.code, Some(1), "{release} {args:?}: {ended:?}");
        assert!(ended.complaint().contains(words), "{release} {args:?}: {ended:?}");
    }
}

/// Looking up names, waiting for threads or reading from a terminal would show here, however busy the machine is.
#[cfg(target_os = "linux")]
#[test]
fn start_waits_for_nothing() {
    let fewest = (0..20).map(|_| waits_of_a_start()).min().unwrap();
    // One belongs to `exec`.
    assert!(fewest <= 1, "it waited {fewest} times");
}

/// How often `zk --version` gave the processor away before its time was over.
#[cfg(target_os = "linux")]
fn waits_of_a_start() -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zk"));
    let mut started = command.arg("--version").stdout(Stdio::null()).spawn().unwrap();
    // What has ended is still described until its end is taken note of.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(&started)), ended).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", started.id())).unwrap();
    assert!(started.wait().unwrap().success());
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    waits.expect("Linux counts them").trim().parse().unwrap()
}
