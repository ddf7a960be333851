//! Clients that hold a lock for long: one whose session is over meanwhile must have let go before another one gets it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::timeout;
use zk_locks::{
    AcquireError, Client, ConnectError, ConnectOptions, FencingToken, Guard, Lock, Lost, RwLock,
    SessionEnd,
};
use zk_testkit::sim::Rng;

use crate::{
    faults::last,
    fenced::{Access, FencedResource},
    soak::Report,
};

/// How many locks there are; at each place a client wants each.
pub(super) const LOCKS: usize = 6;

/// Everything is below this.
pub(super) const ROOT: &str = "/keepers";

/// How long an attempt may take that goes on behind others.
const PATIENCE: u32 = 12;

/// What keepers have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) servers: String,
    pub(super) session_timeout: Duration,
    pub(super) over: AtomicBool,
    resources: [FencedResource; LOCKS],
    held: AtomicU64,
    lost: Mutex<BTreeMap<String, u64>>,
}

impl Shared {
    pub(super) fn new(servers: String, session_timeout: Duration) -> Self {
        Self {
            servers,
            session_timeout,
            over: AtomicBool::new(false),
            resources: Default::default(),
            held: AtomicU64::new(0),
            lost: Mutex::default(),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn lost(&self, why: &str) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        *lost.entry(why.to_owned()).or_default() += 1;
    }

    pub(super) fn tell(&self, report: &mut Report) {
        report.figure("locks held for long", self.held.load(Ordering::Relaxed));
        for (why, count) in &*self.lost.lock().unwrap_or_else(PoisonError::into_inner) {
            report.figure(format!("of them: {why}"), *count);
        }
        for (number, resource) in self.resources.iter().enumerate() {
            let (count, shown) = resource.violations();
            report.expect(count == 0, || format!("keepers' lock {number}: {count}: {shown:?}"));
        }
    }
}

/// Takes a lock again and again, and keeps it for long. Fails at what must not happen.
pub(super) async fn run(shared: Arc<Shared>, number: usize, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    while !shared.is_over() {
        let options = ConnectOptions::new(&shared.servers).map_err(|error| error.to_string())?;
        let options = options.session_timeout(shared.session_timeout).connect_deadline(None);
        let zk = match options.connect().await {
            Ok(zk) => zk,
            Err(ConnectError::SessionEnded(SessionEnd::Expired)) => continue,
            Err(error) => return Err(format!("connect: {error}")),
        };
        let mut turn = Ok(());
        while turn.is_ok() && !shared.is_over() {
            turn = match keep(&shared, &zk, number, &mut rng).await {
                Err(AcquireError::LeaseRanOut) => Ok(()),
                turn => turn,
            };
        }
        // Not confirmed if it is over.
        let _ = zk.close().await;
        match turn {
            Ok(()) | Err(AcquireError::SessionEnded(SessionEnd::Expired)) => {}
            Err(error) => return Err(format!("a keeper: {error}")),
        }
    }
    Ok(())
}

async fn keep(
    shared: &Shared,
    zk: &Client,
    number: usize,
    rng: &mut Rng,
) -> Result<(), AcquireError> {
    let (path, patience) = (format!("{ROOT}/{number}"), shared.session_timeout * PATIENCE);
    let guard: Guard = if number % 2 == 0 {
        match timeout(patience, Lock::new(zk, &path).acquire()).await {
            Ok(guard) => guard?,
            Err(_) => return Ok(()),
        }
    } else {
        match timeout(patience, RwLock::new(zk, &path).write()).await {
            Ok(guard) => guard?.into(),
            Err(_) => return Ok(()),
        }
    };
    let session = u64::try_from(shared.session_timeout.as_millis()).unwrap_or(u64::MAX);
    let time = Duration::from_millis(rng.within(session / 10, 2 * session));
    let token: FencingToken = guard.token();
    shared.held.fetch_add(1, Ordering::Relaxed);
    let kept = guard.scope(async {
        let _inside = shared.resources[number].visit(token, Access::Alone);
        let mut left = time;
        while !left.is_zero() && !shared.is_over() {
            let step = left.min(Duration::from_millis(100));
            last(step).await;
            left -= step;
        }
    });
    match kept.await {
        Ok(()) => _ = guard.release().await,
        Err(Lost::NodeDeleted) => return Err(AcquireError::NodeDeleted),
        Err(lost) => shared.lost(&lost.to_string()),
    }
    Ok(())
}
