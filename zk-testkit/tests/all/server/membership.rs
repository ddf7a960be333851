//! Servers that join a running ensemble, and leave it.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use tokio::net::TcpStream;
use zk_client::{Client, ConnectOptions, Rejection, WriteError, Zxid};
use zk_testkit::server::{Config, Listening, Member};

use crate::support::within_limit;

/// What `super:test` is known by.
const ADMIN: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

async fn ensemble() -> Listening {
    let mut config = Config::default();
    config.election = Duration::from_millis(20);
    config.super_digest = Some(ADMIN.to_owned());
    config.reconfig = true;
    Listening::start(config, &[any(); 3]).await.unwrap()
}

async fn admin_of(server: &Listening, member: Member) -> Client {
    let servers = server.addrs()[member.0].to_string();
    let options = ConnectOptions::new(&servers).unwrap();
    options.auth("digest", "super:test").connect().await.unwrap()
}

fn leader(server: &Listening) -> Member {
    server.with(|ensemble, _| ensemble.leader()).unwrap()
}

/// What the configuration calls a member that was there from the start.
fn number(member: Member) -> i64 {
    i64::try_from(member.0).unwrap() + 1
}

/// Before its first leader an ensemble's configuration has no version; it takes the first transaction of that leader.
#[tokio::test]
async fn first_leader_gives_config_its_version() {
    let server = ensemble().await;
    for member in 0..3 {
        let (config, stat) = admin_of(&server, Member(member)).await.config().await.unwrap();
        assert_eq!((config.version, stat.mzxid), (Some(Zxid(1 << 32)), Zxid(1 << 32)));
        assert!(stat.mtime > 0);
    }
    // Those who come later leave it as it is.
    let before = leader(&server);
    server.with(|ensemble, now| ensemble.stop(now, before));
    let zk = admin_of(&server, Member((before.0 + 1) % 3)).await;
    assert_eq!(zk.config().await.unwrap().0.version, Some(Zxid(1 << 32)));
}

#[tokio::test]
async fn those_who_leave_have_no_vote() {
    let server = ensemble().await;
    let leader = leader(&server);
    let [one, other] = [1, 2].map(|step| Member((leader.0 + step) % 3));
    let zk = admin_of(&server, leader).await;
    let (config, _) = zk.config().await.unwrap();
    assert_eq!(config.members.len(), 3);
    let (config, stat) = zk.reconfig().leave(number(one)).await.unwrap();
    assert_eq!((config.members.len(), stat.version), (2, -1));
    assert_eq!(config.version, Some(stat.mzxid));

    // Those that are left are two: neither may be missing, while the one that has left may.
    server.with(|ensemble, now| ensemble.stop(now, one));
    zk.create("/a", b"").await.unwrap();
    let refused = zk.reconfig().leave(number(other)).await.unwrap_err();
    assert_eq!(refused, WriteError::Rejected(Rejection::BadArguments));
    server.with(|ensemble, now| {
        ensemble.stop(now, other);
        assert_eq!(ensemble.leader(), None);
    });
}

#[tokio::test]
async fn removed_leader_is_replaced() {
    let server = ensemble().await;
    let before = leader(&server);
    let zk = admin_of(&server, Member((before.0 + 1) % 3)).await;
    let (config, _) = zk.reconfig().leave(number(before)).await.unwrap();
    assert_eq!(config.members.len(), 2);
    within_limit(async { zk.create("/a", b"").or_exists().await }).await.unwrap();
    assert_ne!(leader(&server), before);
    let (config, _) = zk.config().await.unwrap();
    assert!(config.members.iter().all(|member| member.id != number(before)));
}

#[tokio::test]
async fn added_server_follows_and_then_votes() {
    let mut server = ensemble().await;
    let before = leader(&server);
    let zk = admin_of(&server, before).await;
    zk.create("/a", b"x").await.unwrap();
    let added = server.add(7, any()).await.unwrap();
    assert!(server.add(7, any()).await.is_err());
    let at_it = admin_of(&server, added).await;
    assert_eq!(&*at_it.get("/a").await.unwrap().0, b"x");

    let spec = format!("127.0.0.1:1:2:participant;{}", server.addrs()[added.0]);
    let (config, _) = zk.reconfig().join(7, &spec).await.unwrap();
    assert!(config.members.iter().any(|member| member.id == 7 && member.votes));
    // Two of four are no majority, three are.
    let [one, other] = [1, 2].map(|step| Member((before.0 + step) % 3));
    server.with(|ensemble, now| ensemble.stop(now, one));
    within_limit(async { at_it.create("/b", b"").await }).await.unwrap();
    server.with(|ensemble, now| {
        ensemble.stop(now, other);
        assert_eq!(ensemble.leader(), None);
    });
}

#[tokio::test]
async fn changes_need_a_majority_and_permission() {
    let server = ensemble().await;
    let zk = admin_of(&server, Member(0)).await;
    let away = [(8, "127.0.0.1:1:2;3"), (9, "127.0.0.1:1:2;3")];
    let refused = zk.reconfig().join(away[0].0, away[0].1).join(away[1].0, away[1].1);
    let refused = refused.leave(1).leave(2).await.unwrap_err();
    let code = zk_client::ErrorCode::NEW_CONFIG_NO_QUORUM;
    assert_eq!(refused, WriteError::Rejected(Rejection::Other(code)));
    let stranger = Client::connect(&server.addrs()[0].to_string()).await.unwrap();
    let refused = stranger.reconfig().leave(1).await.unwrap_err();
    assert_eq!(refused, WriteError::Rejected(Rejection::NoAuth));
}

#[tokio::test]
async fn port_is_open_while_its_member_runs() {
    let server = ensemble().await;
    let addr = server.addrs()[0];
    TcpStream::connect(addr).await.unwrap();
    server.with(|ensemble, now| ensemble.stop(now, Member(0)));
    within_limit(async {
        while TcpStream::connect(addr).await.map_err(|error| error.kind()).map(drop)
            != Err(ErrorKind::ConnectionRefused)
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.with(|ensemble, now| ensemble.start(now, Member(0)));
    within_limit(async {
        while TcpStream::connect(addr).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
