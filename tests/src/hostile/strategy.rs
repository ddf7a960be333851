//! Whatever can happen, made up at random.

use std::time::Duration;

use proptest::{collection::vec, option, prelude::*, sample::select};
use zk_proto::{
    ErrorCode, EventType, Xid,
    session::{LinkError, ProbeAnswer, WatchBy},
};

use super::step::{Delivery, Greeting, Message, PATHS, Resumed, Setup, Socket, Step};

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

pub(crate) fn setup() -> impl Strategy<Value = Setup> {
    let next_xid = prop_oneof![1..100_i32, i32::MAX - 20..=i32::MAX, any::<i32>()];
    let resumed = (1..50_i64, 0..50_i64, next_xid).prop_map(|(id, last_zxid, next_xid)| Resumed {
        id,
        last_zxid,
        next_xid,
    });
    let timeout = millis(3_000..20_000);
    (1..4_usize, timeout, any::<bool>(), option::of(resumed), 0..3_usize, any::<u64>()).prop_map(
        |(servers, timeout, read_only, resumed, identities, seed)| Setup {
            servers,
            timeout,
            read_only,
            resumed,
            identities,
            seed,
        },
    )
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let by = select(vec![
        WatchBy::Data,
        WatchBy::Exists,
        WatchBy::Children,
        WatchBy::Persistent,
        WatchBy::Recursive,
    ]);
    let error = || select(vec![LinkError::Refused, LinkError::Reset, LinkError::Closed]);
    let dialed = prop_oneof![3 => Just(Ok(())), 1 => error().prop_map(Err)];
    let socket = prop_oneof![Just(Socket::Writable), (0..100_usize).prop_map(Socket::Takes),];
    let delivery = prop_oneof![
        4 => Just(Delivery::All),
        1 => (0..50_usize).prop_map(Delivery::Bytes),
    ];
    let probed = select(vec![ProbeAnswer::ReadWrite, ProbeAnswer::ReadOnly, ProbeAnswer::Unknown]);
    prop_oneof![
        30 => (option::of(by), any::<bool>(), 0..PATHS.len())
            .prop_map(|(by, resend, path)| Step::Submit { by, resend, path }),
        2 => Just(Step::AddAuth),
        3 => (0..100_usize).prop_map(Step::Unwatch),
        1 => Just(Step::Close),
        1 => prop_oneof![9 => Just(Step::Wake), 1 => Just(Step::Detach)],
        10 => dialed.prop_map(Step::Dialed),
        5 => error().prop_map(Step::HungUp),
        6 => socket.prop_map(Step::Socket),
        50 => (message(), delivery)
            .prop_map(|(message, delivery)| Step::Serve { message, delivery }),
        15 => Just(Step::Connect),
        5 => probed.prop_map(Step::Probed),
        20 => millis(0..4_000).prop_map(Step::Advance),
        2 => millis(0..20_000).prop_map(Step::Advance),
        2 => millis(0..20_000).prop_map(Step::Sleep),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    // The usual thing is most likely, for anything else ends the connection or worse.
    let code = || {
        prop_oneof![
            20 => Just(ErrorCode::OK),
            5 => Just(ErrorCode::NO_NODE),
            1 => select(ErrorCode::KNOWN),
            1 => any::<i32>().prop_map(ErrorCode),
        ]
    };
    let judgement = prop_oneof![19 => Just(ErrorCode::OK), 1 => Just(ErrorCode::AUTH_FAILED)];
    let pong = prop_oneof![19 => Just(ErrorCode::OK), 1 => select(ErrorCode::KNOWN)];
    let event = select(vec![
        EventType::NODE_CREATED,
        EventType::NODE_DELETED,
        EventType::NODE_DATA_CHANGED,
        EventType::NODE_CHILDREN_CHANGED,
        EventType(99),
    ]);
    prop_oneof![
        8 => greeting().prop_map(Message::Greeting),
        20 => (1..6_usize, code()).prop_map(|(count, code)| Message::Answers(count, code)),
        6 => pong.prop_map(Message::Pong),
        4 => judgement.prop_map(Message::Judgement),
        10 => (event, 0..PATHS.len()).prop_map(|(kind, path)| Message::Event(kind, path)),
        // None of them is ever given to a request.
        1 => prop_oneof![Just(0), Just(-3), -100..-4].prop_map(|xid| Message::Stray(Xid(xid))),
        1 => vec(any::<u8>(), 0..60).prop_map(Message::Nonsense),
        1 => vec(any::<u8>(), 1..20).prop_map(Message::Noise),
    ]
}

fn greeting() -> impl Strategy<Value = Greeting> {
    let timeout = millis(1..20_000);
    prop_oneof![
        20 => (timeout, prop::bool::weighted(0.2))
            .prop_map(|(timeout, read_only)| Greeting::Welcome { timeout, read_only }),
        1 => Just(Greeting::Expired),
        1 => Just(Greeting::AnotherSession),
        2 => Just(Greeting::ReadOnlyRefusal),
    ]
}
