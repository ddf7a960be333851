//! What the command says of itself.

use zk_testkit::TestServer;

use crate::support::{run, subcommands, zk};

/// What fits a screen: in short, and all of it.
const SHORT: usize = 25;
const LONG: usize = 60;

#[tokio::test]
async fn help_fits_a_screen() {
    let commands = subcommands().await;
    for known in ["lock", "holders", "ls", "reconfig", "sessions", "demo", "help"] {
        assert!(commands.iter().any(|it| it == known), "{known}: {commands:?}");
    }
    let mut asked: Vec<Vec<&str>> = vec![vec![]];
    asked.extend(commands.iter().map(|command| vec![&**command]));
    for command in asked {
        for (flag, lines_max) in [("-h", SHORT), ("--help", LONG)] {
            let help = run(zk("").args(&command).arg(flag)).await.ok();
            assert!(help.contains(&format!("Usage: zk {}", command.concat())), "{help}");
            let lines = help.lines().count();
            assert!(lines <= lines_max, "zk {command:?} {flag} has {lines} lines:\n{help}");
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "zk {command:?} {flag}: {line:?}");
            }
        }
    }
}

#[tokio::test]
async fn topics_and_subcommands_are_explained() {
    for (topic, words) in [
        ("connection", &["--server", "--tls-ca", "ZK_SERVER", "--read-only", "[profile."][..]),
        ("exit-codes", &["69", "74", "75", "76", "123", "124", "126", "127", "128+n"]),
        ("jobs", &["ZK_LOCK_TOKEN", "SIGTERM", "--lease connection"]),
        ("names", &["kazoo", "--names="]),
        ("serving", &["--secure-port", "--sasl-user", "--reconfig", "--latency <MS>"]),
        // Where bare numbers are no seconds, as they are for connections.
        ("serve", &["--tick <MS>"]),
        ("watch", &["ZK_WATCH_EVENT", "Usage: zk watch"]),
    ] {
        let text = run(zk("").args(["help", topic])).await.ok();
        for word in words {
            assert!(text.contains(word), "{topic}: {word}: {text}");
        }
    }
    let unknown = run(zk("").args(["help", "frobnicate"])).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.complaint().contains("neither a subcommand nor a topic"), "{unknown:?}");
}

/// Of what several commands may end in, the list of codes names each.
#[tokio::test]
async fn exit_codes_name_the_commands_that_have_them() {
    let server = TestServer::start().await.unwrap();
    let addr = server.connect_string();
    let codes = run(zk("").args(["help", "exit-codes"])).await.ok();
    let (_, behind) = codes.split_once("\n  127 ").unwrap();
    let line = behind.lines().next().unwrap();
    for command in ["lock", "elect", "watch"] {
        let ended = run(zk(&addr).args([command, "/a", "--", "/nowhere/at/all"])).await;
        assert_eq!(ended.code, Some(127), "{command}: {ended:?}");
        assert!(line.contains(command), "{command}: {line}");
    }
}

#[tokio::test]
async fn secrets_of_the_environment_are_not_shown() {
    for args in [&["help", "connection"][..], &["ls", "--help"], &["ls", "--no-such-option"]] {
        let mut command = zk("");
        command.args(args).env("ZK_AUTH", "digest:ann:sesame").env("ZK_SASL_PASSWORD", "sesame");
        let ended = run(&mut command).await;
        assert!(!(ended.stdout + &ended.stderr).contains("sesame"), "{args:?}");
    }
}
