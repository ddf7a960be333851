//! What pages show is what compiles and runs, and so do the examples.

mod pages;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-locks/examples/quick_start.rs"]
mod quick_start;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-locks/examples/fenced_store/main.rs"]
mod fenced_store;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-client/examples/metrics.rs"]
mod metrics;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-client/examples/first.rs"]
mod first;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-proto/examples/list.rs"]
mod list;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-testkit/examples/expiry.rs"]
mod expiry;

use zk_client::{Client, Id, Perms};
use zk_testkit::{
    TestServer,
    real::{Server, Wanted},
};

#[tokio::test]
async fn the_quick_start_runs() {
    let server = Server::start(Wanted::Any).await.unwrap();
    quick_start::run(&server.connect_string()).await.unwrap();
}

#[tokio::test]
async fn the_first_program_of_the_client_runs() {
    let server = Server::start(Wanted::Any).await.unwrap();
    first::run(&server.connect_string()).await.unwrap();
}

#[tokio::test]
async fn smallest_driver_lists_root_and_ends() {
    let server = Server::start(Wanted::Any).await.unwrap();
    let servers = server.connect_string();
    let names =
        tokio::task::spawn_blocking(move || list::run(&servers).map_err(|it| it.to_string()));
    assert_eq!(names.await.unwrap().unwrap(), ["zookeeper"]);
}

#[tokio::test]
async fn smallest_driver_says_why_there_is_no_list() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let zk = Client::connect(&servers).await.unwrap();
    let nobody_lists = [Id::anyone().may(Perms::WRITE)].into_iter().collect();
    zk.set_acl("/", &nobody_lists).await.unwrap();
    let names =
        tokio::task::spawn_blocking(move || list::run(&servers).map_err(|it| it.to_string()));
    let why = names.await.unwrap().unwrap_err();
    assert!(why.contains("NoAuth"), "{why}");
}

#[tokio::test]
async fn running_job_stops_with_its_session() {
    assert_eq!(expiry::run().await.unwrap(), 3);
}

#[tokio::test]
async fn the_metrics_are_those_of_what_was_done() {
    let server = Server::start(Wanted::Any).await.unwrap();
    let text = metrics::run(&server.connect_string()).await.unwrap();
    for line in [
        "zk_connects_total 1",
        "zk_session_connected 1",
        "zk_requests_total{op=\"delete\",ending=\"ok\"} 1",
        "zk_requests_total{op=\"getData\",ending=\"ok\"} 1",
        "zk_requests_total{op=\"getData\",ending=\"rejected\"} 1",
        "zk_request_seconds_count 4",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn fenced_stores_refuse_a_former_holder() {
    let server = Server::start(Wanted::Any).await.unwrap();
    fenced_store::run(&server.connect_string()).await.unwrap();
}
