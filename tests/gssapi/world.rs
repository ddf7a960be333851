//! A realm, a server in it, and clients in processes of their own.

use std::{
    future::Future,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use zk_testkit::real::{Kdc, Release, Server};

pub(crate) const RELEASES: [Release; 2] = [Release::V3_8, Release::V3_9];

/// What servers are called that listen on loopback.
pub(crate) const SERVICE: &str = "zookeeper/localhost";

/// Longer than any test lasts.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// The shortest that there is.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// Whatever a test waits for comes within this time, or never.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
pub(crate) async fn must<F: Future>(what: &str, future: F) -> F::Output {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// A realm, and a server in it.
pub(crate) struct World {
    pub(crate) kdc: Kdc,
    pub(crate) server: Server,
    files: TempDir,
}

impl World {
    pub(crate) async fn of(release: Release) -> Self {
        let kdc = Kdc::start().await.unwrap();
        let service = kdc.service(SERVICE).await.unwrap();
        let server = Server::builder().release(release).kerberos(&service).start().await.unwrap();
        Self { kdc, server, files: tempfile::tempdir().unwrap() }
    }

    /// The server, by the name that it has in the realm.
    pub(crate) fn address(&self) -> String {
        named(self.server.addr().port())
    }

    /// A cache with nothing in it yet.
    pub(crate) fn cache(&self) -> PathBuf {
        self.files.path().join("cache")
    }

    /// A cache with a ticket that lasts.
    pub(crate) async fn logged_in(&self, principal: &str) -> PathBuf {
        let keytab = self.kdc.keytab(&[principal]).await.unwrap();
        let cache = self.files.path().join(format!("cache-of-{principal}"));
        self.kdc.log_in(principal, &keytab, LONG, &cache).await.unwrap();
        cache
    }

    /// Has the ticket in a cache be one that has expired.
    pub(crate) async fn expire(&self, principal: &str, cache: &Path) {
        let keytab = self.kdc.keytab(&[principal]).await.unwrap();
        self.kdc.log_in(principal, &keytab, SHORT, cache).await.unwrap();
        while self.kdc.is_logged_in(cache).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A client with this cache.
    pub(crate) async fn with_cache(&self, cache: &Path, args: &[&str]) -> Process {
        Process::start(&self.kdc, &[("KRB5CCNAME", cache)], args).await
    }

    /// A client with these keys, and tickets only in its memory.
    pub(crate) async fn with_keys(&self, keytab: &Path, args: &[&str]) -> Process {
        let environment = [("KRB5_CLIENT_KTNAME", keytab), ("KRB5CCNAME", Path::new("MEMORY:own"))];
        Process::start(&self.kdc, &environment, args).await
    }
}

/// A port, by the name that servers have in the realm.
pub(crate) fn named(port: u16) -> String {
    format!("localhost:{port}")
}

/// A client's process, which is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) async fn start(kdc: &Kdc, environment: &[(&str, &Path)], args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zk-gssapi"));
        command.args(args).env("KRB5_CONFIG", kdc.config());
        for name in ["KRB5CCNAME", "KRB5_CLIENT_KTNAME", "KRB5_KTNAME", "KRB5_TRACE"] {
            command.env_remove(name);
        }
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdin, lines }
    }

    /// What it says next.
    pub(crate) async fn says(&mut self) -> String {
        let line = must("the client says something", self.lines.next_line()).await;
        line.unwrap().expect("the client has something to say")
    }

    /// Waits for its session.
    pub(crate) async fn connected(mut self) -> Self {
        assert_eq!(self.says().await, "connected");
        self
    }

    /// Tells it something.
    pub(crate) async fn tell(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Tells it something, and waits for what comes of it.
    pub(crate) async fn ask(&mut self, line: &str) -> String {
        self.tell(line).await;
        self.says().await
    }

    /// Waits until it has ended by itself: it has said why there is no session.
    pub(crate) async fn why_not(mut self) -> String {
        let why = self.says().await;
        let ended = must("the client ends", self.child.wait()).await;
        assert!(ended.unwrap().success() && why != "connected", "{why}");
        why
    }
}
