//! Writes whose callers have gone, or that find no room: what was submitted is carried out, what waits in line is not.

use std::{future::IntoFuture as _, time::Duration};

use zk_client::{Cause, Client, CreateMode, OpCode, WriteError};
use zk_testkit::proxy::Proxy;
use zk_tests::{patience::within, polls::dropped_after, test_with};

use super::limits::disconnected;
use crate::api::{Place, behind_proxy, on_each_release};

const LONG: Duration = Duration::from_secs(20);

/// A client behind this proxy that has no more than one request under way.
async fn one_by_one(server: &Place, proxy: &Proxy) -> Client {
    let options = server.options_by(&proxy.connect_string());
    let zk = options.requests_max(1).connect().await.unwrap();
    zk.create("/n", b"").or_exists().await.unwrap();
    zk
}

#[test_with(on_each_release)]
async fn submitted_write_outlives_its_caller(server: &Place) {
    let (proxy, zk) = behind_proxy(server).await;
    zk.create("/n", b"").await.unwrap();
    for (away, path, version) in [(false, "/here", 2), (true, "/away", 4)] {
        if away {
            proxy.refuse_connections().await;
            proxy.cut_all();
            disconnected(&zk).await;
        }
        drop(zk.set("/n", b"timed").timeout(LONG).submit());
        drop(zk.set("/n", path.as_bytes()).submit());
        drop(zk.create(path, b"").submit());
        if away {
            proxy.accept_connections().await;
        }
        let (data, stat) = within(zk.get("/n")).await.unwrap();
        assert_eq!((&*data, stat.version), (path.as_bytes(), version));
        assert!(zk.exists(path).await.unwrap().is_some(), "{path}");
    }
}

#[test_with(on_each_release)]
async fn write_dropped_in_line_is_never_sent(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let zk = one_by_one(server, &proxy).await;
    proxy.silence();
    let first = zk.get("/n").submit();
    assert!(dropped_after(1, zk.set("/n", b"x").into_future()).await.is_none());
    assert!(dropped_after(1, zk.create("/m", b"").into_future()).await.is_none());
    proxy.resume();
    within(first).await.unwrap();
    let (data, stat) = within(zk.get("/n")).await.unwrap();
    assert_eq!((&*data, stat.version), (&b""[..], 0));
    assert_eq!(zk.exists("/m").await, Ok(None));
    assert_eq!(proxy.counts().requests(OpCode::SET_DATA), 0);
}

/// But for protected ones, which wait in line.
#[test_with(on_each_release)]
async fn submitted_create_without_room_fails(server: &Place) {
    let (proxy, _) = behind_proxy(server).await;
    let zk = one_by_one(server, &proxy).await;
    proxy.silence();
    let first = zk.get("/n").submit();
    let creates = [
        zk.create("/m", b""),
        zk.create("/m", b"").or_exists(),
        zk.create("/m/below", b"").parents(),
    ];
    for create in creates {
        let told = within(create.clone().submit()).await.map(drop);
        assert_eq!(told, Err(WriteError::NotApplied(Cause::QueueFull)), "{create:?}");
    }
    let seat = zk.create("/p-", b"").mode(CreateMode::EphemeralSequential).protected().submit();
    proxy.resume();
    within(first).await.unwrap();
    let seat = within(seat).await.unwrap().owned.unwrap();
    assert!(zk.exists(seat.path()).await.unwrap().is_some());
    assert_eq!(zk.exists("/m").await, Ok(None));
}
