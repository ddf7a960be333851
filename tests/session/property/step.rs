//! What can happen to a session.

use std::time::Duration;

use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*, sample::select};
use zk_proto::{
    ErrorCode, EventType, Secret, SessionId, Xid, Zxid,
    session::{Auth, Config, Credentials, LinkError, ProbeAnswer, WatchBy},
};

/// What a session is born with.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) seed: u64,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request, perhaps one that arms a watch.
    Submit {
        by: Option<WatchBy>,
        resend: bool,
        path: usize,
    },
    AddAuth,
    /// Of the watchers that were ever named, the one at this place no longer listens.
    Unwatch(usize),
    Close,
    Detach,
    /// The connection attempt under way ends.
    Dialed(Result<(), LinkError>),
    HungUp(LinkError),
    /// How many bytes the socket takes from now on.
    Socket(Socket),
    /// The server sends something.
    Serve {
        message: Message,
        delivery: Delivery,
    },
    /// Everything that it takes to be connected.
    Connect,
    Probed(ProbeAnswer),
    /// Time passes, and the session is woken when it wants to be.
    Advance(Duration),
    /// Time passes, and the session is not woken.
    Sleep(Duration),
    Wake,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Socket {
    Writable,
    /// Only so many bytes more.
    Takes(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Greeting(Greeting),
    /// To so many of the requests that it has received.
    Answers(usize, ErrorCode),
    Pong(ErrorCode),
    Judgement(ErrorCode),
    Event(EventType, usize),
    /// An answer to nothing.
    Stray(Xid),
    /// A frame of no meaning.
    Nonsense(Vec<u8>),
    /// Not even a frame.
    Noise(Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Greeting {
    Welcome { timeout: Duration, read_only: bool },
    Expired,
    AnotherSession,
    ReadOnlyRefusal,
}

/// How much of what the server has sent so far arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delivery {
    All,
    Bytes(usize),
}

pub(crate) const PATHS: [&str; 4] = ["/", "/a", "/a/b", "/ab"];

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

pub(crate) fn setup() -> impl Strategy<Value = Setup> {
    let next_xid = prop_oneof![1..100_i32, i32::MAX - 20..=i32::MAX, any::<i32>()];
    let resume = option::of((1..50_i64, 0..50_i64, next_xid));
    let timeout = millis(3_000..20_000);
    (1..4_usize, timeout, any::<bool>(), resume, 0..3_usize, any::<u64>()).prop_map(
        |(servers, timeout, read_only, resume, auth, seed)| {
            let mut config = Config::new((0..servers).map(|server| format!("server{server}:2181")));
            config.session_timeout = timeout;
            config.read_only = read_only;
            config.reply_len_max = 1 << 12;
            config.resume = resume.map(|(id, zxid, xid)| Credentials {
                id: SessionId(id),
                password: Secret(Bytes::from_static(&[7; 16])),
                last_zxid: Zxid(zxid),
                next_xid: Xid(xid),
            });
            config.auth = (0..auth).map(|_| credentials("configured")).collect();
            Setup { config, seed }
        },
    )
}

pub(crate) fn credentials(secret: &str) -> Auth {
    Auth { scheme: "digest".into(), auth: Secret(Bytes::copy_from_slice(secret.as_bytes())) }
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
