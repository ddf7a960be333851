//! Sequences that look for trouble.

mod access;
mod broken;
mod mortal;
mod names;
mod requests;
mod watching;

pub use mortal::generate_mortal;

use zk_proto::{OpCode, Xid};
use zk_testkit::sim::Rng;

use super::step::{
    Chars, Data, Entry, Field, Hello, Name, Password, Request, Sequence, SessionOf, Step, ZxidOf,
};

/// How long the sessions ask to last, in milliseconds.
const TIMEOUT: i32 = 40_000;

/// Most connections of a sequence; there are letters for no more.
const CONNECTIONS_MAX: u8 = 8;

/// Steps of a sequence behind its opening: from so many, and fewer than so many more.
const STEPS: (usize, usize) = (6, 12);

/// Makes up a sequence.
pub fn generate(mut rng: Rng) -> Sequence {
    let steps = STEPS.0 + rng.index(STEPS.1);
    let mut maker = Maker {
        rng,
        steps: Vec::new(),
        links: Vec::new(),
        opened: 0,
        known: vec![Chars::of("$")],
        is_tame: false,
        has_quota: false,
    };
    maker.begin();
    let steps = steps + maker.steps.len();
    while maker.steps.len() < steps {
        maker.step();
    }
    Sequence { steps: maker.steps }
}

struct Maker {
    rng: Rng,
    steps: Vec<Step>,
    /// Connections that are probably open.
    links: Vec<Link>,
    opened: u8,
    /// Nodes that probably exist.
    known: Vec<Chars>,
    /// Whether nothing odd is wanted for now.
    is_tame: bool,
    has_quota: bool,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    name: Name,
    xid: i32,
}

impl Maker {
    /// Opens some connections, and creates the node that everything happens under.
    fn begin(&mut self) {
        let connections = self.rng.weighted(&[(3, 1), (4, 2), (2, 3)]);
        (0..connections).for_each(|_| self.open());
        if !self.rng.one_in(20) {
            let (op, flags) = self.rng.weighted(&[
                (30, (OpCode::CREATE, 0)),
                (6, (OpCode::CREATE2, 0)),
                (2, (OpCode::CREATE, 1)),
                (2, (OpCode::CREATE_CONTAINER, 4)),
            ]);
            let open = Some(vec![Entry::new(31, "world", "anyone")]);
            let root = Field::Text(Some(Chars::of("$")));
            let data = Field::Data(Data::Bytes(Chars::of("hi")));
            self.send_from(0, op, vec![root, data, Field::Acl(open), Field::Int(flags)]);
            self.furnish();
        }
    }

    /// Creates some nodes and watches, so that there is something to run into.
    fn furnish(&mut self) {
        self.is_tame = true;
        let nodes = [("$/a", 0, 2), ("$/b", 0, 3), ("$/a/b", 0, 3), ("$/e", 1, 3), ("$/c", 0, 4)];
        for (path, flags, one_in) in nodes {
            if self.rng.one_in(one_in) {
                let data = self.data();
                let acl = if path == "$/c" { self.restricted() } else { self.acl() };
                let path = Chars::of(path);
                self.known.push(path.clone());
                let body = vec![Field::Text(Some(path)), data, acl, Field::Int(flags)];
                self.send_from(0, OpCode::CREATE, body);
            }
        }
        if self.rng.one_in(3) {
            let link = self.rng.index(self.links.len().max(1));
            let mode = self.rng.one_of(&[0, 1, 1]);
            let body = vec![Field::Text(Some(Chars::of("$"))), Field::Int(mode)];
            self.send_from(link, OpCode::ADD_WATCH, body);
        }
        if self.rng.one_in(8) {
            self.has_quota = true;
            self.quotas().into_iter().for_each(|body| self.send_from(0, OpCode::CREATE, body));
        }
        self.is_tame = false;
    }

    fn step(&mut self) {
        if self.links.is_empty() && self.opened < CONNECTIONS_MAX {
            return self.open();
        }
        match self.rng.index(100) {
            0..3 if self.opened < CONNECTIONS_MAX => self.reopen(),
            3..5 if self.opened < CONNECTIONS_MAX => self.odd_open(),
            5..6 => {
                let link = self.any_link();
                self.links.retain(|other| other.name != link.name);
                self.steps.push(Step::HangUp(link.name));
            }
            6..9 => self.broken(),
            9..16 => self.several(),
            _ => {
                let (op, body) = self.request();
                let link = self.rng.index(self.links.len().max(1));
                self.send_from(link, op, body);
            }
        }
    }

    /// Several requests in one write.
    fn several(&mut self) {
        if self.has_quota {
            // Limits look at what is committed, which may lag behind what is under way.
            return;
        }
        let at = self.rng.index(self.links.len().max(1));
        let count = 2 + self.rng.index(3);
        let mut requests = Vec::new();
        while requests.len() < count {
            let (op, body) = self.request();
            // So does what sets access control lists, as far as others are concerned.
            if !overtakes(op) && !is_giant(&body) && op != OpCode::SET_ACL {
                requests.push(self.numbered(at, op, body));
            }
        }
        self.steps.push(Step::Send(self.name(at), requests));
    }

    fn send_from(&mut self, at: usize, op: OpCode, body: Vec<Field>) {
        let request = self.numbered(at, op, body);
        let name = self.name(at);
        self.steps.push(Step::Send(name, vec![request]));
        if op == OpCode::CLOSE_SESSION {
            self.links.retain(|link| link.name != name);
        }
    }

