use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::config::{self, Settings};
use super::distribution::Distribution;
use super::error::Error;
use super::four_letter::{self, ANSWER_LIMIT, Mode, Patience, READY_POLL, Standing};
use super::host::Host;
use super::journal;
use super::life::Life;
use crate::port::HeldPort;
use crate::release::{Release, Version};

/// A server that is not ready by then has a problem; on an idle machine it takes half a second.
pub(super) const READY_LIMIT: Duration = Duration::from_secs(180);

/// How often a dying process is asked whether it is dead.
const GONE_POLL: Duration = Duration::from_millis(2);

/// An orderly shutdown that takes longer than this is cut short.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How much of a server's log an error carries.
const LOG_LINES: usize = 40;

/// A real ZooKeeper server, in a process of its own on a loopback port of its own.
///
/// Dropping it kills the process, waits for it, and removes its files. That also happens when a
/// test panics; and if the testing process itself is killed, a watchdog process does the same.
///
/// All methods take `&self`, so that one task of a test can kill and restart servers while
/// others talk to them.
///
/// ```no_run
/// # async fn example() -> Result<(), zk_testkit::real::Error> {
/// use zk_testkit::real::{Release, Server};
///
/// let server = Server::start(Release::V3_9).await?;
/// println!("{} at {}", server.version(), server.connect_string());
/// server.kill().await?;
/// server.restart().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    life: Mutex<Life>,
    /// Java, or what starts it where it is to run.
    program: PathBuf,
    arguments: Vec<OsString>,
    version: Version,
    log: PathBuf,
    addr: SocketAddr,
    // Dropped last, in this order: files after processes, ports after files.
    dir: TempDir,
    secure_port: Option<HeldPort>,
    _ports: Vec<HeldPort>,
}

/// What a server is made of, beyond its settings.
pub(super) struct Blueprint<'a> {
    pub(super) distribution: &'a Distribution,
    pub(super) settings: &'a Settings,
    /// Where clients connect.
    pub(super) addr: SocketAddr,
    /// Where it runs, if not beside the test.
    pub(super) host: Option<&'a Host>,
    /// The lines of `zoo.cfg` that are not the caller's choice: its part in an ensemble, further ports.
    pub(super) lines: String,
    /// Its number in the ensemble.
    pub(super) member_id: Option<usize>,
    /// The port for TLS, if there is one.
    pub(super) secure_port: Option<HeldPort>,
    /// Other ports that are held for it.
    pub(super) ports: Vec<HeldPort>,
}

impl Server {
    /// Writes the server's files; it does not run yet.
    pub(super) fn prepare(blueprint: Blueprint<'_>) -> Result<Self, Error> {
        let prepare = || {
            let mut files = tempfile::Builder::new();
            files.prefix("zk-testkit-");
            let dir = match blueprint.host {
                Some(host) => files.tempdir_in(&host.files)?,
                None => files.tempdir()?,
            };
            let arguments = blueprint.settings.write(
                dir.path(),
                blueprint.distribution,
                blueprint.addr,
                &blueprint.lines,
            )?;
            let (program, arguments) =
                launched_by(blueprint.host, blueprint.distribution.java(), arguments);
            if let Some(id) = blueprint.member_id {
                fs::write(config::data_dir(dir.path()).join("myid"), id.to_string())?;
            }
            let life = Life::new(dir.path())?;
            journal::note(blueprint.distribution)?;
            Ok(Self {
                life: Mutex::new(life),
                program,
                arguments,
                version: blueprint.distribution.version().clone(),
                log: dir.path().join("server.log"),
                addr: blueprint.addr,
                dir,
                secure_port: blueprint.secure_port,
                _ports: blueprint.ports,
            })
        };
        prepare().map_err(Error::io("prepare a server"))
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// [`addr`](Self::addr) as a client's connection string.
    pub fn connect_string(&self) -> String {
        self.addr().to_string()
    }

    /// Where clients connect by TLS, if it listens for that too (see `ServerBuilder::secure`).
    pub fn secure_addr(&self) -> Option<SocketAddr> {
        self.secure_port.as_ref().map(HeldPort::addr)
    }

    /// The server's version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The server's release line.
    pub fn release(&self) -> Release {
        self.version.release()
    }

    /// The directory that holds the transaction log and the snapshots.
    pub fn data_dir(&self) -> PathBuf {
        config::data_dir(self.dir.path())
    }

    /// The process id, while there is a process.
    pub fn process_id(&self) -> Option<u32> {
        let mut life = self.life();
        // A process that cannot be asked is as good as none.
        if life.reap().unwrap_or(true) {
            return None;
        }
        life.process_id()
    }

    /// Whether there is a process; a paused one counts.
    pub fn is_running(&self) -> bool {
        self.process_id().is_some()
    }

    /// What the server says it is doing; `None` if it is down, paused, or without a quorum.
    pub async fn mode(&self) -> Option<Mode> {
        self.mode_within(ANSWER_LIMIT).await
    }

    /// Sends a four-letter word, such as `mntr`, and returns the answer.
    ///
    /// # Errors
    ///
    /// The server is down, or did not answer within five seconds.
    pub async fn four_letter(&self, word: &str) -> Result<String, Error> {
        four_letter::ask(self.addr(), word).await.map_err(Error::io("ask the server"))
    }

    /// The last lines of the server's log, all its lives together.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.read_log(0), lines)
    }

