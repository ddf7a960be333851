//! Sequences and their steps. They mean the same on every server: paths, sessions and transaction
//! numbers are named by where they come from.

use std::fmt::{self, Display, Formatter};

use zk_proto::{OpCode, Xid};

/// What is played: some connections, and what happens on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// In this order.
    pub(super) steps: Vec<Step>,
}

impl Sequence {
    /// How many requests there are in it, handshakes included.
    pub fn operations(&self) -> usize {
        self.steps.iter().map(Step::operations).sum()
    }

    /// The same with deletes, which look alike, in the place of checks that stand alone.
    pub(super) fn without_checks(mut self) -> Self {
        for step in &mut self.steps {
            if let Step::Send(_, requests) = step {
                for request in requests.iter_mut().filter(|it| it.op == OpCode::CHECK) {
                    request.op = OpCode::DELETE;
                }
            }
        }
        self
    }

    /// The same with one request at a time: what a release does not know cuts off what was sent with it.
    pub(super) fn one_by_one(self) -> Self {
        let split = |step| match step {
            Step::Send(name, requests) => {
                requests.into_iter().map(|request| Step::Send(name, vec![request])).collect()
            }
            other => vec![other],
        };
        Self { steps: self.steps.into_iter().flat_map(split).collect() }
    }

    /// The same without quotas: what is none kills servers before 3.7.
    pub(super) fn without_quotas(mut self) -> Self {
        for step in &mut self.steps {
            if let Step::Send(_, requests) = step {
                requests.iter_mut().for_each(|request| avoid_quotas(&mut request.body));
            }
        }
        self
    }
}

fn avoid_quotas(fields: &mut [Field]) {
    for field in fields {
        match field {
            Field::Text(Some(path)) if path.0.starts_with(b"/zookeeper/quota$") => {
                *path = Chars::of("/zookeeper/nothing");
            }
            Field::Parts(parts) => parts.iter_mut().for_each(|part| avoid_quotas(&mut part.body)),
            _ => {}
        }
    }
}

/// A connection, by its place in the order in which they are opened. Prints as a letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(pub(super) u8);

/// One thing to do. Whatever follows from it is waited for before the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Connect, and ask for a session.
    Open(Name, Hello),
    /// Send these requests at once.
    Send(Name, Vec<Request>),
    /// Close the connection, without a word.
    HangUp(Name),
    /// Let time pass, in milliseconds.
    Wait(u32),
}

impl Step {
    /// How many requests it makes.
    pub(super) fn operations(&self) -> usize {
        match self {
            Self::Open(..) => 1,
            Self::Send(_, requests) => requests.len(),
            Self::HangUp(_) | Self::Wait(_) => 0,
        }
    }
}

/// The first frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) protocol_version: i32,
    pub(super) last_zxid: ZxidOf,
    pub(super) timeout: i32,
    pub(super) session: SessionOf,
    pub(super) password: Password,
    pub(super) read_only: Option<u8>,
    pub(super) damage: Option<Damage>,
}

impl Hello {
    /// A usual one for this session, which lasts so many milliseconds.
    pub(super) const fn usual(session: SessionOf, timeout: i32) -> Self {
        Self {
            protocol_version: 0,
            last_zxid: ZxidOf::Number(0),
            timeout,
            session,
            password: Password::Own,
            read_only: Some(0),
            damage: None,
        }
    }
}

/// A transaction number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZxidOf {
    Number(i64),
    /// The highest that was seen before this step, or before so many steps before this one.
    Seen(usize),
    /// As many more than the highest that was seen.
    Ahead(i64),
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionOf {
    Number(i64),
    /// The one of a connection.
    Connection(Name),
}

/// What is shown to resume a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Password {
    /// What belongs to the session.
    Own,
    /// What belongs to it, but for the last bit.
    Wrong,
    /// So many zeros.
    Zeros(usize),
    Null,
}

/// A request as it goes over the wire, legal or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) xid: Xid,
    pub(super) op: OpCode,
    pub(super) body: Vec<Field>,
    pub(super) damage: Option<Damage>,
}

/// A field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Byte(u8),
    Int(i32),
    Long(i64),
    Zxid(ZxidOf),
    Text(Option<Chars>),
    Data(Data),
    Texts(Option<Vec<Option<Chars>>>),
    Acl(Option<Vec<Entry>>),
    /// The operations of a multi.
    Parts(Vec<Part>),
}

/// Bytes of a string, in which `$` stands for the path that belongs to this sequence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chars(pub(super) Vec<u8>);

impl Chars {
    pub(super) fn of(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

/// Data of a node, or credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Null,
    Bytes(Chars),
    /// So many equal bytes.
    Filled(usize),
}

/// An entry of an access control list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) perms: i32,
    pub(super) scheme: Option<Chars>,
    pub(super) id: Option<Chars>,
}

/// One operation of a multi: the header in front, and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) op: OpCode,
    pub(super) body: Vec<Field>,
}

/// What happens to a frame before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// So many bytes of the content are left.
    Truncated(usize),
    /// The last so many bytes are missing.
    Short(usize),
    /// So many bytes follow the last field.
    Trailing(usize),
    /// Four bytes from this offset on become this number.
    Number(usize, i32),
    /// A bit of this byte, counted from the header's end, is flipped.
    Bit(usize, u8),
    /// The length in front says this, and nothing follows.
    Length(i32),
    /// The length in front promises so many bytes more than follow.
    Promise(usize),
}

impl Display for Sequence {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step:?}"))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(b'a' + self.0))
    }
}

impl fmt::Debug for Chars {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}
