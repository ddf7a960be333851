//! `zk lock`: the lock and the command.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::sleep;
use zk_client::Client;
use zk_locks::Lock;
use zk_testkit::{TestServer, proxy::Proxy, server::Config};

use crate::support::{Running, World, must, run, zk};

/// Prints its token, and goes on at a line of input.
const HOLD: &str = "echo $ZK_LOCK_TOKEN; read -r go; exit 0";

#[tokio::test]
async fn command_gets_token_and_node_of_the_lock() {
    let world = World::new().await;
    let script = "echo $ZK_LOCK_TOKEN; echo $ZK_LOCK_PATH; read -r go; echo $go";
    let mut held = world.lock(&["--description", "tester"], "/l", script);
    let (token, path) = (held.line().await, held.line().await);
    let queue = world.queue_of("/l", 1).await;
    assert_eq!(token, queue[0].token.to_string());
    assert_eq!(path, format!("/l/{}", queue[0].name));
    assert_eq!(queue[0].description(), "tester");
    held.tell("input is the command's own").await;
    assert_eq!(held.ended().await.ok(), "input is the command's own\n");
    assert!(world.queue_of("/l", 0).await.is_empty());
}

#[tokio::test]
async fn the_commands_end_is_passed_on() {
    let world = World::new().await;
    for (command, code) in [
        (&["sh", "-c", "exit 0"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "exit 255"], 255),
        (&["sh", "-c", "kill -9 $$"], 128 + 9),
        (&["sh", "-c", "kill -TERM $$"], 128 + 15),
        (&["/dev/null"], 126),
        (&["no-such-command-anywhere"], 127),
    ] {
        let ended = world.run(["lock", "/l", "--"].iter().chain(command)).await;
        assert_eq!(ended.code, Some(code), "{command:?}: {ended:?}");
        assert_eq!(ended.stderr.is_empty(), !(126..=127).contains(&code), "{ended:?}");
        assert!(world.queue_of("/l", 0).await.is_empty());
    }
}

#[tokio::test]
async fn second_command_waits_for_larger_token() {
    let world = World::new().await;
    let mut first = world.lock(&[], "/l", HOLD);
    let first_token: i64 = first.line().await.parse().unwrap();
    let mut second = world.lock(&[], "/l", HOLD);
    world.queue_of("/l", 2).await;
    first.tell("go").await;
    first.ended().await.ok();
    let second_token: i64 = second.line().await.parse().unwrap();
    assert!(second_token > first_token, "{second_token} after {first_token}");
    second.tell("go").await;
    second.ended().await.ok();
}

/// Making a directory is atomic: two commands at once would fail one of them.
#[tokio::test]
async fn commands_of_many_processes_exclude() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let script = format!("cd {} && mkdir inside && echo in && rmdir inside", dir.path().display());
    let running: Vec<Running> = (0..8).map(|_| world.lock(&[], "/l", &script)).collect();
    for command in running {
        assert_eq!(command.ended().await.ok(), "in\n");
    }
}

#[tokio::test]
async fn try_fails_when_held_and_runs_when_free() {
    let world = World::new().await;
    let mut held = world.lock(&[], "/l", HOLD);
    held.line().await;
    let tried = world.run(["lock", "--try", "/l", "--", "echo", "mine"]).await;
    assert_eq!((tried.code, tried.stdout.as_str()), (Some(75), ""), "{tried:?}");
    assert_eq!(tried.complaint(), "/l: taken");
    held.tell("go").await;
    held.ended().await.ok();
    assert_eq!(world.run(["lock", "--try", "/l", "--", "echo", "mine"]).await.ok(), "mine\n");
}

#[tokio::test]
async fn timed_out_wait_has_own_code_and_no_node() {
    let world = World::new().await;
    let mut held = world.lock(&[], "/l", HOLD);
    held.line().await;
    let waited = world.run(["lock", "--timeout", "5s", "/l", "--", "echo", "mine"]).await;
    assert_eq!((waited.code, waited.stdout.as_str()), (Some(124), ""), "{waited:?}");
    assert_eq!(world.queue_of("/l", 1).await.len(), 1);
    held.tell("go").await;
    held.ended().await.ok();
}

#[tokio::test]
async fn node_deletion_ends_all_child_processes() {
    let world = World::new().await;
    // The process in the background has the output open too, so it is waited for below.
    let mut held = world.lock(&[], "/l", "sleep 1000 & echo $ZK_LOCK_PATH; wait");
    let path = held.line().await;
    world.client.delete(&path).await.unwrap();
    let ended = held.ended().await;
    assert_eq!(ended.code, Some(123), "{ended:?}");
    assert!(ended.stderr.contains("own node was deleted"), "{ended:?}");
}

#[tokio::test]
async fn command_ignoring_sigterm_is_killed() {
    let world = World::new().await;
    let script = "trap '' TERM; echo $ZK_LOCK_PATH; while :; do sleep 0.05; done";
    let mut held = world.lock(&["--grace", "200ms"], "/l", script);
    let path = held.line().await;
    world.client.delete(&path).await.unwrap();
    assert_eq!(held.ended().await.code, Some(123));
}

