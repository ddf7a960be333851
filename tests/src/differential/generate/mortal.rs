//! Sequences in which sessions expire.

use zk_proto::{OpCode, Xid};
use zk_testkit::sim::Rng;

use super::{Chars, Data, Entry, Field, Hello, Name, Request, Sequence, SessionOf, Step};

/// How long mortal sessions last, in milliseconds.
const TIMEOUT_MORTAL: i32 = 8_000;

/// How long a session lasts that sees others end.
const TIMEOUT_OBSERVER: i32 = 60_000;

/// After this time, in milliseconds, the session of a silent client has expired.
const WAIT: u32 = 14_000;

/// Makes up a sequence: one client observes while sessions of others expire, with or without connection.
pub fn generate_mortal(mut rng: Rng) -> Sequence {
    let mut steps = vec![open(0, TIMEOUT_OBSERVER, SessionOf::Number(0))];
    let mut requests = vec![create("$", 0)];
    let watches: &[(&str, i32)] = rng.one_of(&[
        &[("$", 1)][..],
        &[("$", 0)],
        &[("$", 0), ("$/a", 1)],
        &[("$", 1), ("$/a", 1)],
    ]);
    requests.extend(watches.iter().map(|(path, mode)| request(OpCode::ADD_WATCH, path, *mode)));
    requests.push(create("$/a", 0));
    steps.push(Step::Send(Name(0), requests));
    let mortals = 1 + u8::try_from(rng.index(3)).unwrap_or(0);
    for mortal in 1..=mortals {
        steps.push(open(mortal, TIMEOUT_MORTAL, SessionOf::Number(0)));
        let nodes = (0..=rng.index(3)).map(|_| {
            let parent = rng.one_of(&["$", "$/a"]);
            let flags = rng.one_of(&[1, 1, 3, 0]);
            create(&format!("{parent}/m{mortal}"), flags)
        });
        steps.push(Step::Send(Name(mortal), nodes.collect()));
    }
    for mortal in 1..=mortals {
        match rng.index(4) {
            // Silent, though connected.
            0 | 1 => {}
            2 => steps.push(Step::HangUp(Name(mortal))),
            // Resumed by a client that is silent, too.
            _ => {
                let session = SessionOf::Connection(Name(mortal));
                steps.push(open(mortals + mortal, TIMEOUT_MORTAL, session));
            }
        }
    }
    steps.push(Step::Wait(WAIT));
    for path in ["$", "$/a"] {
        steps.push(Step::Send(Name(0), vec![list(path)]));
    }
    let session = SessionOf::Connection(Name(1));
    steps.push(open(2 * mortals + 1, TIMEOUT_MORTAL, session));
    Sequence { steps }
}

fn open(name: u8, timeout: i32, session: SessionOf) -> Step {
    Step::Open(Name(name), Hello::usual(session, timeout))
}

fn create(path: &str, flags: i32) -> Request {
    let acl = vec![Entry::new(31, "world", "anyone")];
    let path = Field::Text(Some(Chars::of(path)));
    let body = vec![path, Field::Data(Data::Null), Field::Acl(Some(acl)), Field::Int(flags)];
    Request { xid: Xid::FIRST, op: OpCode::CREATE, body, damage: None }
}

fn request(op: OpCode, path: &str, number: i32) -> Request {
    let body = vec![Field::Text(Some(Chars::of(path))), Field::Int(number)];
    Request { xid: Xid::FIRST, op, body, damage: None }
}

fn list(path: &str) -> Request {
    let body = vec![Field::Text(Some(Chars::of(path))), Field::Byte(0)];
    Request { xid: Xid::FIRST, op: OpCode::GET_CHILDREN, body, damage: None }
}
