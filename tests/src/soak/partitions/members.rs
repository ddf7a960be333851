//! The members of the ensemble: their namespaces, disks and clocks, and who may change who belongs to them.

use std::{error::Error, ffi::OsString, fs, path::PathBuf, time::Duration};

use tokio::time::{sleep, timeout};
use zk_client::{Client, ConnectOptions, ReadError, digest_id};
use zk_testkit::real::{self, Ensemble, Host};

use super::{
    RELEASE,
    clock::Clock,
    disk,
    enclosure::{FILES, mount_memory},
    network::Party,
};
use crate::faults::last;

/// Enough for some snapshots and what comes after them, and little enough to be filled at once.
const DISK_MEGABYTES: u32 = 192;

/// Transactions from one snapshot to the next.
const SNAP_COUNT: u32 = 20_000;

const ADMIN: (&str, &str) = ("super", "soak");

/// How often a member that should end is asked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// What is in the trace of a server that ends because it cannot load its own data.
const LOADING: &str = "loadDataBase";

/// How long a reconfiguration may take.
const RECONFIG_LIMIT: Duration = Duration::from_secs(60);

/// What members are made of.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) ensemble: Ensemble,
    folders: Vec<PathBuf>,
    pub(super) clocks: Vec<Clock>,
    /// How often a member could not load its own data.
    pub(super) unreadable: usize,
}

impl Members {
    /// Starts so many, each in its namespace.
    pub(super) async fn start(count: usize, tick: Duration) -> Result<Self, Box<dyn Error>> {
        let (mut hosts, mut folders, mut clocks) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            let party = Party::Member(number);
            let folder = PathBuf::from(FILES).join(party.name());
            fs::create_dir(&folder)?;
            mount_memory(&folder, Some(DISK_MEGABYTES))?;
            let clock = Clock::new(PathBuf::from(FILES).join(format!("{}.clock", party.name())))?;
            let command = party.enter().into_iter().chain(clock.wear());
            let command = command.map(OsString::from).collect();
            hosts.push(Host { addr: party.addr(), command, files: folder.clone() });
            folders.push(folder);
            clocks.push(clock);
        }
        let admin = digest_id(ADMIN.0, ADMIN.1).id.lossy().into_owned();
        let ensemble = Ensemble::builder()
            .release(RELEASE)
            .hosts(hosts)
            .tick_time(tick)
            .config("reconfigEnabled=true")
            .config("standaloneEnabled=false")
            .config(format!("snapCount={SNAP_COUNT}"))
            .property("zookeeper.DigestAuthenticationProvider.superDigest", admin)
            .start()
            .await?;
        Ok(Self { ensemble, folders, clocks, unreadable: 0 })
    }

    /// Waits until all serve, and returns the leader.
    ///
    /// A member that a fault hit while it fetched what it had missed can have a gap in its transactions, with which it does not
    /// start again (ZOOKEEPER-5094, ZOOKEEPER-4882): it loses what it has, as an operator would see to it, and the others
    /// have all of it.
    pub(super) async fn serve(&mut self) -> Result<usize, Box<dyn Error>> {
        loop {
            match self.ensemble.wait_for_all().await {
                Err(real::Error::Exited { log, .. }) if log.contains(LOADING) => {}
                served => return Ok(served?),
            }
            let ended =
                (0..self.ensemble.len()).filter(|it| !self.ensemble.member(*it).is_running());
            for member in ended.collect::<Vec<_>>() {
                fs::remove_dir_all(self.ensemble.member(member).data_dir().join("version-2"))?;
                self.unreadable += 1;
                self.ensemble.restart(member).await?;
            }
        }
    }

    /// Makes the data of a member that does not run unreadable.
    pub(super) fn damage(&self, member: usize) -> Result<(), Box<dyn Error>> {
        let epoch = self.ensemble.member(member).data_dir().join("version-2/currentEpoch");
        Ok(fs::write(epoch, "not a number")?)
    }

    /// Throws away what is not needed any more.
    pub(super) fn tidy(&self) -> Result<(), Box<dyn Error>> {
        for member in self.ensemble.members() {
            let data = member.data_dir();
            disk::purge(&data)?;
            disk::shorten(&data.with_file_name("server.log"))?;
        }
        Ok(())
    }

    /// The member's disk is full for so long, or until it has ended over that; then it starts again.
    pub(super) async fn fill_disk(
        &self,
        member: usize,
        time: Duration,
    ) -> Result<(), Box<dyn Error>> {
        let server = self.ensemble.member(member);
        disk::fill(&self.folders[member])?;
        let ended = async {
            while server.is_running() {
                sleep(LOOK).await;
            }
        };
        // One that writes nothing meanwhile goes on.
        let _ = timeout(time, ended).await;
        disk::free(&self.folders[member])?;
        Ok(self.ensemble.restart(member).await?)
    }

    /// A member leaves for so long, and joins again as it was.
    pub(super) async fn leave_and_join(
        &self,
        member: usize,
        time: Duration,
    ) -> Result<(), Box<dyn Error>> {
        let admin = self.admin().await?;
        let number = i64::try_from(member)? + 1;
        let changed = timeout(RECONFIG_LIMIT, async {
            let (before, _) = admin.config().await?;
            let known = before.members.iter().find(|known| known.id == number);
            let spec = known.ok_or("the member does not belong to the ensemble")?.spec.clone();
            repeated(&admin, || admin.reconfig().leave(number), number, false).await;
            last(time).await;
            repeated(&admin, || admin.reconfig().join(number, &spec), number, true).await;
            Ok::<_, Box<dyn Error>>(())
        });
        changed.await.map_err(|_| "the members were not changed in time")??;
        // Nothing hangs on it.
        let _ = admin.close().await;
        Ok(())
    }

    async fn admin(&self) -> Result<Client, Box<dyn Error>> {
        let options = ConnectOptions::new(&self.ensemble.connect_string())?;
        let options = options.auth("digest", format!("{}:{}", ADMIN.0, ADMIN.1));
        Ok(options.session_timeout(Duration::from_secs(10)).connect().await?)
    }
}

/// Asks until the member belongs to the ensemble, or does not: a change that is under way, a lost answer, or an election makes
/// single requests fail.
async fn repeated<R>(admin: &Client, ask: impl Fn() -> R, number: i64, belongs: bool)
where
    R: IntoFuture,
{
    // Without an answer it is not known.
    while self::belongs(admin, number).await.ok() != Some(belongs) {
        let _ = ask().await;
        last(LOOK).await;
    }
}

async fn belongs(admin: &Client, number: i64) -> Result<bool, ReadError> {
    admin.sync("/").await?;
    let (config, _) = admin.config().await?;
    Ok(config.members.iter().any(|known| known.id == number))
}