#[tokio::test]
async fn command_may_clean_up_during_grace() {
    let world = World::new().await;
    let script =
        "trap 'echo cleaned up; exit 0' TERM; echo $ZK_LOCK_PATH; while :; do sleep 0.05; done";
    let mut held = world.lock(&["--grace", "1m"], "/l", script);
    let path = held.line().await;
    world.client.delete(&path).await.unwrap();
    let ended = held.ended().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(123), "cleaned up\n"), "{ended:?}");
}

#[tokio::test]
async fn partitioned_holder_ends_its_command() {
    let world = World::new().await;
    let proxy = Proxy::start(world.server.addr()).await.unwrap();
    let mut command = zk(&proxy.connect_string());
    let args = ["lock", "--session-timeout", "10s", "/l", "--"];
    let mut held = Running::start(command.args(args).args(["sh", "-c", HOLD]));
    let token: i64 = held.line().await.parse().unwrap();
    let mut next = world.lock(&[], "/l", HOLD);
    world.queue_of("/l", 2).await;
    proxy.silence();
    let ended = held.ended().await;
    assert_eq!(ended.code, Some(123), "{ended:?}");
    assert!(ended.stderr.contains("lock lost"), "{ended:?}");
    assert!(next.line().await.parse::<i64>().unwrap() > token);
    next.tell("go").await;
    next.ended().await.ok();
}

/// The first command leaves a mark when it ends, and the second one looks for it when it begins: no clock
/// is asked.
#[tokio::test]
async fn margin_ends_command_before_next_grant() {
    let world = World::new().await;
    let proxy = Proxy::start(world.server.addr()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ended");
    let first = format!(
        "trap 'sleep 0.2; echo > {}; exit 0' TERM; echo ready; while :; do sleep 0.02; done",
        mark.display()
    );
    let mut command = zk(&proxy.connect_string());
    command.args([
        "lock",
        "--session-timeout",
        "12s",
        "--margin",
        "3s",
        "/l",
        "--",
        "sh",
        "-c",
        &first,
    ]);
    let mut held = Running::start(&mut command);
    held.line().await;
    let mut next = world.lock(&[], "/l", &format!("ls {} && echo mine", mark.display()));
    world.queue_of("/l", 2).await;
    proxy.silence();
    assert_eq!(next.line().await, mark.display().to_string());
    assert_eq!(next.ended().await.ok(), "mine\n");
    let ended = held.ended().await;
    assert_eq!(ended.code, Some(123), "{ended:?}");
    assert!(ended.stderr.contains("nearly lost"), "{ended:?}");
}

#[tokio::test]
async fn margin_too_large_for_timeout_is_refused() {
    let world = World::new().await;
    // Before it is waited for.
    let mut held = world.lock(&[], "/l", "echo ready; read -r go");
    held.line().await;
    for command in ["lock", "elect"] {
        let args =
            [command, "--session-timeout", "4s", "--margin", "1001ms", "/l", "--", "echo", "mine"];
        let ended = world.run(args).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("at most 1s"), "{ended:?}");
    }
}

#[tokio::test]
async fn without_server_the_command_does_not_run() {
    let mut command = zk("127.0.0.1:1");
    command.args(["lock", "--timeout", "2s", "/l", "--", "echo", "mine"]);
    let ended = run(&mut command).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(69), ""), "{ended:?}");
    assert!(ended.stderr.contains("127.0.0.1:1"), "{ended:?}");
}

#[tokio::test]
async fn exit_code_survives_loss_of_the_server() {
    let world = World::new().await;
    let mut held = world.lock(&[], "/l", "echo ready; read -r go; exit 5");
    held.line().await;
    world.server.kill().await.unwrap();
    held.tell("go").await;
    let ended = held.ended().await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("no server has confirmed"), "{ended:?}");
}

/// The first one ends the wait for the lock, the second one that for the servers, of a session that lasts for ten minutes.
#[tokio::test]
async fn second_signal_ends_the_wait_for_a_confirmation() {
    let mut config = Config::default();
    config.session_timeout_max = Some(Duration::from_secs(600));
    let server = TestServer::start_with(config).await.unwrap();
    let other = Client::connect(&server.connect_string()).await.unwrap();
    let _held = Lock::new(&other, "/l").acquire().await.unwrap();
    let proxy = Proxy::start(server.connect_string().parse().unwrap()).await.unwrap();
    let mut command = zk(&proxy.connect_string());
    command.args(["lock", "--session-timeout", "10m", "/l", "--", "echo", "mine"]);
    let mut waits = Running::start(&mut command);
    let queue = Lock::new(&other, "/l").queue();
    while must("a queue", queue.contenders()).await.unwrap().len() < 2 {
        sleep(Duration::from_millis(5)).await;
    }
    proxy.silence();
    waits.signal(Signal::INT);
    while !waits.remark().await.contains("a signal ends the wait") {}
    waits.signal(Signal::TERM);
    let ended = waits.ended().await;
    assert_eq!((ended.code, &*ended.stdout), (Some(130), ""), "{ended:?}");
    assert!(ended.stderr.contains("no server has confirmed the release;"), "{ended:?}");
}

