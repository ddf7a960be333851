//! `zk lock`: signals and job control.

use rustix::process::Signal;

use crate::support::{Running, World, must};

const PASSED_ON: [(Signal, &str); 6] = [
    (Signal::INT, "INT"),
    (Signal::TERM, "TERM"),
    (Signal::HUP, "HUP"),
    (Signal::QUIT, "QUIT"),
    (Signal::USR1, "USR1"),
    (Signal::USR2, "USR2"),
];

/// How often the system is asked for the state of a process, which it does not tell by itself.
#[cfg(target_os = "linux")]
const POLL: std::time::Duration = std::time::Duration::from_millis(5);

/// Waits without end, in steps: a shell looks at its traps only between commands.
const IDLE: &str = "while :; do sleep 0.02; done";

#[tokio::test]
async fn signals_are_passed_on_to_the_command() {
    let world = World::new().await;
    for (signal, name) in PASSED_ON {
        let script = format!("trap 'echo got {name}; exit 9' {name}; echo ready; {IDLE}");
        let mut held = world.lock(&[], "/l", &script);
        held.line().await;
        held.signal(signal);
        let ended = held.ended().await;
        assert_eq!((ended.code, ended.stdout), (Some(9), format!("got {name}\n")));
    }
}

#[tokio::test]
async fn death_by_signal_is_reported_as_in_shells() {
    let world = World::new().await;
    for (signal, name) in PASSED_ON {
        let mut held = world.lock(&[], "/l", &format!("echo ready; {IDLE}"));
        held.line().await;
        held.signal(signal);
        assert_eq!(held.ended().await.code, Some(128 + signal.as_raw()), "{name}");
        assert!(world.queue_of("/l", 0).await.is_empty());
    }
}

/// Commands that run until they are told to end say by what, as shells do.
#[tokio::test]
async fn commands_that_last_report_their_signal() {
    let world = World::new().await;
    let mut held = world.lock(&[], "/l", "echo ready; read -r go");
    held.line().await;
    for (signal, name) in PASSED_ON {
        let arguments: [&[&str]; 2] =
            [&["create", "/mine", "--ephemeral"], &["holders", "/l", "--watch"]];
        for arguments in arguments {
            let mut running = Running::start(world.zk().args(arguments));
            running.line().await;
            running.signal(signal);
            let ended = running.ended().await;
            assert_eq!(ended.code, Some(128 + signal.as_raw()), "{arguments:?}, {name}: {ended:?}");
        }
        assert_eq!(world.client.exists("/mine").await.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn signal_while_waiting_leaves_no_node() {
    let world = World::new().await;
    let mut held = world.lock(&[], "/l", "echo ready; read -r go");
    held.line().await;
    for (signal, name) in PASSED_ON {
        let waiting = world.lock(&[], "/l", "echo mine");
        world.queue_of("/l", 2).await;
        waiting.signal(signal);
        let ended = waiting.ended().await;
        assert_eq!(ended.code, Some(128 + signal.as_raw()), "{name}: {ended:?}");
        assert_eq!(ended.stdout, "");
        assert_eq!(world.queue_of("/l", 1).await.len(), 1);
    }
    held.tell("go").await;
    held.ended().await.ok();
}

#[tokio::test]
async fn a_signal_ends_the_attempt_to_connect() {
    // Takes connections and never says anything.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = silent.local_addr().unwrap().to_string();
    for arguments in [
        &["lock", "/l", "--", "echo", "mine"][..],
        &["elect", "/e"],
        &["watch", "/a"],
        &["holders", "--watch", "/l"],
        &["create", "--ephemeral", "/a"],
    ] {
        let mut command = crate::support::zk(&server);
        let connecting = Running::start(command.args(arguments));
        let _connection = must("a connection", silent.accept()).await.unwrap();
        connecting.signal(Signal::TERM);
        let ended = connecting.ended().await;
        assert_eq!(ended.code, Some(128 + 15), "{arguments:?}: {ended:?}");
    }
}

/// With `nohup`, or in the background of a script.
#[tokio::test]
async fn signal_ignored_at_start_stays_ignored() {
    let world = World::new().await;
    let script = format!("trap 'echo got USR1; exit 9' USR1; echo ready; {IDLE}");
    let mut command = tokio::process::Command::new("sh");
    command.env("ZK_SERVER", world.server.connect_string());
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_zk")]);
    command.args(["lock", "/l", "--", "sh", "-c", &script]);
    let mut held = Running::start(&mut command);
    held.line().await;
    held.signal(Signal::HUP);
    held.signal(Signal::USR1);
    let ended = held.ended().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(9), "got USR1\n"), "{ended:?}");
}

/// A command that went on alone would outlive its lock.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn command_stops_and_continues_with_zk() {
    let world = World::new().await;
    let mut held = world.lock(&[], "/l", "echo $$; read -r go; echo went on");
    let command: u32 = held.line().await.parse().unwrap();
    held.signal(Signal::TSTP);
    let zk = held.pid().as_raw_pid().try_into().unwrap();
    stopped(zk).await;
    stopped(command).await;
    held.signal(Signal::CONT);
    held.tell("go").await;
    assert_eq!(held.ended().await.ok(), "went on\n");
}

/// Waits until a process is stopped.
#[cfg(target_os = "linux")]
pub(crate) async fn stopped(pid: u32) {
    must("a stop", async {
        while state(pid) != 'T' {
            tokio::time::sleep(POLL).await;
        }
    })
    .await;
}

/// The state of a process, as a letter: T if it is stopped.
#[cfg(target_os = "linux")]
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, behind_name) = stat.rsplit_once(") ").unwrap();
    behind_name.chars().next().unwrap()
}
