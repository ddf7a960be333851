//! The example that fuzzes servers finds what is wrong, and nothing where nothing is.

#[path = "../../../examples/fuzz_server/duel.rs"]
mod duel;
#[path = "../../../examples/fuzz_server/peer.rs"]
mod peer;
#[path = "../../../examples/fuzz_server/play.rs"]
mod play;
#[path = "../../../examples/fuzz_server/show.rs"]
mod show;

use std::net::SocketAddr;

use zk_proto::OpCode;
use zk_testkit::{TestServer, proxy::Match, server::Config};

use duel::{Found, Tally, fight, is_empty};

/// Enough to meet every operation that the strategies make up often.
const PLAYS: u32 = 60;

async fn fuzz(server: &TestServer) -> Result<Tally, Box<Found>> {
    let addr: SocketAddr = server.connect_string().parse().unwrap();
    tokio::task::spawn_blocking(move || {
        assert!(is_empty(addr).unwrap());
        fight(addr, &Config::default(), PLAYS, 7)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_found_in_a_healthy_server() {
    let server = TestServer::start().await.unwrap();
    let tally = fuzz(&server).await.unwrap_or_else(|found| panic!("{found}"));
    assert!(tally.compared > u64::from(PLAYS), "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupted_answer_is_found_and_shown_in_as_few_requests_as_it_takes() {
    let server = TestServer::start().await.unwrap();
    // The last bytes of a stat are its pzxid, and before that is the number of children.
    let _rule = server.on(Match::reply(OpCode::CREATE2)).rewrite(|content| {
        if let Some(at) = content.len().checked_sub(9).filter(|at| *at > 60) {
            content[at] ^= 1;
        }
    });
    let found = fuzz(&server).await.unwrap_err();
    assert!(found.play.frames.len() <= 2, "{found}");
    let transcript = found.to_string();
    assert!(transcript.contains("create2"), "{transcript}");
    assert!(found.how.contains("numChildren"), "{transcript}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_connections_is_found() {
    let server = TestServer::start().await.unwrap();
    let _rule = server.on(Match::request(OpCode::SET_DATA)).cut();
    let found = fuzz(&server).await.unwrap_err();
    assert!(found.how.contains("Closed"), "{found}");
}
