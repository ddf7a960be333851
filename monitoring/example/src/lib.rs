//! A service whose sessions and locks a Prometheus watches: the worker, and what it is scraped for.
//!
//! ```sh
//! cargo run -p zk-observed -- 127.0.0.1:2181 127.0.0.1:9185
//! curl http://127.0.0.1:9185/metrics
//! ```

use std::{convert::Infallible, error::Error, io, time::Duration};

use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::CONTENT_TYPE,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::{
    net::TcpListener,
    time::{interval, sleep},
};
use zk_locks::{Client, ConnectOptions, FencingToken, Lock, metrics::Kind, zk_client};

/// Where the workers' lock is.
pub const LOCK: &str = "/locks/report";

/// What the lock protects.
const REPORT: &str = "/report";

/// How often the recorder tidies up what no scrape has taken away.
const UPKEEP: Duration = Duration::from_secs(5);

/// Whatever ends a round of work.
type Failure = Box<dyn Error + Send + Sync>;

/// What a Prometheus scrapes.
#[derive(Clone, Debug)]
pub struct Exporter(PrometheusHandle);

impl Exporter {
    /// Installs the process's recorder. Before the first session: one that began without a recorder reports nowhere.
    ///
    /// # Errors
    /// If there is one already.
    pub fn install() -> Result<Self, BuildError> {
        let mut builder = PrometheusBuilder::new();
        // Without limits for its buckets a histogram is exported as quantiles, which cannot be added up.
        for metric in zk_client::metrics::LIST.iter().chain(zk_locks::metrics::LIST) {
            if let Kind::Histogram(limits) = metric.kind {
                let this = Matcher::Full(metric.name.to_owned());
                builder = builder.set_buckets_for_metric(this, limits)?;
            }
        }
        builder.install_recorder().map(Self)
    }

    /// Answers scrapes.
    ///
    /// # Errors
    /// If connections cannot be accepted any more.
    pub async fn serve(self, listener: TcpListener) -> io::Result<Infallible> {
        let mut upkeep = interval(UPKEEP);
        loop {
            let (stream, _) = tokio::select! {
                accepted = listener.accept() => accepted?,
                _ = upkeep.tick() => {
                    self.0.run_upkeep();
                    continue;
                }
            };
            let handle = self.0.clone();
            let service = service_fn(move |request| {
                let answer = answer(&handle, &request);
                async move { answer }
            });
            tokio::spawn(async move {
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // Whatever went wrong, the next scrape is another connection.
                let _ = served.await;
            });
        }
    }
}

fn answer(
    handle: &PrometheusHandle,
    request: &Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::http::Error> {
    match request.uri().path() {
        "/metrics" => Response::builder()
            .header(CONTENT_TYPE, "text/plain; version=0.0.4")
            .body(handle.render().into()),
        _ => Response::builder().status(StatusCode::NOT_FOUND).body("see /metrics\n".into()),
    }
}

/// Writes reports, one worker at a time, in one session after the other.
///
/// # Errors
/// If no session can be had at all.
pub async fn work(options: ConnectOptions) -> Result<Infallible, Failure> {
    let options = options.metrics_name("reports");
    zk_client::Supervise::new(options)
        .pause_max(Duration::from_secs(5))
        .run(round)
        .await
        .map_err(Into::into)
}

/// What is done in one session.
async fn round(zk: Client) -> Result<Infallible, Failure> {
    zk.create(REPORT, b"").or_exists().await?;
    let lock =
        Lock::builder(&zk, LOCK).metrics_name("report").max_hold(Duration::from_secs(60)).build();
    loop {
        let guard = lock.acquire().await?;
        match guard.scope(write_report(&zk, guard.token())).await {
            Ok(written) => {
                written?;
                guard.release().await?;
            }
            // The writer was stopped where it stood. Dropping the guard counts the loss.
            Err(lost) => eprintln!("{lost}"),
        }
    }
}

async fn write_report(zk: &Client, token: FencingToken) -> Result<(), Failure> {
    for page in 0..5 {
        zk.set(REPORT, format!("page {page} under token {token}").as_bytes()).await?;
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
