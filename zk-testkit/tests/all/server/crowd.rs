//! The ensemble without I/O, under more than it usually gets.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use bytes::BytesMut;
use zk_proto::{
    Secret, SessionId, Time, Xid, Zxid,
    frame::{RequestFrame, encode_frame, split_frame},
    request::{ConnectRequest, SetDataRequest, TrailingFlag},
};
use zk_testkit::server::{Config, Conn, Ensemble, Member, Output};

const NOW: Time = Time::ZERO;

fn ensemble() -> Ensemble {
    let mut config = Config::default();
    config.members = 3;
    Ensemble::new(config)
}

fn connect(ensemble: &mut Ensemble, member: Member) -> Conn {
    let conn = ensemble.accept(NOW, member, IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: Zxid(0),
        time_out: 30_000,
        session_id: SessionId(0),
        passwd: Secret(None),
        read_only: TrailingFlag(Some(false)),
    };
    let mut bytes = BytesMut::new();
    encode_frame(&request, &mut bytes);
    ensemble.received(NOW, conn, &bytes);
    conn
}

/// How many frames each connection has been sent.
fn frames(ensemble: &mut Ensemble) -> BTreeMap<Conn, usize> {
    let mut sent: BTreeMap<Conn, BytesMut> = BTreeMap::new();
    while let Some(output) = ensemble.poll() {
        if let Output::Write { conn, bytes } = output {
            sent.entry(conn).or_default().extend_from_slice(&bytes);
        }
    }
    let count = |mut bytes: BytesMut| {
        std::iter::from_fn(|| split_frame(&mut bytes, usize::MAX).unwrap()).count()
    };
    sent.into_iter().map(|(conn, bytes)| (conn, count(bytes))).collect()
}

/// However much has piled up, and whichever write lets another client go on: the stack must not grow with it.
#[test]
fn long_queues_are_served_on_a_small_stack() {
    const WRITES: usize = 5_000;
    let served = || {
        let mut ensemble = ensemble();
        let follower = Member(0);
        let clients = [0; 3].map(|_| connect(&mut ensemble, follower));
        assert!(frames(&mut ensemble).values().all(|count| *count == 1), "greetings");
        ensemble.cut_off(NOW, follower);
        let write = RequestFrame::of(&SetDataRequest { path: "/".into(), data: None, version: -1 });
        let mut bytes = BytesMut::new();
        (1..=WRITES).for_each(|xid| write.write(Xid(xid as i32), &mut bytes));
        clients.iter().for_each(|client| ensemble.received(NOW, *client, &bytes));
        assert_eq!(frames(&mut ensemble), BTreeMap::new(), "the leader is out of reach");
        ensemble.rejoin(NOW.after(Duration::from_secs(1)), follower);
        assert_eq!(frames(&mut ensemble), clients.map(|client| (client, WRITES)).into());
    };
    let thread = std::thread::Builder::new().stack_size(192 << 10);
    thread.spawn(served).unwrap().join().unwrap();
}
