//! Kerberos: a key distribution centre with a realm of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::command::run;
use super::error::Error;
use super::four_letter::READY_POLL;
use super::install;
use super::life::Life;
use super::locator::Locator;
use crate::port::HeldPort;

/// What has the programs, on Debian.
const PACKAGES: [&str; 3] = ["krb5-kdc", "krb5-admin-server", "krb5-user"];

/// It is there within milliseconds, on a busy machine within seconds.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Every program that is run to completion takes milliseconds, on a busy machine seconds.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A realm, and the centre that gives out its tickets: MIT's `krb5kdc`, in a process of its own on a loopback port of its
/// own, with nothing of the system's own configuration.
///
/// It goes as a [`Server`](super::Server) does: with the test, whatever becomes of it.
///
/// ```no_run
/// # async fn example() -> Result<(), zk_testkit::real::Error> {
/// use zk_testkit::real::{Kdc, Server};
///
/// let kdc = Kdc::start().await?;
/// let service = kdc.service("zookeeper/localhost").await?;
/// let server = Server::builder().kerberos(&service).start().await?;
/// let keytab = kdc.keytab(&["ann"]).await?;
/// // A client with these in its environment is sasl:ann@ZK.TEST to the server at `localhost`.
/// println!("KRB5_CONFIG={} KRB5_CLIENT_KTNAME={}", kdc.config().display(), keytab.display());
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Kdc {
    life: Mutex<Life>,
    programs: Programs,
    /// How many there are.
    keytabs: AtomicUsize,
    // Dropped last, in this order: files after processes, the port after files.
    dir: TempDir,
    port: HeldPort,
}

/// A service principal, as requested by clients.
#[derive(Clone, Debug)]
pub struct Service {
    principal: String,
    keytab: PathBuf,
    config: PathBuf,
}

#[derive(Clone, Debug)]
struct Programs {
    kdc: PathBuf,
    database: PathBuf,
    admin: PathBuf,
    log_in: PathBuf,
    list: PathBuf,
    env: PathBuf,
}

impl Kdc {
    /// The realm, which clients and servers are in.
    pub const REALM: &'static str = "ZK.TEST";

    /// Starts it, and waits until it answers. What it needs is installed if it is missing, under the terms of the
    /// [`Locator`].
    ///
    /// # Errors
    ///
    /// [`Error::Kerberos`] if the programs are missing; [`Error::Exited`] or [`Error::NotServing`] with its log if it does
    /// not come up; [`Error::Io`].
    pub async fn start() -> Result<Self, Error> {
        let programs = blocking("find Kerberos' programs", Programs::locate).await?;
        let prepare = || {
            let dir = tempfile::Builder::new().prefix("zk-testkit-kdc-").tempdir()?;
            let port = HeldPort::any()?;
            fs::write(dir.path().join("krb5.conf"), krb5_conf(&port))?;
            fs::write(dir.path().join("kdc.conf"), kdc_conf(dir.path(), &port))?;
            let life = Mutex::new(Life::new(dir.path())?);
            Ok(Self { life, programs, keytabs: AtomicUsize::new(0), dir, port })
        };
        let kdc = prepare().map_err(Error::io("prepare a key distribution centre"))?;
        let mut create = kdc.command(&kdc.programs.database);
        // This password will not be needed again.
        create.args(["create", "-s", "-P", "master", "-r", Self::REALM]);
        blocking("make a realm", move || run(create, COMMAND_LIMIT)).await?;
        kdc.launch().await?;
        Ok(kdc)
    }

