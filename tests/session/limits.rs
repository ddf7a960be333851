//! Limits that a transcript would show in hundreds of lines.

use std::time::Duration;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, Secret, SessionId, Str, Time, Xid, Zxid,
    frame::{ReplyHeader, RequestFrame, encode_frame},
    jute::Encode,
    request::{ConnectResponse, SetDataRequest, TrailingFlag},
    session::{Config, OnLoss, Outgoing, Output, Patience, ProbeAnswer, Session},
};

/// A session with the first of these servers.
fn connected(config: Config) -> Session<(), ()> {
    let greeting = ConnectResponse {
        protocol_version: 0,
        time_out: 12_000,
        session_id: SessionId(7),
        passwd: Secret(Some(Bytes::from_static(b"sixteen letters."))),
        read_only: TrailingFlag(Some(config.read_only)),
    };
    let mut session = Session::new(config, 1, Time::ZERO);
    session.dialed(Time::ZERO, Ok(()));
    assert!(!session.outbound().take_all().is_empty(), "it greets");
    hear(&mut session, Time::ZERO, &greeting);
    session
}

fn hear(session: &mut Session<(), ()>, now: Time, message: &impl Encode) {
    encode_frame(message, session.inbound());
    session.received(now);
}

fn answer(xid: Xid) -> ReplyHeader {
    ReplyHeader { xid, zxid: Zxid(1), err: ErrorCode::OK }
}

/// However long there has been none.
#[test]
fn writable_server_is_looked_for_once_a_minute() {
    let mut config = Config::new(["a:1", "b:1"]);
    config.read_only = true;
    let mut session = connected(config);
    let (mut now, mut probes) = (Time::ZERO, Vec::new());
    while now < Time::new(Duration::from_secs(400)) {
        while let Some(output) = session.poll() {
            if let Output::Probe { server } = output {
                probes.push(now);
                session.probed(now, &server, ProbeAnswer::ReadOnly);
            }
        }
        if !session.outbound().take_all().is_empty() {
            hear(&mut session, now, &answer(Xid::PING));
        }
        let due = session.deadline().expect("it is not over");
        assert!(due > now, "it wants to be woken at once, for ever");
        now = due;
        session.elapsed(now);
    }
    let pauses: Vec<_> = probes.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert_eq!(pauses[..3], [100, 200, 400].map(Duration::from_millis));
    assert!(pauses.is_sorted(), "{pauses:?}");
    assert!(pauses.ends_with(&[Duration::from_secs(60); 3]), "{pauses:?}");
}

/// Drivers ask before they submit more.
#[test]
fn bytes_of_unanswered_requests_take_room() {
    let mut config = Config::new(["a:1"]);
    config.request_bytes_max = 1000;
    let mut session = connected(config);
    assert!(session.has_room());
    for has_room in [true, false] {
        let set = SetDataRequest { path: Str::from("/a"), data: Some(&[7; 600]), version: -1 };
        let (frame, token, watch) = (RequestFrame::of(&set), (), None);
        let (on_loss, patience) = (OnLoss::Report, Patience::default());
        session.submit(Time::ZERO, Outgoing { frame, token, watch, on_loss, patience });
        assert_eq!(session.has_room(), has_room, "{:?}", session.load());
    }
    for xid in [1, 2].map(Xid) {
        hear(&mut session, Time::ZERO, &answer(xid));
        assert!(session.has_room(), "{:?}", session.load());
    }
    assert_eq!(session.load(), (0, 0));
}
