//! No process and no file of a server outlives its test, however the test ends.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use zk_testkit::real::{Server, Wanted};

use crate::support::within_limit;

/// What a server leaves behind without a cleanup.
struct Traces {
    process: Pid,
    data: PathBuf,
}

impl Traces {
    fn of(server: &Server) -> Self {
        let process = server.process_id().expect("a process");
        Self::new(&process.to_string(), &server.data_dir())
    }

    fn new(process: &str, data: &Path) -> Self {
        let process = process.parse().expect("a process id");
        let traces =
            Self { process: Pid::from_raw(process).expect("a process id"), data: data.to_owned() };
        assert!(!traces.are_gone(), "there is nothing to clean up");
        traces
    }

    fn are_gone(&self) -> bool {
        test_kill_process(self.process) == Err(Errno::SRCH) && !self.data.exists()
    }

    /// For a process that is not our child, and a watchdog that is not either: all that can be
    /// done is to look again.
    async fn vanish(&self) {
        within_limit(async {
            while !self.are_gone() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn drop_removes_process_and_files() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let traces = Traces::of(&server);
    drop(server);
    assert!(traces.are_gone());
}

#[tokio::test]
async fn drop_cleans_up_a_paused_server() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let traces = Traces::of(&server);
    server.pause().expect("a pause");
    drop(server);
    assert!(traces.are_gone());
}

#[tokio::test]
async fn panic_removes_process_and_files() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let traces = Traces::of(&server);
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _server = server;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(traces.are_gone());
}

/// A test process that is killed runs no destructors: the watchdog has to act.
#[tokio::test]
async fn killed_test_process_leaves_no_server() {
    let mut victim = Victim::start(&[]);
    let traces = victim.traces();
    victim.process.kill().expect("a kill");
    victim.process.wait().expect("an end");
    for traces in traces {
        traces.vanish().await;
    }
}

#[tokio::test]
async fn killed_test_process_leaves_no_ensemble() {
    let mut victim = Victim::start(&["any", "3"]);
    let traces = victim.traces();
    assert_eq!(traces.len(), 3);
    victim.process.kill().expect("a kill");
    victim.process.wait().expect("an end");
    for traces in traces {
        traces.vanish().await;
    }
}

/// Another process that runs servers.
struct Victim {
    process: Child,
    servers: usize,
}

impl Victim {
    fn start(arguments: &[&str]) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_zk-real"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let members = arguments.get(1).map(|members| members.parse());
        Self { process, servers: members.map_or(1, |members| members.expect("a number")) }
    }

    /// What the servers have, once they run.
    fn traces(&mut self) -> Vec<Traces> {
        let output = self.process.stdout.take().expect("a pipe");
        let lines = BufReader::new(output).lines();
        let traces = lines.take(self.servers).map(|line| {
            let line = line.expect("a line");
            let field = |name: &str| {
                let fields = line.split(' ');
                let mut values = fields.filter_map(|field| field.strip_prefix(name));
                values.next().expect("a field").to_owned()
            };
            Traces::new(&field("process="), Path::new(&field("data=")))
        });
        traces.collect()
    }
}
