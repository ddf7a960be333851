//! What can happen to a session.

use std::time::Duration;

use bytes::Bytes;
use zk_proto::{
    ErrorCode, EventType, Secret, SessionId, Xid, Zxid,
    session::{Auth, Config, Credentials, LinkError, ProbeAnswer, WatchBy},
};

/// What a session is born with.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) servers: usize,
    pub(crate) timeout: Duration,
    pub(crate) read_only: bool,
    pub(crate) resumed: Option<Resumed>,
    /// How many there are to be proved from the beginning.
    pub(crate) identities: usize,
    pub(crate) seed: u64,
}

/// A session that there was before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resumed {
    pub(crate) id: i64,
    pub(crate) last_zxid: i64,
    pub(crate) next_xid: i32,
}

/// Longest frame of a server. Small, so that too long ones are likely.
pub(crate) const REPLY_LEN_MAX: usize = 1 << 12;

impl Setup {
    pub(crate) fn config(&self) -> Config {
        let servers = (0..self.servers).map(|server| format!("server{server}:2181"));
        let mut config = Config::new(servers);
        config.session_timeout = self.timeout;
        config.read_only = self.read_only;
        config.reply_len_max = REPLY_LEN_MAX;
        config.resume = self.resumed.map(|resumed| Credentials {
            id: SessionId(resumed.id),
            password: Secret(Bytes::from_static(&[7; 16])),
            last_zxid: Zxid(resumed.last_zxid),
            next_xid: Xid(resumed.next_xid),
        });
        config.auth = (0..self.identities).map(|_| credentials("configured")).collect();
        config
    }
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

pub(crate) fn credentials(secret: &str) -> Auth {
    Auth { scheme: "digest".into(), auth: Secret(Bytes::copy_from_slice(secret.as_bytes())) }
}
