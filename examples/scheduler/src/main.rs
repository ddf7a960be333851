//! A scheduler that runs in several processes. One leads: it puts a job into a queue at each tick of the clock, and is the
//! one that `/ready` answers 200 for, so that a load balancer finds it.
//!
//! ```sh
//! scheduler zk1:2181,zk2:2181 10.0.0.7:8080
//! ```
//!
//! Each tick is enqueued once. Jobs are kept in ZooKeeper itself, so the fence is [`Guard::transaction`]: the job and the
//! number of the tick are written only if the leader's own node is still there.
//!
//! [`Guard::transaction`]: zk_locks::Guard::transaction

use std::{
    convert::Infallible,
    env,
    error::Error,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime},
};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use zk_client::{Client, ConnectOptions, CreateMode, Supervise, WriteError};
use zk_locks::{Election, FencingToken, Leadership, Status};

type AnyError = Box<dyn Error + Send + Sync>;

/// The number of the newest tick that was enqueued.
const NEWEST: &str = "/scheduler/newest";
const QUEUE: &str = "/scheduler/queue";
const JOB: &str = "/scheduler/queue/job-";

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [servers, address] = &arguments[..] else {
        return Err("usage: scheduler SERVERS ADDRESS".into());
    };
    let options = ConnectOptions::new(servers)?.session_timeout(from_env("SESSION_MS", 10_000)?);
    let period = from_env("PERIOD_MS", 60_000)?;

    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?.to_string();
    println!("listening on {address}");
    let lead = Lead::default();
    // Answers without a session too: `/ready` is then 503.
    let app = Router::new().route("/ready", get(ready)).with_state(lead.clone());
    tokio::spawn(axum::serve(listener, app).into_future());

    // The session is closed on the way out, and the next candidate leads at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let terminated = async { _ = terminate.recv().await };
    Supervise::new(options)
        .stop_if(|why| {
            eprintln!("interrupted: {why}");
            why.is_lasting()
        })
        .run_until(|zk| schedule(zk, lead.clone(), address.clone(), period), terminated)
        .await?;
    Ok(())
}

/// The lead, while there is one.
#[derive(Clone, Default)]
struct Lead(Arc<Mutex<Weak<Leadership>>>);

impl Lead {
    fn set(&self, leadership: &Arc<Leadership>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(leadership);
    }

    /// Asks the lead itself, which goes by the clock: also a process that was stopped for long knows at once.
    fn token(&self) -> Option<FencingToken> {
        let leadership = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        (!matches!(leadership.status(), Status::Lost(_))).then(|| leadership.token())
    }
}

async fn ready(State(lead): State<Lead>) -> (StatusCode, String) {
    match lead.token() {
        Some(token) => (StatusCode::OK, format!("leading under {token}")),
        None => (StatusCode::SERVICE_UNAVAILABLE, "standing by".to_owned()),
    }
}

/// What runs in each session: stands for the election, and leads until it has lost the lead.
async fn schedule(
    zk: Client,
    lead: Lead,
    address: String,
    period: Duration,
) -> Result<Infallible, AnyError> {
    let election = Election::new(&zk, "/scheduler/election");
    let leadership = Arc::new(election.campaign(address.as_bytes()).await?);
    lead.set(&leadership);
    println!("leading under {}", leadership.token());
    leadership.scope(enqueue(&zk, &leadership, period)).await?
}

async fn enqueue(
    zk: &Client,
    leadership: &Leadership,
    period: Duration,
) -> Result<Infallible, AnyError> {
    zk.create(NEWEST, b"").parents().or_exists().await?;
    zk.create(QUEUE, b"").or_exists().await?;
    loop {
        // Whatever former leaders have written, who saw the end of the last of them sees it.
        let (newest, _) = zk.get(NEWEST).await?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
        let tick = match std::str::from_utf8(&newest)? {
            "" => now / period.as_millis() + 1,
            newest => newest.parse::<u128>()? + 1,
        };
        // Ticks that had no leader are late, and made up for.
        let wait = (tick * period.as_millis()).saturating_sub(now);
        sleep(Duration::from_millis(u64::try_from(wait)?)).await;

        let tick = tick.to_string();
        let job = leadership.transaction().set(NEWEST, tick.as_bytes()).create(
            JOB,
            tick.as_bytes(),
            CreateMode::PersistentSequential,
        );
        match job.await {
            Ok(enqueued) => drop(enqueued?),
            // Once this returns, the next look at the newest tick shows whether it was enqueued.
            Err(WriteError::InDoubt { .. }) => drop(zk.resolve_in_doubt().await?),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A time in milliseconds.
fn from_env(name: &str, default: u64) -> Result<Duration, AnyError> {
    let millis = env::var(name).map_or(Ok(default), |millis| millis.parse());
    Ok(Duration::from_millis(millis.map_err(|error| format!("{name}: {error}"))?))
}