    /// The settings of the realm for clients and servers, as `KRB5_CONFIG` wants them. No name is looked up in DNS.
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("krb5.conf")
    }

    /// Gives principals new keys, after having made those that there are not, and writes the keys into a new file.
    ///
    /// An older key is not accepted any more. For clients that may choose, the first is the first choice.
    ///
    /// # Errors
    ///
    /// [`Error::Kerberos`], such as for names that are none.
    pub async fn keytab(&self, principals: &[&str]) -> Result<PathBuf, Error> {
        let number = self.keytabs.fetch_add(1, Ordering::Relaxed);
        let keytab = self.dir.path().join(format!("keytab-{number}"));
        let file = keytab.to_string_lossy();
        for principal in principals {
            // Fails if there is one.
            let _ = self.administer(&["addprinc", "-randkey", principal]).await;
            self.administer(&["ktadd", "-k", &file, principal]).await?;
        }
        Ok(keytab)
    }

    /// What a server needs to be this principal, such as `zookeeper/localhost`: a new key, as with
    /// [`keytab`](Self::keytab).
    ///
    /// # Errors
    ///
    /// As [`keytab`](Self::keytab).
    pub async fn service(&self, principal: &str) -> Result<Service, Error> {
        let keytab = self.keytab(&[principal]).await?;
        let principal = format!("{principal}@{}", Self::REALM);
        Ok(Service { principal, keytab, config: self.config() })
    }

    /// Forgets a principal; its tickets are good until they expire.
    ///
    /// # Errors
    ///
    /// [`Error::Kerberos`] if there is none.
    pub async fn forget(&self, principal: &str) -> Result<(), Error> {
        self.administer(&["delprinc", "-force", principal]).await
    }

    /// Logs a principal in with its key, for so long, in whole seconds. The file `cache`, as `KRB5CCNAME` wants it, has
    /// that one ticket afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Kerberos`] with what `kinit` says.
    pub async fn log_in(
        &self,
        principal: &str,
        keytab: &Path,
        lifetime: Duration,
        cache: &Path,
    ) -> Result<(), Error> {
        let mut kinit = self.command(&self.programs.log_in);
        kinit.arg("-k").arg("-t").arg(keytab).arg("-c").arg(cache);
        kinit.args(["-l", &format!("{}s", lifetime.as_secs()), principal]);
        blocking("log in", move || run(kinit, COMMAND_LIMIT)).await
    }

    /// Whether there is a ticket in this cache that others can be had by.
    pub async fn is_logged_in(&self, cache: &Path) -> bool {
        let mut klist = self.command(&self.programs.list);
        klist.arg("-s").arg("-c").arg(cache);
        blocking("look at tickets", move || run(klist, COMMAND_LIMIT)).await.is_ok()
    }

    /// Stops it in its tracks: it accepts connections, and says nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], or the operating system refused.
    pub fn pause(&self) -> Result<(), Error> {
        self.life().running()?.pause().map_err(Error::io("pause the key distribution centre"))
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], or the operating system refused.
    pub fn resume(&self) -> Result<(), Error> {
        let resumed = self.life().running()?.signal(Signal::CONT);
        resumed.map_err(Error::io("resume the key distribution centre"))
    }

    /// Kills it; the realm stays.
    pub fn kill(&self) {
        self.life().forget();
    }

    /// Starts it, unless it runs, and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn launch(&self) -> Result<(), Error> {
        let mut arguments: Vec<OsString> = Vec::new();
        for (name, file) in self.environment() {
            let mut setting = OsString::from(format!("{name}="));
            setting.push(file);
            arguments.push(setting);
        }
        arguments.push(self.programs.kdc.clone().into());
        // In the foreground.
        arguments.push("-n".into());
        let log = self.dir.path().join("kdc.log");
        let launched = self.life().launch(&self.programs.env, &arguments, &log);
        launched.map_err(Error::io("start the key distribution centre"))?;
        let started = Instant::now();
        while TcpStream::connect(self.port.addr()).await.is_err() {
            let log = || fs::read_to_string(&log).unwrap_or_default();
            let ended = self.life().running()?.ended();
            if let Some(status) = ended.map_err(Error::io("ask for the process"))? {
                self.life().forget();
                return Err(Error::Exited { status, log: log() });
            }
            if started.elapsed() > READY_LIMIT {
                return Err(Error::NotServing { waited: READY_LIMIT, log: log() });
            }
            sleep(READY_POLL).await;
        }
        Ok(())
    }

    async fn administer(&self, query: &[&str]) -> Result<(), Error> {
        let mut command = self.command(&self.programs.admin);
        command.args(["-r", Self::REALM]).args(query);
        blocking("administer the realm", move || run(command, COMMAND_LIMIT)).await
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment());
        command
    }

    fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("KRB5_CONFIG", self.config()), ("KRB5_KDC_PROFILE", self.dir.path().join("kdc.conf"))]
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        // Whatever panicked, the process in there is still ours.
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Java's words for whose keys to use.
    pub(super) fn jaas(&self) -> String {
        let Self { principal, keytab, .. } = self;
        format!(
            "Server {{\n  com.sun.security.auth.module.Krb5LoginModule required\n  useKeyTab=true \
             storeKey=true useTicketCache=false doNotPrompt=true\n  keyTab=\"{}\"\n  \
             principal=\"{principal}\";\n}};\n",
            keytab.display()
        )
    }

    pub(super) fn config(&self) -> &Path {
        &self.config
    }
}

impl Programs {
    fn locate() -> Result<Self, String> {
        let names = ["krb5kdc", "kdb5_util", "kadmin.local", "kinit", "klist", "env"];
        let [kdc, database, admin, log_in, list, env] =
            install::programs(&Locator::from_env(), names, &PACKAGES)?;
        Ok(Self { kdc, database, admin, log_in, list, env })
    }
}

/// Everything by TCP: a port of that kind can be held.
fn krb5_conf(port: &HeldPort) -> String {
    format!(
        "[libdefaults]\n  default_realm = {realm}\n  dns_lookup_kdc = false\n  dns_lookup_realm = false\n  \
         dns_canonicalize_hostname = false\n  rdns = false\n  udp_preference_limit = 1\n\
         [realms]\n  {realm} = {{\n    kdc = {addr}\n  }}\n",
        realm = Kdc::REALM,
        addr = port.addr(),
    )
}

fn kdc_conf(dir: &Path, port: &HeldPort) -> String {
    format!(
        "[kdcdefaults]\n  kdc_listen = \"\"\n  kdc_tcp_listen = {addr}\n\
         [realms]\n  {realm} = {{\n    database_name = {dir}/principal\n    \
         key_stash_file = {dir}/stash\n    acl_file = {dir}/acl\n  }}\n\
         [logging]\n  kdc = STDERR\n  admin_server = STDERR\n  default = STDERR\n",
        realm = Kdc::REALM,
        addr = port.addr(),
        dir = dir.display(),
    )
}

/// Beside the runtime's own threads.
async fn blocking<T: Send + 'static>(
    action: &'static str,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.expect("programs are run without panic, and not cancelled");
    done.map_err(|why| Error::Kerberos { action, why })
}
