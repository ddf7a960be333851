//! `zk shell`.

use std::{path::Path, process::Stdio};

use tokio::io::AsyncWriteExt as _;
use zk_client::SessionId;
use zk_testkit::TestServer;

use crate::{
    screen::Screen,
    support::{Ended, World, must, zk},
    tmux::Tmux,
};

/// Runs lines as a script.
async fn script(server: &str, args: &[&str], lines: &str) -> Ended {
    let mut command = zk(server);
    command.arg("shell").args(args).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).await.unwrap();
    let output = must("the end of the script", child.wait_with_output()).await.unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test]
async fn scripts_use_the_words_of_the_command_line() {
    let world = World::new().await;
    let lines = "# made by hand\ncreate --parents /a/b 'two words'\ncd /a\npwd\nls\nget b\n\
                 create --sequential n- x\nlock l -- sh -c 'test $ZK_LOCK_TOKEN -gt 0'\n\
                 ls ..\ncd ..\npwd\nexit\nget /never\n";
    let text = script(&world.server.connect_string(), &[], lines).await.ok();
    let numbered = "/a/n-0000000001";
    assert_eq!(text, format!("/a/b\n/a\nb\ntwo words\n{numbered}\na\nzookeeper\n/\n"));
}

#[tokio::test]
async fn all_lines_share_a_session() {
    let server = TestServer::start().await.unwrap();
    let lines = "create /a\nls /\nget /a\nset /a x\nlock /l -- true\nwhoami\n";
    script(&server.connect_string(), &[], lines).await.ok();
    let client = zk_client::Client::connect(&server.connect_string()).await.unwrap();
    // Each session takes a transaction to begin and one to end, and each write one. The shell's session: 2. The create and
    // the write of `/a`: 2. The lock: a create that finds no path, the path, and a node that comes and goes: 4. Our own
    // session, and the create that tells: 2.
    let zxid = client.create("/z", b"").await.unwrap().stat.czxid.0 & 0xffff_ffff;
    assert_eq!(zxid, 2 + 2 + 4 + 2);
}

/// It lasts as long as the shell, which goes on; a command line alone waits with its node.
#[tokio::test]
async fn ephemeral_nodes_belong_to_the_shell() {
    let server = TestServer::start().await.unwrap();
    let lines = "create --ephemeral /here x\nls /\nzk get /here\n";
    let text = script(&server.connect_string(), &[], lines).await.ok();
    assert_eq!(text, "/here\nhere\nzookeeper\nx\n");
    let client = zk_client::Client::connect(&server.connect_string()).await.unwrap();
    assert_eq!(client.exists("/here").await.unwrap(), None, "it has gone with the shell");
}

/// One frame of a screen is a command as others are: the session goes on behind it.
#[tokio::test]
async fn a_report_leaves_the_session_to_the_shell() {
    let server = TestServer::start().await.unwrap();
    let lines = "create --ephemeral /here x\ntop --once\nget /here\n";
    let text = script(&server.connect_string(), &[], lines).await.ok();
    assert!(text.contains("1 of 1 serve") && text.ends_with("\nx\n"), "{text}");
}

/// With and without the name of the program in front, as advice has it.
#[tokio::test]
async fn version_without_its_option_is_never_data() {
    let world = World::new().await;
    let server = world.server.connect_string();
    world.run(["create", "/a", "old"]).await.ok();
    for line in ["set /a -v 3\n", "zk set /a -v 3\n"] {
        let ended = script(&server, &[], line).await;
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains("--version 3"), "{line}: {ended:?}");
    }
    assert_eq!(world.run(["get", "/a"]).await.ok(), "old");
}

#[tokio::test]
async fn help_has_the_words_of_the_shell() {
    let world = World::new().await;
    let server = world.server.connect_string();
    let text = script(&server, &[], "help\nhelp cd\nhelp exit\nhelp get\n").await.ok();
    for has in [
        "In this shell: cd [PATH], pwd, exit",
        "Usage: cd [PATH]",
        "Usage: exit",
        "Print a node's data",
    ] {
        assert!(text.contains(has), "{has}: {text}");
    }
    let ended = script(&server, &[], "create -e /b\n").await;
    assert!(ended.stderr.ends_with("in place of other tools' -e: --ephemeral\n"), "{ended:?}");
}

#[tokio::test]
async fn node_to_begin_in_must_be_there() {
    let world = World::new().await;
    let server = world.server.connect_string();
    world.run(["create", "/a", "x"]).await.ok();
    assert_eq!(script(&server, &["/a"], "pwd\nget .\n").await.ok(), "/a\nx\n");
    let ended = script(&server, &["/nope"], "").await;
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.starts_with("zk: /nope: no such node\n"), "{ended:?}");
}

#[tokio::test]
async fn a_script_ends_with_its_first_failure() {
    let world = World::new().await;
    let server = world.server.connect_string();
    let lines = "create /a\nget /b\ncreate /c\n";
    let ended = script(&server, &[], lines).await;
    assert_eq!((ended.code, &*ended.stdout), (Some(1), "/a\n"), "{ended:?}");
    assert_eq!(ended.stderr, "zk: line 2: /b: no such node\n    zk ls / lists what exists\n");
    let ended = script(&server, &["--keep-going"], "get /b\nfly\ncreate /c\n").await;
    assert_eq!((ended.code, &*ended.stdout), (Some(1), "/c\n"), "{ended:?}");
    assert!(ended.stderr.contains("zk: line 2: unrecognized subcommand 'fly'"), "{ended:?}");
    let ended = script(&server, &[], "set /a -\nthe rest\n").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.run(["get", "/a"]).await.ok(), "the rest\n");
}

