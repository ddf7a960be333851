//! Certificates that change while clients live.

use std::{fs, sync::Arc};

use zk_client::{
    ConnectError, ConnectOptions, LinkError, TlsConnect, TlsError, TlsFault, TlsOptions,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::{CryptoProvider, ring},
    },
};
use zk_testkit::{
    TestServer,
    tls::{Authority, ClientAuth, TlsFront},
};

#[tokio::test]
async fn renewed_certificates_apply_on_reconnect() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let folder = tempfile::tempdir().unwrap();
    let [ca, chain, key] = ["ca.pem", "me.pem", "me.key"].map(|name| folder.path().join(name));
    let write = |authority: &Authority| {
        let me = authority.client("ann");
        fs::write(&ca, authority.pem()).unwrap();
        fs::write(&chain, me.chain).unwrap();
        fs::write(&key, me.key).unwrap();
    };
    write(&old);
    let server = TestServer::start().await.unwrap();
    let certificate = old.server(&["localhost"]);
    let front = TlsFront::start(server.proxy().addr(), &certificate, ClientAuth::Need(&old));
    let front = front.await.unwrap();
    let tls = TlsConnect::new(TlsOptions::new().ca_file(&ca).identity_files(&chain, &key)).unwrap();
    let servers = format!("localhost:{}", front.addr().port());
    let options = ConnectOptions::new(&servers).unwrap().connector(tls.clone());
    let zk = options.connect().await.unwrap();
    let mut session = zk.session();
    let epoch = session.epoch();

    // A file that is only half there changes nothing.
    fs::write(&chain, "-----BEGIN CERT").unwrap();
    assert!(matches!(tls.reload(), Err(TlsError::Malformed { .. })));

    front.replace(&new.server(&["localhost"]), ClientAuth::Need(&new));
    write(&new);
    tls.reload().unwrap();
    server.drop_connections();
    while session.epoch() == epoch {
        session.changed().await;
    }
    zk.create("/a", b"").await.unwrap();

    // It was the new ones that made the difference.
    fs::write(&ca, old.pem()).unwrap();
    tls.reload().unwrap();
    let options = ConnectOptions::new(&servers).unwrap().connector(tls);
    let outcome = options.connect_deadline(Some(std::time::Duration::from_secs(2))).connect().await;
    let Err(ConnectError::TimedOut { last: Some((_, error)) }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error, LinkError::Tls(TlsFault::UnknownAuthority));
}

#[test]
fn unusable_options_fail_before_connecting() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (one, other) = (ours.client("ann"), ours.client("bob"));
    let refusal = |options: TlsOptions| TlsConnect::new(options).unwrap_err();
    let trusting = || TlsOptions::new().ca_pem(theirs.pem());

    assert!(matches!(refusal(TlsOptions::new()), TlsError::NobodyTrusted));
    let missing = TlsOptions::new().ca_file("/nowhere/ca.pem");
    assert!(matches!(refusal(missing), TlsError::Unreadable { .. }));
    let nonsense = TlsOptions::new().ca_pem("nonsense");
    assert!(matches!(refusal(nonsense), TlsError::Lacking { what: "a certificate", .. }));
    let no_key = trusting().identity_pem(one.chain.clone(), one.chain.clone());
    assert!(matches!(refusal(no_key), TlsError::Lacking { what: "a private key", .. }));
    let not_its_key = trusting().identity_pem(one.chain.clone(), other.key);
    assert!(matches!(refusal(not_its_key), TlsError::Unusable(_)));
    let nothing = CryptoProvider { cipher_suites: Vec::new(), ..ring::default_provider() };
    let no_cipher = trusting().provider(Arc::new(nothing));
    assert!(matches!(refusal(no_cipher), TlsError::Unusable(_)));
    let own = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let own = own.with_safe_default_protocol_versions().unwrap();
    let own = own.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let reloaded = TlsConnect::with_config(Arc::new(own)).reload();
    assert!(matches!(reloaded, Err(TlsError::NothingToReload)), "{reloaded:?}");
    let shown = format!("{:?}", trusting().identity_pem(one.chain, one.key.clone()));
    assert!(!shown.contains(one.key.lines().nth(1).unwrap()), "{shown}");
}
