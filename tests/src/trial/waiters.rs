//! Thousands in one queue: order, notifications, memory, listings.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::Args;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{interval, timeout},
};
use zk_locks::{Client, ConnectError, ConnectOptions, Lock};
use zk_proto::path::parse_sequence;
use zk_testkit::real::{Release, Server};

use super::{Report, at_least, report::tenths};

const PATH: &str = "/waiters/lock";

/// Longer than the server may be busy with listings.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// How many join at the same time: as many listings are on their way, which the server keeps in memory.
const JOINING_MAX: usize = 64;

/// By then all have been served, or a wake-up is lost.
const PATIENCE: Duration = Duration::from_secs(900);

/// Between two looks at what the server tells of itself.
const LOOK: Duration = Duration::from_millis(100);

/// How many notifications of deletions the server has sent so far.
const NOTIFICATIONS: &str = "zk_sum_node_deleted_watch_count";

/// The most memory that a waiter may take, in bytes.
const WAITER_MAX: usize = 8 << 10;

/// Bytes of a listing beside those of the names: header, count, and the path's own metadata.
const LISTING_FRAME: usize = 16 + 4 + 68;

/// So many waiters are judged by the memory that they take: of fewer, what sessions keep counts for more.
const JUDGED_FROM: usize = 3000;

/// What a trial is to be like.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// How many wait.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub waiters: usize,
    /// Over how many sessions, in turn.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least(1))]
    pub sessions: usize,
    /// Whether each also watches the node that its predecessor watches.
    #[arg(long)]
    pub look_ahead: bool,
    /// The server.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// Runs the trial.
///
/// # Errors
/// What kept it from being made.
pub async fn run(options: Options) -> Result<Report, Box<dyn Error>> {
    let Options { waiters, sessions, look_ahead, release } = options;
    let server = Server::start(release).await?;
    let mut clients = Vec::with_capacity(sessions);
    for _ in 0..sessions {
        clients.push(connect(&server).await?);
    }
    let mut report = Report::new("waiters");
    report.figure("waiters", waiters);
    report.figure("sessions", sessions);
    report.figure("look-ahead", look_ahead);

    let first = Lock::new(&clients[0], PATH).acquire().await?;
    let before = resident()?;
    let begun = Instant::now();
    let mut queue = Queue::form(&clients, options).await?;
    report.figure("seconds until all wait", tenths(begun.elapsed().as_secs_f64()));
    let each = resident()?.saturating_sub(before) / waiters;
    report.figure("resident memory of this process for each waiter, bytes", each);
    report.expect(waiters < JUDGED_FROM || each <= WAITER_MAX, || {
        format!("a waiter takes {each} bytes; {WAITER_MAX} were allowed")
    });
    let (names, _) = clients[0].children(PATH).await?;
    let listing = names.iter().fold(LISTING_FRAME, |all, name| all + 4 + name.len());
    report.figure("a listing of all, bytes", listing);

    // Which events each session receives is settled before the first release.
    let expected = Notifications::expected(&queue.sessions, look_ahead);
    timeout(PATIENCE, watched(&server, expected.own + expected.of_others)).await??;
    let heard_before = metric(&server, NOTIFICATIONS).await?;
    let begun = Instant::now();
    first.release().await?;
    let finished = timeout(PATIENCE, queue.finish()).await;
    report.figure("seconds until all were served", tenths(begun.elapsed().as_secs_f64()));
    match finished {
        Ok(finished) => finished?,
        Err(_) => report.violation(format!("somebody still waits after {PATIENCE:?}")),
    }
    let tokens = queue.served();
    report.figure("grants", tokens.len());
    report.expect(tokens.len() == waiters, || "a waiter was not granted".to_owned());
    let in_order = tokens.is_sorted_by(|one, next| one < next);
    report.expect(in_order, || "a waiter was granted out of turn".to_owned());

    let heard = metric(&server, NOTIFICATIONS).await? - heard_before;
    report.figure("notifications", heard);
    report.figure("of them: to holders, of their own release", expected.own);
    #[expect(clippy::cast_precision_loss, reason = "nobody waits behind 2^53 others")]
    let each = heard.saturating_sub(expected.own) as f64 / waiters as f64;
    report.figure("notifications of those who wait, for each release", each);
    report.expect(heard == expected.own + expected.of_others, || format!("not {expected:?}"));
    for client in clients {
        client.close().await?;
    }
    Ok(report)
}

/// The waiters, each in a task of its own.
struct Queue {
    waiting: JoinSet<Result<(), String>>,
    /// Of those in the queue, the first holder included, in their order.
    sessions: Vec<usize>,
    /// The tokens of granted waiters.
    served: Arc<Mutex<Vec<i64>>>,
}

