//! How often a lock changes hands without a request in between.

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use clap::Args;
use tokio::{task::JoinSet, time::timeout};
use zk_client::OpCode;
use zk_locks::{Client, ConnectError, ConnectOptions, Lock};
use zk_testkit::{
    proxy::{Frame, Frames, Kind, Proxy},
    real::{Release, Server},
};

use super::{Report, in_millis, report::tenths};

const PATH: &str = "/handoff/lock";

/// Longer than a busy machine may keep a contender from running.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Without an end by then, a wake-up is lost.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a trial is to be like.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How many contend, one trial after the other.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2, 16, 64])]
    pub contenders: Vec<usize>,
    /// Acquisitions of all together.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    pub acquisitions: usize,
    /// For how long each holds the lock, in milliseconds; 0 for not at all.
    #[arg(long, value_name = "MS", default_value = "0", value_parser = in_millis)]
    pub hold: Duration,
    /// The server.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// Runs the trial, with and without look-ahead.
///
/// # Errors
/// What kept it from being made.
pub async fn run(options: &Options) -> Result<Report, Box<dyn Error>> {
    let server = Server::start(options.release).await?;
    let mut report = Report::new("handoff");
    report.figure("acquisitions of each line", options.acquisitions);
    report.figure("each is held for, ms", tenths(options.hold.as_secs_f64() * 1000.0));
    for look_ahead in [false, true] {
        for &contenders in &options.contenders {
            let cost = Cost::of(&server, options, contenders, look_ahead).await?;
            let ahead = if look_ahead { ", look-ahead" } else { "" };
            let name = format!("{contenders} contenders{ahead}");
            report.figure(format!("{name}: hand-offs"), cost.handoffs);
            report.figure(format!("{name}: of them without a request, %"), cost.share());
            report.figure(format!("{name}: requests for each acquisition"), cost.requests_each());
            report
                .expect(cost.acquisitions == options.acquisitions, || format!("{name}: {cost:?}"));
        }
    }
    Ok(report)
}

/// What was seen at the proxy.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    acquisitions: usize,
    requests: usize,
    /// Grants of locks that were waited for.
    handoffs: usize,
    /// Those of them for which nothing was asked between the end of the one in front and the release.
    without_request: usize,
}

impl Cost {
    async fn of(
        server: &Server,
        options: &Options,
        contenders: usize,
        look_ahead: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let proxy = Proxy::start(server.addr()).await?;
        let mut clients = Vec::new();
        for _ in 0..contenders {
            clients.push(connect(&proxy).await?);
        }
        // The path exists from here on.
        Lock::new(&clients[0], PATH).acquire().await?.release().await?;
        let mark = proxy.mark();
        let left = Arc::new(AtomicUsize::new(options.acquisitions));
        let mut running = JoinSet::new();
        for zk in &clients {
            let lock = Lock::builder(zk, PATH).look_ahead(look_ahead).build();
            running.spawn(turns(lock, left.clone(), options.hold));
        }
        let mut acquisitions = 0;
        let finished = timeout(PATIENCE, async {
            while let Some(turns) = running.join_next().await {
                acquisitions += turns?.map_err(|error| error.to_string())?;
            }
            Ok::<_, Box<dyn Error>>(())
        });
        finished.await??;
        for zk in clients {
            zk.close().await?;
        }
        Ok(Self { acquisitions, ..Self::in_frames(&proxy.frames_since(mark)) })
    }

    fn in_frames(frames: &Frames) -> Self {
        let mut by_connection: BTreeMap<u64, Vec<&Frame>> = BTreeMap::new();
        for frame in frames.iter() {
            by_connection.entry(frame.connection).or_default().push(frame);
        }
        let mut cost = Self::default();
        for frames in by_connection.values() {
            cost.add(frames);
        }
        cost
    }

    /// Adds what went over one connection. A client that is notified of a node that is gone, and neither asks for
    /// anything nor is answered before it releases the lock, was granted it by that.
    fn add(&mut self, frames: &[&Frame]) {
        let mut own: Option<&str> = None;
        // Since the last time that a node in front has gone; `None` if that has not happened.
        let mut asked_since_news: Option<bool> = None;
        for frame in frames {
            match (frame.kind, frame.op) {
                (Kind::Request, Some(OpCode::CLOSE_SESSION)) => {}
                (Kind::Request, Some(OpCode::DELETE)) => {
                    self.requests += 1;
                    own = frame.path.as_deref();
                    if let Some(asked) = asked_since_news.take() {
                        self.handoffs += 1;
                        self.without_request += usize::from(!asked);
                    }
                }
                (Kind::Request, _) => {
                    self.requests += 1;
                    asked_since_news = asked_since_news.map(|_| true);
                }
                // Asked before the news, and waited for since.
                (Kind::Reply, _) => asked_since_news = asked_since_news.map(|_| true),
                // Of its own release it hears too.
                (Kind::Notification, _) if frame.path.as_deref() != own => {
                    asked_since_news = Some(false);
                }
                _ => {}
            }
        }
    }

    fn share(&self) -> f64 {
        percent(self.without_request, self.handoffs)
    }

    fn requests_each(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "nobody takes a lock 2^53 times")]
        tenths(self.requests as f64 / self.acquisitions.max(1) as f64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody takes a lock 2^53 times")]
fn percent(part: usize, whole: usize) -> f64 {
    tenths(100.0 * part as f64 / whole.max(1) as f64)
}

/// Takes the lock again and again, as long as any are left. Returns how often.
async fn turns(
    lock: Lock,
    left: Arc<AtomicUsize>,
    hold: Duration,
) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let mut taken = 0;
    let some = |left: usize| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, some).is_ok() {
        let guard = lock.acquire().await?;
        // Work, which asks the servers for nothing.
        let _ = timeout(hold, std::future::pending::<()>()).await;
        guard.release().await?;
        taken += 1;
    }
    Ok(taken)
}

async fn connect(proxy: &Proxy) -> Result<Client, ConnectError> {
    let options = ConnectOptions::new(&proxy.connect_string())?;
    options.session_timeout(SESSION_TIMEOUT).connect().await
}
