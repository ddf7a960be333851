//! A PostgreSQL server.

use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;

use crate::patience::until;

/// Where Debian keeps the servers, a folder for each release.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A PostgreSQL server with a new cluster in a temporary folder, on a unix socket there. It ends with this value, and by
/// the kernel's hand if the test's own process is killed.
#[derive(Debug)]
pub struct Postgres {
    server: Child,
    folder: TempDir,
}

impl Postgres {
    /// Starts it, and waits until it takes connections. For root it runs as `postgres`, the user of Debian's package: it
    /// refuses to be root's.
    ///
    /// # Panics
    /// PostgreSQL is not there, or does not work.
    pub async fn start() -> Self {
        let bin = programs();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cluster = folder.path().join("cluster");
        if getuid().is_root() {
            chown(folder.path(), Some(id_of_postgres()), None).expect("root may do that");
        }
        let mut initdb = unprivileged(&bin.join("initdb"));
        initdb.args(["--auth=trust", "--username=postgres", "--no-sync", "--locale=C", "-D"]);
        run(initdb.arg(&cluster));

        let mut postgres = unprivileged(&bin.join("postgres"));
        postgres.arg("-D").arg(&cluster).arg("-k").arg(folder.path());
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=off"]);
        let log = fs::File::create(folder.path().join("log")).expect("a log file");
        let server = postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let server = Self { server: server.expect("setpriv is there"), folder };
        until("PostgreSQL takes connections", async || {
            let mut asking = Command::new(bin.join("pg_isready"));
            asking.arg("-q").arg("-h").arg(server.folder.path());
            asking.status().expect("it is beside the server").success().then_some(())
        })
        .await;
        server
    }

    /// How to connect to one of its databases; `postgres` is there from the start.
    #[must_use]
    pub fn connect_string(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.folder.path().display())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An immediate shutdown: nothing of it is needed any more. Its own processes end with it.
        let _ = kill_process(Pid::from_child(&self.server), Signal::QUIT);
        let _ = self.server.wait();
    }
}

/// The folder of the newest release's programs.
fn programs() -> PathBuf {
    let entries = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let release = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = entries.map(|entry| entry.path()).max_by_key(|path| release(path));
    let bin = newest.map(|path| path.join("bin")).filter(|bin| bin.join("initdb").exists());
    bin.unwrap_or_else(|| {
        panic!(
            "no PostgreSQL in {DEBIAN}: install Debian's package `postgresql`, as .ci/examples does"
        )
    })
}

/// A command that is not root's, and ends with this process.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if getuid().is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command.args(["--pdeathsig", "QUIT", "--"]).arg(program);
    // Root's own folder may be closed to it.
    command.current_dir("/");
    command
}

fn id_of_postgres() -> u32 {
    let output = Command::new("id").args(["-u", "postgres"]).output().expect("id is there");
    let id = String::from_utf8_lossy(&output.stdout).trim().parse();
    id.expect("Debian's package has made the user `postgres`")
}

fn run(command: &mut Command) {
    let output = command.output().expect("setpriv is there");
    assert!(output.status.success(), "{command:?}: {output:?}");
}
