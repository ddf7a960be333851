//! What comes of tickets that there are not, and of servers that cannot use them.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use zk_client::ErrorCode;
use zk_testkit::{
    proxy::Proxy,
    real::{Kdc, Server},
};
use zk_tests::pretender::{Says, pretender};

use crate::world::{Process, RELEASES, SERVICE, World, named};

/// Why the first attempt of a client with this cache fails.
async fn why_not(world: &World, cache: &Path, args: &[&str]) -> String {
    let args = [&["--once"], args].concat();
    world.with_cache(cache, &args).await.why_not().await
}

#[track_caller]
fn check(why: &str, expected: &[&str]) {
    for expected in expected {
        assert!(why.contains(expected), "{expected} not in {why}");
    }
    // What every text of the library begins with, and what says nothing.
    assert!(!why.contains("Unspecified GSS failure"), "{why}");
}

#[tokio::test]
async fn missing_ticket_is_a_typed_fault() {
    let world = World::of(RELEASES[1]).await;
    let addr = world.address();
    let nobody = world.cache();
    let why = why_not(&world, &nobody, &[&addr]).await;
    check(&why, &["Sasl(NoCredentials(", &*nobody.to_string_lossy()]);

    let ann = world.logged_in("ann").await;
    let why = why_not(&world, &ann, &["--client-principal", "bob", &addr]).await;
    check(&why, &["Sasl(NoCredentials("]);

    world.expire("ann", &ann).await;
    let why = why_not(&world, &ann, &[&addr]).await;
    check(&why, &["Sasl(TicketExpired"]);

    let keytab = world.kdc.keytab(&["eve"]).await.unwrap();
    world.kdc.forget("eve").await.unwrap();
    let args = ["--once", &addr];
    let why = world.with_keys(&keytab, &args).await.why_not().await;
    check(&why, &["Sasl(UnknownClient(", "eve@ZK.TEST"]);
}

#[tokio::test]
async fn servers_outside_the_realm_are_rejected() {
    let world = World::of(RELEASES[1]).await;
    let ann = world.logged_in("ann").await;
    let addr = world.address();
    for (args, name) in [
        (&["--service", "nobody", &addr][..], "nobody/localhost@ZK.TEST"),
        // What it is called in the connection string counts, whatever that resolves to.
        (&[&world.server.connect_string()], "zookeeper/127.0.0.1@ZK.TEST"),
        (&["--realm", "ELSEWHERE", &addr], "krbtgt/ELSEWHERE@ZK.TEST"),
    ] {
        let why = why_not(&world, &ann, args).await;
        check(&why, &["Sasl(UnknownService(", name]);
    }
    let no_name = why_not(&world, &ann, &["--server-principal", "a/b@C@D", &addr]).await;
    check(&no_name, &["Sasl(NoTicket("]);
}

#[tokio::test]
async fn unknown_realm_is_no_unreachable_kdc() {
    let world = World::of(RELEASES[1]).await;
    let keytab = world.kdc.keytab(&["ann"]).await.unwrap();
    let empty = world.cache();
    let config = "[libdefaults]\ndefault_realm = ZK.TEST\ndns_lookup_kdc = false\n";
    std::fs::write(&empty, config).unwrap();
    let environment = [
        ("KRB5_CONFIG", &*empty),
        ("KRB5_CLIENT_KTNAME", &*keytab),
        ("KRB5CCNAME", Path::new("MEMORY:own")),
    ];
    let addr = world.address();
    let args = ["--once", &addr];
    let why = Process::start(&world.kdc, &environment, &args).await.why_not().await;
    check(&why, &["Sasl(UnknownRealm("]);

    world.kdc.kill();
    let why = world.with_keys(&keytab, &args).await.why_not().await;
    check(&why, &["Sasl(Unreachable("]);
}

#[tokio::test]
async fn silent_kdc_delays_no_deadline_or_exit() {
    let world = World::of(RELEASES[1]).await;
    let ann = world.logged_in("ann").await;
    world.kdc.pause().unwrap();
    let begin = Instant::now();
    let addr = world.address();
    let brief = ["--deadline", "3000", "--attempt", "1000", &addr];
    let why = world.with_cache(&ann, &brief).await.why_not().await;
    check(&why, &["TimedOut", "last: Some"]);
    // The library itself would go on for half a minute.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());

    // An attempt finds what those before it had no time to wait for.
    let proxy = Proxy::start(world.server.addr()).await.unwrap();
    let addr = named(proxy.addr().port());
    let patient =
        world.with_cache(&ann, &["--deadline", "60000", "--attempt", "1000", &addr]).await;
    while proxy.frames().iter().map(|frame| frame.connection).max() < Some(2) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.kdc.resume().unwrap();
    patient.connected().await;
}

#[tokio::test]
async fn server_without_ticket_is_passed_over() {
    for release in RELEASES {
        let world = World::of(release).await;
        let other = world.kdc.service("zookeeper/127.0.0.1").await.unwrap();
        let other = Server::builder().release(release).kerberos(&other).start().await.unwrap();
        let ann = world.logged_in("ann").await;
        world.with_cache(&ann, &[&world.address()]).await.connected().await;
        // The one has its ticket in the cache; about the other the centre says nothing.
        world.kdc.pause().unwrap();
        let servers = format!("{},{}", other.connect_string(), world.address());
        for seed in ["1", "2", "3", "4"] {
            let args = ["--attempt", "500", "--seed", seed, &servers];
            let mut ann = world.with_cache(&ann, &args).await.connected().await;
            check(&ann.ask("whoami").await, &["ann@ZK.TEST"]);
        }
    }
}

#[tokio::test]
async fn server_unable_to_read_the_ticket_refuses() {
    for release in RELEASES {
        let world = World::of(release).await;
        let ann = world.logged_in("ann").await;
        // The server does not know of its new key.
        world.kdc.keytab(&[SERVICE]).await.unwrap();
        let why = why_not(&world, &ann, &[&world.address()]).await;
        check(&why, &["Sasl(Refused)"]);
        let why = world.with_cache(&ann, &[&world.address()]).await.why_not().await;
        check(&why, &["SessionEnded(AuthFailed)"]);
    }
}

#[tokio::test]
async fn server_without_kerberos_is_no_success() {
    for release in RELEASES {
        let world = World::of(release).await;
        let ann = world.logged_in("ann").await;
        let plain = Server::start(release).await.unwrap();
        let why = why_not(&world, &ann, &[&named(plain.addr().port())]).await;
        check(&why, &["Sasl(Unavailable)"]);
    }
}

#[tokio::test]
async fn pretending_server_gets_no_session() {
    let kdc = Kdc::start().await.unwrap();
    let keytab = kdc.keytab(&["ann", SERVICE]).await.unwrap();
    let garbage: Says = |_| Some((ErrorCode::OK, Some(Bytes::from_static(b"\x60\x00garbage"))));
    let nothing: Says = |_| Some((ErrorCode::OK, Some(Bytes::new())));
    let satisfied: Says = |_| Some((ErrorCode::OK, None));
    for (says, expected) in
        [(garbage, "Sasl(Unproved)"), (nothing, "Sasl(Unproved)"), (satisfied, "Sasl(Unavailable)")]
    {
        let (addr, _tasks) = pretender(says).await;
        let environment =
            [("KRB5_CLIENT_KTNAME", &*keytab), ("KRB5CCNAME", Path::new("MEMORY:own"))];
        let addr = named(addr.port());
        let args = ["--once", &addr];
        let why = Process::start(&kdc, &environment, &args).await.why_not().await;
        check(&why, &[expected]);
    }
}