impl Queue {
    /// All have fallen asleep when this returns.
    async fn form(clients: &[Client], options: Options) -> Result<Self, Box<dyn Error>> {
        let served = Arc::new(Mutex::new(Vec::with_capacity(options.waiters + 1)));
        let mut waiting = JoinSet::new();
        let joining = Arc::new(Semaphore::new(JOINING_MAX));
        let (asleep, mut fallen_asleep) = mpsc::channel(JOINING_MAX);
        let look_ahead = options.look_ahead;
        let locks = clients.iter().map(|zk| Lock::builder(zk, PATH).look_ahead(look_ahead).build());
        let locks: Vec<_> = locks.collect();
        for number in 0..options.waiters {
            let session = number % clients.len();
            let waiter = Waiter { lock: locks[session].clone(), session };
            let (joining, asleep, served) = (joining.clone(), asleep.clone(), served.clone());
            waiting.spawn(async move {
                let waited = waiter.wait(&joining, asleep, &served).await;
                waited.map_err(|error| error.to_string())
            });
        }
        drop(asleep);
        let mut order = BTreeMap::new();
        for _ in 0..options.waiters {
            match fallen_asleep.recv().await {
                Some((number, session)) => _ = order.insert(number, session),
                // Some have failed instead: the first of them tells.
                None => {
                    while let Some(failed) = waiting.join_next().await {
                        failed??;
                    }
                }
            }
        }
        for zk in clients {
            // Answered behind every watch that was requested.
            zk.sync("/").await?;
        }
        // The first holder is of the first session.
        let sessions = [0].into_iter().chain(order.into_values()).collect();
        Ok(Self { waiting, sessions, served })
    }

    /// Waits until all have been served.
    async fn finish(&mut self) -> Result<(), Box<dyn Error>> {
        while let Some(served) = self.waiting.join_next().await {
            served??;
        }
        Ok(())
    }

    /// The tokens of granted waiters, in this order.
    fn served(&self) -> Vec<i64> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Waiter {
    lock: Lock,
    session: usize,
}

impl Waiter {
    async fn wait(
        self,
        joining: &Semaphore,
        asleep: mpsc::Sender<(i32, usize)>,
        served: &Mutex<Vec<i64>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let turn = joining.acquire().await?;
        let mut ticket = self.lock.enqueue().await?;
        drop(turn);
        let digits = ticket.path().and_then(|path| path.rsplit_once('-'));
        let number = digits.and_then(|(_, digits)| parse_sequence(digits));
        let number = number.ok_or("a place without a number")?;
        let mut wait = pin!(ticket.wait());
        let mut early = None;
        poll_fn(|cx| {
            // It now requests what it will be notified of.
            if let std::task::Poll::Ready(guard) = wait.as_mut().poll(cx) {
                early = Some(guard);
            }
            std::task::Poll::Ready(())
        })
        .await;
        asleep.send((number, self.session)).await?;
        drop(asleep);
        let guard = match early {
            Some(guard) => guard?,
            None => wait.await?,
        };
        served.lock().unwrap_or_else(PoisonError::into_inner).push(guard.token().get());
        guard.release().await?;
        Ok(())
    }
}

/// How often a client hears of the end of a node.
#[derive(Debug)]
struct Notifications {
    /// Holders, whose watch on their own node fires as they release it: they have waited for long, the first one has
    /// held for long.
    own: u64,
    /// All others.
    of_others: u64,
}

impl Notifications {
    /// A server tells a session of an event once, however many watch in it.
    fn expected(sessions: &[usize], look_ahead: bool) -> Self {
        let behind = if look_ahead { 2 } else { 1 };
        let (mut own, mut of_others) = (0, 0);
        for (place, session) in sessions.iter().enumerate() {
            let next: BTreeSet<_> = sessions.iter().skip(place + 1).take(behind).collect();
            own += u64::from(!next.contains(session));
            of_others += next.len() as u64;
        }
        Self { own, of_others }
    }
}

/// Waits until the server has so many watches: until all watch their own nodes too.
async fn watched(server: &Server, count: u64) -> Result<(), Box<dyn Error>> {
    let mut look = interval(LOOK);
    while metric(server, "zk_watch_count").await? != count {
        look.tick().await;
    }
    Ok(())
}

/// A number that the server tells of itself.
async fn metric(server: &Server, name: &str) -> Result<u64, Box<dyn Error>> {
    let metrics = server.four_letter("mntr").await?;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
    let value = value.ok_or_else(|| format!("the server does not tell {name}"))?;
    Ok(value.trim().parse()?)
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<usize, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = value.and_then(|value| value.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("the kernel does not tell")?.parse::<usize>()? << 10)
}

async fn connect(server: &Server) -> Result<Client, ConnectError> {
    let options = ConnectOptions::new(&server.connect_string())?;
    options.session_timeout(SESSION_TIMEOUT).connect().await
}