/// What the connection string ends in is part of what is missing.
#[tokio::test]
async fn missing_chroot_is_created_with_the_lock() {
    let world = World::new().await;
    let chroot = format!("{}/none/of/this", world.server.connect_string());
    let ended = run(zk(&chroot).args(["lock", "/l", "--", "sh", "-c", "echo $ZK_LOCK_PATH"])).await;
    assert!(ended.ok().starts_with("/l/"));
    assert!(world.client.exists("/none/of/this/l").await.unwrap().is_some());
}

/// With all its processes, and although there is no end of `zk` that could see to it.
#[tokio::test]
async fn killed_zk_takes_its_command_along() {
    let world = World::new().await;
    for (kind, args) in [("lock", ["lock", "/l"]), ("elect", ["elect", "/e"])] {
        let script = "trap 'echo asked' TERM; sleep 1000 & echo ready; wait; sleep 1000";
        let mut command = world.zk();
        command.args(args).args(["--grace", "3s", "--", "sh", "-c", script]);
        let mut held = Running::start(&mut command);
        held.line().await;
        held.signal(Signal::KILL);
        // Its output is closed when all of them have ended.
        let ended = held.ended().await;
        assert_eq!((ended.code, &*ended.stdout), (None, "asked\n"), "{kind}: {ended:?}");
        assert!(ended.stderr.contains("ending the command"), "{kind}: {ended:?}");
    }
}

/// The command's first act is that kill. All of it is on one processor, where a new process runs before the one that has
/// started it goes on: so the guardian has heard of it only if the command has seen to that itself.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn command_is_guarded_from_its_first_moment() {
    let world = World::new().await;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let processor = allowed.trim().split(['-', ',']).next().unwrap();
    for turn in 0..10 {
        let zk = world.zk();
        let mut command = tokio::process::Command::new("taskset");
        command.args(["--cpu-list", processor]).arg(zk.as_std().get_program());
        command.args(zk.as_std().get_args()).env("ZK_SERVER", world.server.connect_string());
        command.args(["lock", &format!("/l{turn}"), "--grace", "300ms", "--"]);
        command.args(["sh", "-c", "kill -9 $PPID; exec sleep 1000"]);
        // Its output is closed when the command has ended too.
        let ended = Running::start(&mut command).ended().await;
        assert!(ended.stderr.contains("ending the command"), "turn {turn}: {ended:?}");
    }
}

/// The first command leaves a mark when it has ended, and the second one looks for it.
#[tokio::test]
async fn killed_command_ends_before_next_grant() {
    let world = World::new().await;
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ended").display().to_string();
    let script =
        format!("trap 'echo > {mark}; exit' TERM; echo ready; while :; do sleep 0.02; done");
    let mut held = world.lock(&["--session-timeout", "12s"], "/l", &script);
    held.line().await;
    let mut next = world.lock(&[], "/l", &format!("ls {mark} && echo mine"));
    world.queue_of("/l", 2).await;
    held.signal(Signal::KILL);
    assert_eq!(next.line().await, mark);
    assert_eq!(next.ended().await.ok(), "mine\n");
    held.ended().await;
}

/// No process is left of what watched over it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn guardian_leaves_with_the_command() {
    let world = World::new().await;
    // What /proc lists as a task's children may leave some out while others come and go.
    let children = |parent: i32| {
        let processes = std::fs::read_dir("/proc").unwrap().map(|it| it.unwrap().path());
        let is_child = |process: &std::path::PathBuf| {
            let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
            let behind = stat.rsplit(')').next().unwrap_or_default();
            behind.split_whitespace().nth(1) == Some(&*parent.to_string())
        };
        let pid = |process: std::path::PathBuf| process.file_name()?.to_str().map(str::to_owned);
        processes.filter(is_child).filter_map(pid).collect::<Vec<_>>()
    };
    let mut held = world.lock(&[], "/l", "echo $$; read -r go");
    let command = held.line().await;
    let mut guardians = children(held.pid().as_raw_pid());
    guardians.retain(|pid| *pid != command);
    assert_eq!(guardians.len(), 1, "{guardians:?}");
    let name = std::fs::read(format!("/proc/{}/cmdline", guardians[0])).unwrap();
    assert!(name.starts_with(b"lock-guardian\0"), "{name:?}");
    held.tell("go").await;
    held.ended().await.ok();
    must("the end of the guardian", async {
        let stat = format!("/proc/{}/stat", guardians[0]);
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// It may be waiting in a queue, or run on servers that are out of reach: both are as without the option.
#[tokio::test]
async fn any_answer_renews_the_lease_if_asked_for() {
    let world = World::new().await;
    let lock = ["lock", "--lease", "connection", "/l", "--", "echo", "mine"];
    assert_eq!(world.run(lock).await.ok(), "mine\n");
    let wrong = world.run(["lock", "--lease", "any", "/l", "--", "true"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
