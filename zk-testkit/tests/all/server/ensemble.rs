//! Members that lag, stop, and find a leader.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use zk_client::{Client, ConnectOptions, SessionState};
use zk_proto::Time;
use zk_testkit::{
    TestServer,
    server::{Config, Ensemble, Member, Output},
};

use super::ephemeral;
use crate::support::within_limit;

async fn ensemble() -> TestServer {
    let mut config = Config::default();
    config.members = 3;
    config.tick = Duration::from_millis(100);
    config.election = Duration::from_millis(20);
    TestServer::start_with(config).await.unwrap()
}

async fn client_of(server: &TestServer, member: Member) -> Client {
    let servers = server.proxy_of(member).connect_string();
    ConnectOptions::new(&servers).unwrap().connect().await.unwrap()
}

fn leader(server: &TestServer) -> Member {
    server.with(|ensemble, _| ensemble.leader()).unwrap()
}

fn a_follower(server: &TestServer) -> Member {
    let leader = leader(server);
    (0..3).map(Member).find(|member| *member != leader).unwrap()
}

#[tokio::test]
async fn lagging_member_shows_the_past_until_sync() {
    let server = ensemble().await;
    let behind = a_follower(&server);
    let (writer, reader) =
        (client_of(&server, leader(&server)).await, client_of(&server, behind).await);
    server.with(|ensemble, now| ensemble.set_lag(now, behind, Duration::from_secs(3)));
    writer.create("/a", b"").await.unwrap();
    assert_eq!(reader.exists("/a").await.unwrap(), None);
    reader.sync("/").await.unwrap();
    assert!(reader.exists("/a").await.unwrap().is_some());
}

#[tokio::test]
async fn sessions_and_nodes_outlive_their_leader() {
    let server = ensemble().await;
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    ephemeral(&zk, "/e").await;
    let mut session = zk.session();
    let (id, epoch) = (session.id(), session.epoch());
    let before = leader(&server);
    server.with(|ensemble, now| ensemble.stop(now, before));
    while session.epoch() == epoch {
        session.changed().await;
    }
    assert_eq!(session.id(), id);
    assert_ne!(leader(&server), before);
    zk.create("/a", b"").await.unwrap();
    server.with(|ensemble, now| ensemble.start(now, before));
    let returned = client_of(&server, before).await;
    assert_eq!(returned.children("/").await.unwrap().0.len(), 3);
}

#[tokio::test]
async fn minority_serves_no_clients() {
    let server = ensemble().await;
    let zk = client_of(&server, Member(0)).await;
    let mut session = zk.session();
    server.with(|ensemble, now| {
        ensemble.stop(now, Member(1));
        ensemble.stop(now, Member(2));
    });
    while session.state() != SessionState::Disconnected {
        session.changed().await;
    }
    let epoch = session.epoch();
    server.with(|ensemble, now| ensemble.start(now, Member(1)));
    while session.epoch() == epoch {
        session.changed().await;
    }
    zk.create("/a", b"").await.unwrap();
}

/// What keeps it from the other members is not between it and clients.
#[tokio::test]
async fn member_that_is_cut_off_accepts_connections() {
    let server = ensemble().await;
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    let accepted = server.with(|ensemble, now| {
        ensemble.cut_off(now, Member(1));
        ensemble.stop(now, Member(2));
        [1, 2].map(|member| ensemble.accept(now, Member(member), peer.ip()).is_some())
    });
    assert_eq!(accepted, [true, false]);
}

#[tokio::test]
async fn a_member_tells_of_its_own_watches() {
    let server = ensemble().await;
    let watching = client_of(&server, Member(1)).await;
    let (_, _kept) = watching.exists("/a").watch().await.unwrap();
    for (member, watches) in [(0, 0), (1, 1), (2, 0)] {
        let addr = server.proxy_of(Member(member)).addr();
        let answer = within_limit(async {
            let mut stream = TcpStream::connect(addr).await.unwrap();
            stream.write_all(b"mntr").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        });
        let answer = answer.await;
        let told = format!("zk_watch_count\t{watches}\n");
        assert!(answer.contains(&told), "member {member}: {answer}");
    }
}

