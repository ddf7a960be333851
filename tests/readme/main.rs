//! What the README shows is what compiles and runs.

/// The program as it stands, with a way in beside its `main`.
mod quick_start {
    #![expect(dead_code, reason = "its `main` would talk to a server of the user's")]

    include!("../../zk-locks/examples/quick_start.rs");

    pub(super) async fn start(servers: &str) -> Result<(), Box<dyn std::error::Error>> {
        run(servers).await
    }
}

use zk_testkit::real::{Server, Wanted};

const README: &str = include_str!("../../README.md");

#[test]
fn the_quick_start_is_the_example() {
    let example = include_str!("../../zk-locks/examples/quick_start.rs");
    assert!(README.contains(&format!("```rust\n{example}```")), "README.md shows another program");
}

#[tokio::test]
async fn the_quick_start_runs() {
    let server = Server::start(Wanted::Any).await.unwrap();
    quick_start::start(&server.connect_string()).await.unwrap();
}