    fn numbered(&mut self, at: usize, op: OpCode, body: Vec<Field>) -> Request {
        let next = match self.links.get_mut(at) {
            Some(link) => {
                link.xid += 1;
                link.xid
            }
            None => 1,
        };
        let usual = match op {
            OpCode::PING => Xid::PING,
            OpCode::AUTH => Xid::AUTH,
            OpCode::SET_WATCHES | OpCode::SET_WATCHES2 => Xid::SET_WATCHES,
            _ => Xid(next),
        };
        let xid = match self.rng.index(60) {
            // Servers care little for xids.
            0 => self.rng.one_of(&[Xid(0), Xid(-2), Xid(-4), Xid(-8), Xid(i32::MAX), Xid(-77)]),
            1 => Xid(next),
            _ => usual,
        };
        Request { xid, op, body, damage: None }
    }

    fn any_link(&mut self) -> Link {
        let at = self.rng.index(self.links.len().max(1));
        self.links.get(at).copied().unwrap_or(Link { name: Name(0), xid: 0 })
    }

    fn name(&self, at: usize) -> Name {
        self.links.get(at).map_or(Name(0), |link| link.name)
    }

    fn open(&mut self) {
        self.open_with(Hello::usual(SessionOf::Number(0), TIMEOUT));
    }

    fn open_with(&mut self, hello: Hello) {
        let name = Name(self.opened);
        self.opened += 1;
        self.links.push(Link { name, xid: 0 });
        self.steps.push(Step::Open(name, hello));
    }

    /// Takes a session over, or back.
    fn reopen(&mut self) {
        let of = Name(u8::try_from(self.rng.index(self.opened.into())).unwrap_or(0));
        let password = match self.rng.index(8) {
            0 => Password::Wrong,
            1 => self.rng.one_of(&[Password::Zeros(16), Password::Null, Password::Zeros(15)]),
            _ => Password::Own,
        };
        let last_zxid = match self.rng.index(6) {
            0 => self.rng.one_of(&[
                ZxidOf::Ahead(1),
                ZxidOf::Ahead(1 << 20),
                ZxidOf::Number(i64::MAX),
                ZxidOf::Number(-1),
                ZxidOf::Number(0),
            ]),
            _ => ZxidOf::Seen(0),
        };
        let hung_up = self.rng.one_in(2);
        if hung_up && self.links.iter().any(|link| link.name == of) {
            self.links.retain(|link| link.name != of);
            self.steps.push(Step::HangUp(of));
        } else if password == Password::Own {
            self.links.retain(|link| link.name != of);
        }
        let read_only = self.rng.weighted(&[(6, Some(0)), (1, Some(1)), (1, None)]);
        let usual = Hello::usual(SessionOf::Connection(of), TIMEOUT);
        self.open_with(Hello { last_zxid, password, read_only, ..usual });
    }

    /// A new session, asked for in an unusual way.
    fn odd_open(&mut self) {
        let timeouts = [0, -1, 1, 20_000, 19_999, 60_000, 60_001, i32::MAX, i32::MIN];
        let passwords =
            [Password::Null, Password::Zeros(0), Password::Zeros(15), Password::Zeros(40)];
        let mut hello = Hello {
            protocol_version: self.rng.weighted(&[(9, 0), (1, 1), (1, -1)]),
            last_zxid: self.rng.weighted(&[
                (8, ZxidOf::Number(0)),
                (1, ZxidOf::Seen(0)),
                (1, ZxidOf::Ahead(1)),
                (1, ZxidOf::Ahead(0x1_0000_0000)),
                (1, ZxidOf::Number(-5)),
            ]),
            read_only: self.rng.weighted(&[(5, Some(0)), (2, Some(1)), (1, Some(7)), (3, None)]),
            ..Hello::usual(SessionOf::Number(0), TIMEOUT)
        };
        match self.rng.index(6) {
            0 | 1 => hello.timeout = self.rng.one_of(&timeouts),
            2 => hello.password = self.rng.one_of(&passwords),
            3 => hello.session = SessionOf::Number(self.rng.one_of(&[1, -1, 0x1234_5678_9abc])),
            4 => hello.damage = Some(self.damage_to_hello()),
            _ => {}
        }
        self.open_with(hello);
    }
}

/// Whether the answer may come before those to earlier requests, or the end before the answers.
fn overtakes(op: OpCode) -> bool {
    let is_refused =
        matches!(op, OpCode::NOTIFICATION | OpCode::ERROR | OpCode::CREATE_SESSION | OpCode::CHECK);
    let is_special = matches!(op, OpCode::AUTH | OpCode::SASL | OpCode::CLOSE_SESSION);
    is_refused || is_special || !OpCode::KNOWN.contains(&op)
}

/// Whether the frame may be too long for servers, which then close without answering anything before.
fn is_giant(fields: &[Field]) -> bool {
    fields.iter().any(|field| match field {
        Field::Data(Data::Filled(len)) => *len > 10_000,
        Field::Parts(parts) => parts.iter().any(|part| is_giant(&part.body)),
        _ => false,
    })
}

impl Entry {
    fn new(perms: i32, scheme: &str, id: &str) -> Self {
        Self { perms, scheme: Some(Chars::of(scheme)), id: Some(Chars::of(id)) }
    }
}
