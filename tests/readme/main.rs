//! What the README shows is what compiles and runs, and so do the examples.

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-locks/examples/quick_start.rs"]
mod quick_start;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-locks/examples/recipes.rs"]
mod recipes;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-locks/examples/fenced_store/main.rs"]
mod fenced_store;

#[expect(dead_code, unreachable_pub, reason = "a program, of which only the inner half runs here")]
#[path = "../../zk-client/examples/metrics.rs"]
mod metrics;

use zk_testkit::real::{Server, Wanted};

const README: &str = include_str!("../../README.md");

#[test]
fn the_quick_start_is_the_example() {
    let example = include_str!("../../zk-locks/examples/quick_start.rs");
    assert!(README.contains(&format!("```rust\n{example}```")), "README.md shows another program");
}

/// That one runs in a test of its own package.
#[test]
fn the_program_without_a_runtime_is_the_package() {
    let program = include_str!("../quickstart/src/main.rs");
    assert!(README.contains(&format!("```rust\n{program}```")), "README.md shows another program");
}

#[tokio::test]
async fn the_quick_start_runs() {
    let server = Server::start(Wanted::Any).await.unwrap();
    quick_start::run(&server.connect_string()).await.unwrap();
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
async fn the_recipes_run() {
    let server = Server::start(Wanted::Any).await.unwrap();
    recipes::run(&server.connect_string()).await.unwrap();
}

#[tokio::test]
async fn the_fenced_stores_refuse_a_holder_of_the_past() {
    let server = Server::start(Wanted::Any).await.unwrap();
    fenced_store::run(&server.connect_string()).await.unwrap();
}
