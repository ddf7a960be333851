//! What must never be seen in a log.

use zk_client::Client;
use zk_tests::{log::Log, test_with};

use crate::api::{Place, on_each_release_to_restart};

#[test_with(on_each_release_to_restart)]
async fn credentials_and_data_are_never_logged(server: &Place) {
    let options = server.options().auth("digest", "ann:canary-password");
    let shown = format!("{options:?}");
    // The driver runs on this thread too.
    let log = Log::of_this_thread();
    let zk: Client = options.connect().await.unwrap();
    zk.create("/a", b"canary-data").await.unwrap();
    zk.get("/a").await.unwrap();
    server.restart_under(&zk).await;
    zk.set("/a", b"canary-data").await.unwrap();
    let credentials = format!("{:?}", zk.detach().await);
    let logged = log.text();
    assert!(logged.contains("disconnected"), "something is logged: {logged:?}");
    for text in [logged, shown, credentials] {
        assert!(!text.contains("canary"), "{text}");
    }
}
