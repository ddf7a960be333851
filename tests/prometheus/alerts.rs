//! Alerts fire in a real Prometheus when the service is in trouble, and resolve afterwards.

use std::{fs, time::Duration};

use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};
use zk_locks::{Client, ConnectOptions, Lock, zk_client::path};
use zk_observed::{Exporter, LOCK, work};
use zk_testkit::TestServer;

use crate::{
    monitoring,
    process::Prometheus,
    rules::{filled, panels},
};

/// Until an alert has fired, or has resolved. The longest range of a rule is 15 s here, and machines are busy.
const LIMIT: Duration = Duration::from_secs(120);

/// The rules, with seconds instead of minutes.
fn hurried(rules: &str) -> String {
    let lines = rules.lines().map(|line| match line.trim_start().strip_prefix("for: ") {
        Some(_) => line.replace('m', "s"),
        None => line.replace("m])", "s])"),
    });
    lines.map(|line| line + "\n").collect()
}

/// Makes trouble until an alert fires.
async fn fires(prometheus: &Prometheus, alert: &str, trouble: impl AsyncFn()) {
    let deadline = Instant::now() + LIMIT;
    let mut firing = prometheus.firing().await;
    while !firing.iter().any(|it| it == alert) {
        sleep(Duration::from_millis(100)).await;
        trouble().await;
        firing = prometheus.firing().await;
        assert!(Instant::now() < deadline, "{alert} does not fire; but {firing:?}");
    }
}

/// Waits until no alert fires.
async fn resolves(prometheus: &Prometheus) {
    let deadline = Instant::now() + LIMIT;
    let mut firing = prometheus.firing().await;
    while !firing.is_empty() {
        sleep(Duration::from_millis(100)).await;
        firing = prometheus.firing().await;
        assert!(Instant::now() < deadline, "{firing:?} do not resolve");
    }
}

/// Waits until an expression is true of some series. A scrape that comes too late hides all of them for a moment.
async fn becomes(prometheus: &Prometheus, expression: &str) {
    let deadline = Instant::now() + LIMIT;
    while prometheus.ask(expression).await.is_empty() {
        sleep(Duration::from_millis(100)).await;
        assert!(Instant::now() < deadline, "{expression} does not become true");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_fire_in_trouble_and_resolve_after() {
    let server = TestServer::start().await.unwrap();
    let exporter = Exporter::install().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scraped = listener.local_addr().unwrap();
    // All end with this, however it ends.
    let mut service = JoinSet::new();
    service.spawn(async move { drop(exporter.serve(listener).await) });
    // Two contenders for the same lock.
    for _ in 0..2 {
        let options = ConnectOptions::new(&server.connect_string()).unwrap();
        service.spawn(async move { drop(work(options).await) });
    }
    let operator = Client::connect(&server.connect_string()).await.unwrap();
    let rules = hurried(&fs::read_to_string(monitoring("alerts.yml")).unwrap());
    let prometheus = Prometheus::start(scraped, &rules).await;

    // All is well.
    becomes(&prometheus, "sum(increase(zookeeper_lock_acquisitions_total{lock=\"report\", outcome=\"granted\"}[5s])) > 2").await;
    resolves(&prometheus).await;

    // Nodes at the front of the queue are deleted: mostly those of locks that are held.
    let queue = Lock::new(&operator, LOCK).queue();
    let evict = async || {
        if let Some(front) = queue.contenders().await.unwrap().first() {
            operator.delete(&path::join(LOCK, &front.name)).if_exists().await.unwrap();
        }
    };
    fires(&prometheus, "ZooKeeperLockLost", evict).await;
    becomes(
        &prometheus,
        "ALERTS{alertname=\"ZooKeeperLockLost\", lock=\"report\", reason=\"node_deleted\"}",
    )
    .await;
    resolves(&prometheus).await;

    // The servers expire the sessions of the service.
    let ours = operator.session().id();
    server.sessions().into_iter().filter(|it| *it != ours).for_each(|it| server.expire(it));
    fires(&prometheus, "ZooKeeperSessionExpired", async || {}).await;
    becomes(&prometheus, "ALERTS{alertname=\"ZooKeeperSessionExpired\", client=\"reports\"}").await;
    becomes(
        &prometheus,
        "sum(zookeeper_client_sessions{client=\"reports\", state=\"connected\"}) == 2",
    )
    .await;
    resolves(&prometheus).await;

    // A contender that is not the service's holds the lock.
    let stranger = Lock::new(&operator, LOCK).acquire().await.unwrap();
    fires(&prometheus, "ZooKeeperLockStuck", async || {}).await;
    stranger.release().await.unwrap();
    resolves(&prometheus).await;

    // No server can be reached.
    server.proxy().refuse_connections().await;
    server.drop_connections();
    fires(&prometheus, "ZooKeeperUnreachable", async || {}).await;
    server.proxy().accept_connections().await;
    becomes(
        &prometheus,
        "sum(zookeeper_client_sessions{client=\"reports\", state=\"connected\"}) == 2",
    )
    .await;

    // By now there is something to see in each panel.
    for (title, expression) in panels() {
        println!("panel {title:?}");
        becomes(&prometheus, &filled(&expression, "1m")).await;
    }
    resolves(&prometheus).await;
    service.shutdown().await;
}
