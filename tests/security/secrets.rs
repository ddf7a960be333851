//! What must never be seen in a log.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::level_filters::LevelFilter;
use zk_client::{DigestMd5, TlsConnect, TlsOptions};
use zk_testkit::{
    real::Release,
    tls::{Authority, ClientAuth, TlsFront},
};

use crate::sasl::{options, server};

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
async fn neither_passwords_nor_keys_are_logged_at_any_level() {
    let server = server(Release::V3_9, &[]).await;
    let authority = Authority::new("ours");
    let certificate = authority.server(&["localhost"]);
    let front = TlsFront::start(server.addr(), &certificate, ClientAuth::Need(&authority));
    let front = front.await.unwrap();
    let me = authority.client("ann");
    let key = me.key.clone();
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // Of this thread, on which the driver runs too.
    let listening = tracing::subscriber::set_default(subscriber);
    let trust = TlsOptions::new().ca_pem(authority.pem());
    let tls = TlsConnect::new(trust.identity_pem(me.chain, me.key)).unwrap();
    let servers = format!("localhost:{}", front.addr().port());
    for password in ["secret", "canary"] {
        let options = options(&servers).connector(tls.clone());
        let options = options.sasl(DigestMd5::new("ann", password));
        let shown = format!("{options:?} {tls:?}");
        let outcome = options.connect().await;
        let shown = format!("{shown} {outcome:?}");
        assert!(!shown.contains(password) && !shown.contains("PRIVATE"), "{shown}");
    }
    drop(listening);
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("refused the credentials"), "something is logged: {logged}");
    let line_of_key = key.lines().nth(1).unwrap();
    for secret in ["secret", "canary", line_of_key] {
        assert!(!logged.contains(secret), "{logged}");
    }
}
