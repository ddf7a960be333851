//! A session's metrics: the counters of [`Client::stats`], and counts that only an observer can keep. The text format
//! is that of Prometheus; a bridge to another system has the same two halves.
//!
//! ```sh
//! cargo run -p zk-client --example metrics -- 127.0.0.1:2181
//! ```

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use zk_client::{Answered, Client, ConnectOptions, Ending, SessionObserver};

/// Counts requests by operation and outcome.
#[derive(Debug, Default)]
pub struct Requests(Mutex<BTreeMap<(String, &'static str), u64>>);

impl SessionObserver for Requests {
    fn answered(&self, answered: &Answered) {
        let ending = match answered.ending {
            Ending::Ok => "ok",
            Ending::Rejected(_) => "rejected",
            Ending::NotSent => "not_sent",
            _ => "unknown",
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((answered.op.to_string(), ending)).or_default() += 1;
    }
}

/// One scrape.
pub fn scrape(zk: &Client, requests: &Requests) -> String {
    let mut text = String::new();
    let stats = zk.stats();
    for (name, kind, value) in [
        ("zk_connects_total", "counter", stats.connects),
        ("zk_disconnects_total", "counter", stats.disconnects),
        ("zk_failed_attempts_total", "counter", stats.failed_attempts),
        ("zk_watch_events_total", "counter", stats.watch_events),
        ("zk_watch_lagged_total", "counter", stats.lagged),
        ("zk_requests_in_flight", "gauge", stats.in_flight as u64),
        ("zk_request_bytes_in_flight", "gauge", stats.in_flight_bytes as u64),
        ("zk_session_connected", "gauge", u64::from(is_connected(zk))),
    ] {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
    }
    text += "# TYPE zk_requests_total counter\n";
    let counts = requests.0.lock().unwrap_or_else(PoisonError::into_inner);
    for ((op, ending), count) in &*counts {
        let _ = writeln!(text, "zk_requests_total{{op=\"{op}\",ending=\"{ending}\"}} {count}");
    }
    text += "# TYPE zk_request_seconds histogram\n";
    let latency = stats.latency();
    let mut below = 0;
    for (limit, count) in latency.buckets() {
        below += count;
        let limit = limit.map_or_else(|| "+Inf".into(), |limit| limit.as_secs_f64().to_string());
        let _ = writeln!(text, "zk_request_seconds_bucket{{le=\"{limit}\"}} {below}");
    }
    let _ = writeln!(text, "zk_request_seconds_sum {}", latency.sum().as_secs_f64());
    let _ = writeln!(text, "zk_request_seconds_count {below}");
    text
}

fn is_connected(zk: &Client) -> bool {
    matches!(zk.session().state(), zk_client::SessionState::Connected { .. })
}

/// The program, run against the given servers.
pub async fn run(servers: &str) -> Result<String, Box<dyn Error>> {
    let requests = Arc::new(Requests::default());
    let zk = ConnectOptions::new(servers)?.observer(requests.clone()).connect().await?;
    zk.create("/metrics-example", b"").or_exists().await?;
    zk.get("/metrics-example").await?;
    if zk.get("/metrics-example/nothing").await.is_ok() {
        println!("there is something");
    }
    zk.delete("/metrics-example").await?;
    let text = scrape(&zk, &requests);
    zk.close().await?;
    Ok(text)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let servers = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    println!("{}", run(&servers).await?);
    Ok(())
}
