//! Durations of any length on the command line: each does what it says, or is refused; nothing panics.

use std::collections::BTreeSet;

use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::support::{Running, World, run, subcommands, zk};

const LENGTHS: [&str; 5] =
    ["0", "1ms", "3600", "18446744073709551615", "18446744073709551615years"];

/// What stands in front of a duration, and behind it.
const ROWS: [(&[&str], &[&str]); 12] = [
    (&["get", "/", "--session-timeout"], &[]),
    (&["get", "/", "--connect-timeout"], &[]),
    (&["create", "/kept", "--ttl"], &[]),
    (&["lock", "--timeout"], &["/timeout", "--", "true"]),
    (&["lock", "--grace"], &["/grace", "--", "true"]),
    (&["lock", "--margin"], &["/margin", "--", "true"]),
    (&["elect", "--grace"], &["/led", "--", "true"]),
    (&["elect", "--margin"], &["/led-too", "--", "true"]),
    (&["health", "--timeout"], &[]),
    (&["sessions", "--timeout"], &[]),
    (&["top", "--interval"], &[]),
    (&["top", "--timeout"], &[]),
];

/// Those that run for the given time, or until they are stopped.
const LASTING: [[&str; 2]; 6] = [
    ["serve", "--tick"],
    ["serve", "--min-session-timeout"],
    ["serve", "--max-session-timeout"],
    ["serve", "--container-check"],
    ["serve", "--latency"],
    ["demo", "--hold"],
];

/// Those of all commands that go to a server.
const EVERYWHERE: [&str; 2] = ["--session-timeout", "--connect-timeout"];

/// Done; failed; refused; no session; not in time.
const CODES: [i32; 5] = [0, 1, 2, 69, 124];

#[tokio::test]
async fn every_option_with_a_duration_is_tried() {
    let tried = ROWS.iter().map(|(row, _)| [row[0], row[row.len() - 1]]);
    let tried: BTreeSet<[&str; 2]> = tried.chain(LASTING).collect();
    for command in subcommands().await {
        let mut help = run(zk("").args([&*command, "--help"])).await.ok();
        if command == "serve" {
            help.push_str(&run(zk("").args(["help", "serving"])).await.ok());
        }
        let options = help.lines().filter(|line| line.ends_with("<D>") || line.ends_with("<MS>"));
        for option in
            options.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
        {
            let known = tried.contains(&[&*command, option]);
            assert!(known, "not tried with the lengths of this file: {command} {option}");
        }
    }
    let help = run(zk("").args(["help", "connection"])).await.ok();
    let options = help.lines().filter(|line| line.ends_with(" <D>"));
    let named = options.filter_map(|line| line.split_whitespace().find(|it| it.starts_with("--")));
    assert_eq!(named.collect::<BTreeSet<_>>(), BTreeSet::from(EVERYWHERE));
}

#[tokio::test]
async fn any_duration_works_or_is_refused() {
    let world = World::new().await;
    for length in LENGTHS {
        // Beside each other, as several use up their time.
        let mut running = JoinSet::new();
        for (before, behind) in ROWS {
            let mut command = world.zk();
            command.args(before).arg(length).args(behind);
            running.spawn(async move { (before, run(&mut command).await) });
        }
        for (before, ended) in running.join_all().await {
            let told = format!("{before:?} {length}: {ended:?}");
            assert!(ended.code.is_some_and(|code| CODES.contains(&code)), "{told}");
            assert!(!ended.stderr.contains("panicked"), "{told}");
            assert!(ended.code == Some(0) || !(ended.stdout + &ended.stderr).is_empty(), "{told}");
            // A free lock is had in an hour, and in half an eternity.
            let is_long = LENGTHS[2..4].contains(&length);
            assert!(!is_long || before != ["lock", "--timeout"] || ended.code == Some(0), "{told}");
        }
    }
}

#[tokio::test]
async fn long_running_commands_start_and_stop() {
    for length in &LENGTHS[..4] {
        // A server has no use for a time of nothing, but on the way of its answers.
        let is_refused = |[command, option]: &[&str; 2]| {
            *length == "0" && *command == "serve" && *option != "--latency"
        };
        for [command, option] in LASTING.into_iter().filter(|row| !is_refused(row)) {
            let port: &[&str] = if command == "serve" { &["--port", "0"] } else { &[] };
            let mut running = Running::start(zk("").args([command, option, length]).args(port));
            running.line().await;
            running.signal(Signal::TERM);
            let ended = running.ended().await;
            assert!(!ended.stderr.contains("panicked"), "{command} {length}: {ended:?}");
        }
    }
}