    /// Kills the process without warning (`SIGKILL`) and waits until it is gone; the data stay.
    ///
    /// Does nothing to a server that is down. The signal is sent by the first poll; dropping
    /// the future only stops the waiting.
    ///
    /// # Errors
    ///
    /// The operating system refused.
    pub async fn kill(&self) -> Result<(), Error> {
        self.signal_if_running(Signal::KILL)?;
        self.gone().await
    }

    /// Asks the process to end (`SIGTERM`) and waits until it is gone; the data stay.
    ///
    /// A paused process is resumed for it, and one that has not ended after ten seconds is
    /// killed. Does nothing to a server that is down. The signal is sent by the first poll;
    /// dropping the future only stops the waiting.
    ///
    /// # Errors
    ///
    /// The operating system refused.
    pub async fn stop(&self) -> Result<(), Error> {
        self.signal_if_running(Signal::TERM)?;
        self.signal_if_running(Signal::CONT)?;
        match tokio::time::timeout(STOP_LIMIT, self.gone()).await {
            Ok(gone) => gone,
            Err(_) => self.kill().await,
        }
    }

    /// Stops the process in its tracks (`SIGSTOP`). When this returns, it no longer runs; its
    /// sockets stay open, and its kernel still accepts connections and bytes for it.
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], or the operating system refused.
    pub fn pause(&self) -> Result<(), Error> {
        let mut life = self.life();
        life.running()?.pause().map_err(Error::io("pause the server"))
    }

    /// Lets a paused process go on (`SIGCONT`).
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], or the operating system refused.
    pub fn resume(&self) -> Result<(), Error> {
        let mut life = self.life();
        life.running()?.signal(Signal::CONT).map_err(Error::io("resume the server"))
    }

    /// Kills the process if there is one, starts a new one on the same port and data, and waits
    /// until it serves.
    ///
    /// A member of an ensemble serves only once there is a quorum; see [`launch`](Self::launch).
    ///
    /// # Errors
    ///
    /// As [`wait_until_serving`](Self::wait_until_serving).
    pub async fn restart(&self) -> Result<(), Error> {
        self.kill().await?;
        self.launch()?;
        self.wait_until_serving().await
    }

    /// Starts the process of a server that is down, without waiting for anything.
    ///
    /// Does nothing to a server that runs.
    ///
    /// # Errors
    ///
    /// The operating system refused.
    pub fn launch(&self) -> Result<(), Error> {
        let launched = self.life().launch(&self.program, &self.arguments, &self.log);
        launched.map_err(Error::io("start the server"))
    }

    /// Waits until the server serves requests.
    ///
    /// # Errors
    ///
    /// [`Error::Exited`] as soon as the process ends, [`Error::NotServing`] after three minutes,
    /// [`Error::NotRunning`].
    pub async fn wait_until_serving(&self) -> Result<(), Error> {
        let started = Instant::now();
        let mut patience = Patience::new();
        loop {
            let mode = patience.ask(async |limit| self.mode_within(limit).await);
            if mode.await.is_some() && self.secure_port_is_open().await {
                return Ok(());
            }
            self.check_alive()?;
            if started.elapsed() > READY_LIMIT {
                return Err(Error::NotServing {
                    waited: READY_LIMIT,
                    log: self.log_of_this_life(),
                });
            }
            sleep(READY_POLL).await;
        }
    }

    /// The port for TLS, if there is one, is opened after the other.
    async fn secure_port_is_open(&self) -> bool {
        match self.secure_addr() {
            Some(addr) => TcpStream::connect(addr).await.is_ok(),
            None => true,
        }
    }

    /// Fails if the process has ended by itself.
    pub(super) fn check_alive(&self) -> Result<(), Error> {
        let mut life = self.life();
        let ended = life.running()?.ended().map_err(Error::io("ask for the server's process"))?;
        match ended {
            None => Ok(()),
            Some(status) => {
                life.forget();
                drop(life);
                Err(Error::Exited { status, log: self.log_of_this_life() })
            }
        }
    }

    async fn mode_within(&self, limit: Duration) -> Option<Mode> {
        let standing = Standing::of(self.addr(), limit).await;
        standing.map(|standing| standing.mode)
    }

    pub(super) fn log_of_this_life(&self) -> String {
        let start = self.life().log_start();
        tail(&self.read_log(start), LOG_LINES)
    }

    /// Reading fails only before the first launch, when there is nothing to read either.
    fn read_log(&self, start: u64) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
    }

    fn signal_if_running(&self, signal: Signal) -> Result<(), Error> {
        let mut life = self.life();
        match life.running() {
            Ok(process) => process.signal(signal).map_err(Error::io("signal the server")),
            Err(_) => Ok(()),
        }
    }

    async fn gone(&self) -> Result<(), Error> {
        loop {
            let reaped = self.life().reap();
            if reaped.map_err(Error::io("wait for the server's end"))? {
                return Ok(());
            }
            sleep(GONE_POLL).await;
        }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        // Whatever panicked, the process in there is still ours.
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The program that Java is started by, and its arguments.
fn launched_by(
    host: Option<&Host>,
    java: &Path,
    arguments: Vec<OsString>,
) -> (PathBuf, Vec<OsString>) {
    let before = host.map_or(&[][..], |host| &host.command);
    let mut words = before.iter().cloned().chain([java.into()]).chain(arguments);
    let program = words.next().map_or_else(PathBuf::new, PathBuf::from);
    (program, words.collect())
}

fn tail(log: &str, lines: usize) -> String {
    let all: Vec<&str> = log.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