fn typed(server: &str, state: &Path) -> Screen {
    let state = state.to_owned();
    Screen::with(server, &["shell"], 30, 100, move |command| {
        command.env("XDG_STATE_HOME", state);
    })
}

/// Waits for a prompt behind all else: what is typed before that is for whatever reads it then.
async fn prompted(screen: &mut Screen, prompt: &str) {
    screen.until(prompt, |text| text.trim_end().ends_with(prompt)).await;
}

#[tokio::test]
async fn tab_completes_commands_options_and_paths() {
    let world = World::new().await;
    world.run(["create", "--parents", "/locks/a report"]).await.ok();
    let state = tempfile::tempdir().unwrap();
    let mut screen = typed(&world.server.connect_string(), state.path());
    screen.see("zk:/> ").await;
    screen.press("hold\t/lo\t");
    screen.see("zk:/> holders /locks/").await;
    screen.press("\x03");
    screen.until("another prompt", |text| text.matches("zk:/> ").count() == 2).await;
    screen.press("cd /lo\t\r");
    screen.see("zk:/locks> ").await;
    screen.press("stat a\t");
    screen.see("zk:/locks> stat a\\ report").await;
    screen.press("--js\t\r");
    screen.see("\"path\":\"/locks/a report\"").await;
    prompted(&mut screen, "zk:/locks>").await;
    screen.press("\x04");
    assert_eq!(screen.ended().await, Some(0));
    assert!(screen.is_cooked());
}

#[tokio::test]
async fn lines_are_remembered_but_no_secrets() {
    let world = World::new().await;
    let state = tempfile::tempdir().unwrap();
    let server = world.server.connect_string();
    let mut screen = typed(&server, state.path());
    screen.see("zk:/> ").await;
    screen.press("ls --auth digest:ann:sesame /\r");
    screen.see("zookeeper").await;
    prompted(&mut screen, "zk:/>").await;
    screen.press("create /first\r");
    screen.see("\n/first\n").await;
    prompted(&mut screen, "zk:/>").await;
    screen.press("\x04");
    assert_eq!(screen.ended().await, Some(0));
    let kept = std::fs::read_to_string(state.path().join("zk/history")).unwrap();
    assert!(kept.contains("create /first") && !kept.contains("sesame"), "{kept}");
    let mut screen = typed(&server, state.path());
    screen.see("zk:/> ").await;
    screen.press("\x1b[A");
    screen.see("zk:/> create /first").await;
}

#[tokio::test]
async fn interrupt_ends_the_command_not_the_shell() {
    let world = World::new().await;
    let state = tempfile::tempdir().unwrap();
    let mut screen = typed(&world.server.connect_string(), state.path());
    screen.see("zk:/> ").await;
    screen.press("watch /\r");
    screen.see("watching /").await;
    screen.press("\x03");
    prompted(&mut screen, "^C\nzk:/>").await;
    screen.press("lock /l -- sh -c 'echo held; exec sleep 1000'\r");
    screen.until("the lock", |text| text.lines().any(|line| line == "held")).await;
    screen.press("\x03");
    prompted(&mut screen, "held\n^C\nzk:/>").await;
    screen.press("holders /l\r");
    screen.see("no holder, no waiters").await;
}

#[tokio::test]
async fn lost_session_is_reported_and_replaced() {
    let server = TestServer::start().await.unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut screen = typed(&server.connect_string(), state.path());
    screen.see("zk:/> ").await;
    screen.press("whoami\r");
    screen.see("ip:127.0.0.1").await;
    prompted(&mut screen, "zk:/>").await;
    let sessions: Vec<SessionId> = server.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    server.expire(sessions[0]);
    // Which of these notices it first is up to the connection.
    screen.press("ls /\rls /\r");
    screen.see("is lost: session expired; this is another one").await;
    screen.see("zookeeper").await;
}

#[tokio::test]
async fn shell_works_in_tmux() {
    let server = TestServer::start().await.unwrap();
    let state = tempfile::tempdir().unwrap();
    let (zk, servers) = (env!("CARGO_BIN_EXE_zk"), server.connect_string());
    let state = state.path().display();
    let line =
        format!("XDG_STATE_HOME={state} {zk} shell --server {servers}; echo ended $?; read -r x");
    let tmux = Tmux::start(&line, 100, 24).await;
    tmux.see("zk:/>").await;
    tmux.write("create /a data").await;
    tmux.press(&["Enter"]).await;
    tmux.write("ge").await;
    tmux.press(&["Tab"]).await;
    tmux.write("/a").await;
    tmux.press(&["Tab", "Enter"]).await;
    tmux.see("zk:/> get /a\ndata\nzk:/>").await;
    tmux.press(&["C-d"]).await;
    tmux.see("ended 0").await;
}

/// The session that it waits for is the shell's.
#[tokio::test]
async fn timeout_of_a_lock_includes_connecting() {
    let server = TestServer::start().await.unwrap();
    server.pause();
    let began = std::time::Instant::now();
    let args = ["--connect-timeout", "30s"];
    let ended = script(&server.connect_string(), &args, "lock --timeout 1s /l -- true\n").await;
    assert!(began.elapsed() < std::time::Duration::from_secs(29), "{ended:?}");
    assert_eq!(ended.code, Some(124), "{ended:?}");
}
