//! What must never be seen in a log.

use zk_client::{DigestMd5, TlsConnect, TlsOptions};
use zk_testkit::{
    real::Release,
    tls::{Authority, ClientAuth, TlsFront},
};
use zk_tests::log::Log;

use crate::security::sasl::{options, server};

#[tokio::test]
async fn passwords_and_keys_are_never_logged() {
    let server = server(Release::V3_9, &[]).await;
    let authority = Authority::new("ours");
    let certificate = authority.server(&["localhost"]);
    let front = TlsFront::start(server.addr(), &certificate, ClientAuth::Need(&authority));
    let front = front.await.unwrap();
    let me = authority.client("ann");
    let key = me.key.clone();
    // The driver runs on this thread too.
    let log = Log::of_this_thread();
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
    let logged = log.text();
    assert!(logged.contains("refused the credentials"), "something is logged: {logged}");
    let line_of_key = key.lines().nth(1).unwrap();
    for secret in ["secret", "canary", line_of_key] {
        assert!(!logged.contains(secret), "{logged}");
    }
}
