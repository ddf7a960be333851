//! Instances are registered by this program and by Curator's x-discovery, and each sees those of both, on a real ZooKeeper.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{Program, until};
use zk_locks::Client;
use zk_testkit::real::{Locator, Release, Server};

const OURS: &str = env!("CARGO_BIN_EXE_discovery");
const POM: &str = include_str!("curator/pom.xml");
const PEER: &str = include_str!("curator/Peer.java");

/// A small and quickly started JVM.
const JVM_OPTIONS: [&str; 5] = [
    "-Xmx96m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
];

/// Curator's side.
struct Curator {
    java: PathBuf,
    class_path: String,
}

impl Curator {
    /// Fetches it with Maven into a temporary folder; Maven keeps what it has fetched.
    fn prepare(java: &Path, folder: &Path) -> Self {
        let (pom, source) = (folder.join("pom.xml"), folder.join("Peer.java"));
        fs::write(&pom, POM).unwrap();
        fs::write(&source, PEER).unwrap();
        let (jars, classes) = (folder.join("jars"), folder.join("classes"));
        let mut maven = Command::new("mvn");
        maven.args(["--quiet", "--batch-mode", "dependency:copy-dependencies", "-f"]).arg(pom);
        run(maven.arg(format!("-DoutputDirectory={}", jars.display())));
        let entries = fs::read_dir(jars).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.push(classes.clone());
        let class_path = env::join_paths(paths).map(OsString::into_string).unwrap().unwrap();
        let mut compiler = Command::new(java);
        compiler.args(["-cp", &*class_path, "org.eclipse.jdt.internal.compiler.batch.Main"]);
        compiler.args(["-17", "-nowarn", "-proc:none", "-cp", &*class_path, "-d"]);
        run(compiler.arg(classes).arg(source));
        Self { java: java.to_owned(), class_path }
    }

    fn start(&self, arguments: &[&str]) -> Program {
        let java = [&JVM_OPTIONS[..], &["-cp", &self.class_path, "Peer"], arguments].concat();
        Program::start(self.java.to_str().unwrap(), &java, &SESSION)
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{error}: install Maven and Java, as .ci/examples does: {command:?}")
    });
    assert!(output.status.success(), "{command:?}: {output:?}");
}

const SESSION: [(&str, &str); 1] = [("SESSION_MS", "2000")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn we_and_curator_see_each_other_come_and_go() {
    let server = Server::start(Release::V3_9).await.unwrap();
    let found = Locator::from_env().locate(Release::V3_9).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let curator = Curator::prepare(found.java(), folder.path());
    let servers = &*server.connect_string();
    let ours = |arguments: &[&str]| Program::start(OURS, arguments, &SESSION);

    // Both sides look before there is anything.
    let watch = ["watch", servers, "/services", "mail"];
    let mut watchers = [ours(&watch), curator.start(&watch)];
    watchers[1].line("mail: ").await;

    // Ours comes, then Curator's.
    let mut us = ours(&["register", servers, "/services", "mail", "a", "127.0.0.1", "25"]);
    us.line("Present").await;
    see(&mut watchers, "mail: a=http://127.0.0.1:25").await;
    let mut peer = curator.start(&["register", servers, "/services", "mail", "b", "::1", "26"]);
    peer.line("registered").await;
    see(&mut watchers, "mail: a=http://127.0.0.1:25 b=http://::1:26").await;

    // The nodes have the same fields.
    let zk = Client::connect(servers).await.unwrap();
    let fields = async |id: &str| {
        let (json, _) = zk.get(&format!("/services/mail/{id}")).await.unwrap();
        let json: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&json).unwrap();
        json.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(fields("a").await, fields("b").await);

    // A process that is killed is gone when its session is over; one that is stopped comes again.
    peer.kill().await;
    see(&mut watchers, "mail: a=http://127.0.0.1:25").await;
    us.pause();
    see(&mut watchers, "mail: ").await;
    us.resume();
    see(&mut watchers, "mail: a=http://127.0.0.1:25").await;
    us.terminate();
    assert!(us.ended().await.success());
    see(&mut watchers, "mail: ").await;

    // The same for Curator's, and what it has registered again.
    let mut peer = curator.start(&["register", servers, "/services", "mail", "b", "::1", "26"]);
    see(&mut watchers, "mail: b=http://::1:26").await;
    peer.pause();
    see(&mut watchers, "mail: ").await;
    peer.resume();
    see(&mut watchers, "mail: b=http://::1:26").await;
    peer.kill().await;
    see(&mut watchers, "mail: ").await;

    // A server that goes away takes nothing out of the lists.
    let mut us = ours(&["register", servers, "/services", "mail", "a", "127.0.0.1", "25"]);
    see(&mut watchers, "mail: a=http://127.0.0.1:25").await;
    server.restart().await.unwrap();
    until("it is registered", async || {
        let there = Client::connect(servers).await.ok()?.exists("/services/mail/a").await.ok()?;
        there.map(drop)
    })
    .await;
    us.terminate();
    us.ended().await;
    see(&mut watchers, "mail: ").await;
}

/// Waits until both print exactly this line.
async fn see(watchers: &mut [Program; 2], line: &str) {
    for watcher in watchers {
        loop {
            if watcher.line("mail: ").await == line {
                break;
            }
        }
    }
}
