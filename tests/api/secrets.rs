//! What must never be seen in a log.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::level_filters::LevelFilter;
use zk_client::Client;

use crate::{on_each_release, options};

/// Collects everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn neither_credentials_nor_data_are_logged_at_any_level() {
    on_each_release(async |server| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        let options = options(server).auth("digest", "ann:canary-password");
        let shown = format!("{options:?}");
        // Of this thread, on which the driver runs too.
        let listening = tracing::subscriber::set_default(subscriber);
        let zk: Client = options.connect().await.unwrap();
        zk.create("/a", b"canary-data").await.unwrap();
        zk.get("/a").await.unwrap();
        crate::restart_under(server, &zk).await;
        zk.set("/a", b"canary-data").await.unwrap();
        let credentials = format!("{:?}", zk.detach().await);
        drop(listening);
        let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains("disconnected"), "something is logged: {logged:?}");
        for text in [logged, shown, credentials] {
            assert!(!text.contains("canary"), "{text}");
        }
    })
    .await;
}
