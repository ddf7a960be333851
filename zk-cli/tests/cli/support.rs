//! A server, and the command against it.

use std::{ffi::OsStr, future::Future, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use zk_client::{Client, ReadError, Rejection};
use zk_locks::{Contender, Lock};
use zk_testkit::real::{Server, Wanted};

use crate::pool::Pooled;

/// Whatever a test waits for comes within this time, or never.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
pub(crate) async fn must<F: Future>(what: &str, future: F) -> F::Output {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// A server of the test's own, and a session beside the command's.
pub(crate) struct World {
    pub(crate) server: Pooled,
    pub(crate) client: Client,
}

/// How a command has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Standard output, of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.stdout
    }

    /// What has failed: the first line of standard error, behind which stands what to do next.
    #[track_caller]
    pub(crate) fn complaint(&self) -> &str {
        let (complaint, next) = self.stderr.split_once('\n').unwrap_or_else(|| panic!("{self:?}"));
        assert!(next.starts_with("    ") && next.ends_with('\n'), "{self:?}");
        complaint.strip_prefix("zk: ").unwrap_or_else(|| panic!("{self:?}"))
    }

    /// Standard output as one JSON value, of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        let text = self.ok();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl World {
    /// With a server that other tests have used before.
    pub(crate) async fn new() -> Self {
        Self::on(Pooled::empty().await).await
    }

    /// With a server that is only just started.
    pub(crate) async fn of(wanted: impl Into<Wanted>) -> Self {
        Self::on(Pooled::alone(Server::start(wanted).await.unwrap())).await
    }

    async fn on(server: Pooled) -> Self {
        let client = Client::connect(&server.connect_string()).await.unwrap();
        Self { server, client }
    }

    /// The command, against this server.
    pub(crate) fn zk(&self) -> Command {
        zk(&self.server.connect_string())
    }

    /// Runs the command to its end, without input.
    pub(crate) async fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ended {
        run(self.zk().args(args)).await
    }

    /// Starts `zk lock ARGS PATH -- sh -c SCRIPT` with pipes to talk to the script.
    pub(crate) fn lock(&self, args: &[&str], path: &str, script: &str) -> Running {
        let mut command = self.zk();
        command.arg("lock").args(args).args([path, "--", "sh", "-c", script]);
        Running::start(&mut command)
    }

    /// Waits until so many are in the queue of a lock, and returns them.
    pub(crate) async fn queue_of(&self, path: &str, len: usize) -> Vec<Contender> {
        must(&format!("{len} in the queue"), async {
            loop {
                let changed = match self.client.children(path).watch().await {
                    Ok((_, changed)) => changed,
                    Err(ReadError::Rejected(Rejection::NoNode)) => {
                        self.client.exists(path).watch().await.unwrap().1
                    }
                    Err(error) => panic!("{error}"),
                };
                let queue = Lock::new(&self.client, path).queue().contenders().await.unwrap();
                if queue.len() == len {
                    return queue;
                }
                changed.await.unwrap();
            }
        })
        .await
    }
}

/// What puts a command in front of which it stands into a well-defined state (with GNU's `env`): a shell that runs
/// the tests in the background of a script has them ignore signals, and what they start would too.
pub(crate) const HEARING: [&str; 2] =
    ["/usr/bin/env", "--default-signal=INT,QUIT,HUP,TERM,USR1,USR2"];

/// The command, against this server.
pub(crate) fn zk(server: &str) -> Command {
    let [env, default_signals] = HEARING;
    let mut command = Command::new(env);
    command.args([default_signals, env!("CARGO_BIN_EXE_zk")]);
    command
        .env("ZK_SERVER", server)
        .env_remove("ZK_AUTH")
        .env_remove("ZK_PROFILE")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// The names of all subcommands, as the help lists them.
pub(crate) async fn subcommands() -> Vec<String> {
    let help = run(zk("").arg("--help")).await.ok();
    let (listed, _) = help.split_once("Examples:").unwrap();
    let lines = listed.lines().filter_map(|line| line.strip_prefix("  "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Runs a command to its end.
pub(crate) async fn run(command: &mut Command) -> Ended {
    let output = must("the end of the command", command.output()).await.unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A command that runs, and can be talked to. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { stdin: child.stdin.take(), stdout, stderr, child }
    }

    /// The next line that it prints.
    pub(crate) async fn line(&mut self) -> String {
        let line = must("a line of output", self.stdout.next_line()).await.unwrap();
        line.expect("output goes on")
    }

    /// The next line that it says beside its output.
    pub(crate) async fn remark(&mut self) -> String {
        let line = must("a line beside the output", self.stderr.next_line()).await.unwrap();
        line.expect("it goes on")
    }

    /// Writes a line to it, which need not be text.
    pub(crate) async fn tell(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(&[line.as_ref(), b"\n"].concat()).await.unwrap();
    }

    /// Lets it read the end of its input.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap()
    }

    /// Sends a signal to `zk` alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end, and for the end of all that have its output open. Its input stays open that long.
    /// Output is what has not been read by [`line`](Self::line) and [`remark`](Self::remark).
    pub(crate) async fn ended(mut self) -> Ended {
        must("the end of the command", async {
            let (stdout, stderr) = (rest(self.stdout).await, rest(self.stderr).await);
            let status = self.child.wait().await.unwrap();
            Ended { code: status.code(), stdout, stderr }
        })
        .await
    }
}

/// What has not been read yet.
async fn rest<R: AsyncRead + Unpin>(mut lines: Lines<BufReader<R>>) -> String {
    let mut rest = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        rest.push_str(&line);
        rest.push('\n');
    }
    rest
}
