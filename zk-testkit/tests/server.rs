//! One real server: starting, killing, pausing, cleaning up.

use std::time::Instant;

use zk_testkit::real::{Mode, Release, Server, Wanted};

/// Prints what was found, so that a log of the tests tells what they ran against.
#[tokio::test]
async fn every_release_line_starts_and_tells_its_version() {
    for line in Release::ALL {
        let before = Instant::now();
        let server = Server::start(line).await.expect("a server");
        println!("{} serves after {:?}", server.version(), before.elapsed());
        assert_eq!(server.release(), line);
        let srvr = server.four_letter("srvr").await.expect("an answer");
        let said = format!("version: {}", server.version());
        assert!(srvr.contains(&said), "{srvr}");
    }
}

#[tokio::test]
async fn a_restarted_server_keeps_its_port_and_its_data() {
    let server = Server::start(Wanted::Any).await.expect("a server");
    let (addr, process) = (server.addr(), server.process_id());
    let before = transaction_logs(&server);
    server.restart().await.expect("a restart");
    assert_eq!(server.addr(), addr);
    assert_ne!(server.process_id(), process);
    assert!(transaction_logs(&server).is_superset(&before));
    assert_eq!(server.mode().await, Some(Mode::Standalone));
}

fn transaction_logs(server: &Server) -> std::collections::BTreeSet<std::ffi::OsString> {
    std::fs::read_dir(server.data_dir().join("version-2"))
        .expect("a data directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect()
}