/// Nothing would ever happen otherwise.
#[test]
fn time_goes_on_however_often_containers_are_looked_at() {
    let mut config = Config::default();
    config.container_check_interval = Duration::ZERO;
    let mut ensemble = Ensemble::new(config);
    let mut now = Time::ZERO;
    for _ in 0..2_000 {
        now = ensemble.deadline().unwrap();
        ensemble.elapsed(now);
        while ensemble.poll().is_some() {}
    }
    assert!(now.since(Time::ZERO) >= Duration::from_secs(1), "{now}");
}

#[tokio::test]
async fn nodes_are_there_while_there_is_no_leader() {
    let server = ensemble().await;
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    zk.create("/a", b"").await.unwrap();
    server.with(|ensemble, now| {
        ensemble.stop(now, Member(1));
        ensemble.stop(now, Member(2));
    });
    assert_eq!(server.with(|ensemble, _| ensemble.leader()), None);
    assert_eq!(server.paths(), ["/a"]);
}

#[tokio::test]
#[should_panic(expected = "no leader that could end session")]
async fn nobody_ends_a_session_without_a_leader() {
    let server = ensemble().await;
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    server.with(|ensemble, now| {
        ensemble.stop(now, Member(1));
        ensemble.stop(now, Member(2));
    });
    server.expire(zk.session().id());
}

/// A client that goes by it, as with `zk watch-config`, is still behind the rules of its test.
#[tokio::test]
async fn configuration_names_the_proxies() {
    let server = ensemble().await;
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let (config, _) = zk.get("/zookeeper/config").await.unwrap();
    let config = String::from_utf8(config.to_vec()).unwrap();
    for addr in server.connect_string().split(',') {
        assert!(config.contains(&format!(";{addr}\n")), "{addr}: {config}");
    }
}

/// It has no leader, and knows it when it starts.
#[tokio::test]
async fn member_that_starts_cut_off_serves_readers() {
    let mut config = Config::default();
    (config.members, config.read_only_mode) = (3, true);
    let server = TestServer::start_with(config).await.unwrap();
    let lonely = a_follower(&server);
    server.with(|ensemble, now| {
        ensemble.cut_off(now, lonely);
        ensemble.stop(now, lonely);
        ensemble.start(now, lonely);
    });
    let servers = server.proxy_of(lonely).connect_string();
    let reader = ConnectOptions::new(&servers).unwrap().read_only(true).connect().await.unwrap();
    assert_eq!(reader.session().state(), SessionState::Connected { read_only: true });
}

/// Nothing tells it, so that it goes on until it notices by itself.
#[test]
fn leader_that_is_cut_off_does_not_hear_of_the_next_election() {
    let mut config = Config::default();
    config.members = 3;
    let mut ensemble = Ensemble::new(config);
    let now = Time::ZERO;
    let before = ensemble.leader().unwrap();
    let peer: SocketAddr = ([127, 0, 0, 1], 1).into();
    let conns = [0, 1, 2].map(|member| ensemble.accept(now, Member(member), peer.ip()).unwrap());
    ensemble.cut_off(now, before);
    ensemble.depose(now);
    let mut closed = Vec::new();
    while let Some(output) = ensemble.poll() {
        if let Output::Close { conn } = output {
            closed.push(conn);
        }
    }
    let others = (0..3).filter(|member| *member != before.0).map(|member| conns[member]);
    assert_eq!(closed, others.collect::<Vec<_>>());
    while ensemble.leader().is_none_or(|leader| leader == before) {
        let next = ensemble.deadline().expect("an election is on");
        ensemble.elapsed(next);
        while ensemble.poll().is_some() {}
    }
}
