//! Histories that can have happened: a node, and sessions that ask things of it at the same time.

use zk_testkit::sim::Rng;

use super::lie::Lie;
use crate::linear::{Answer, Ask, Node, Operation, apply};

/// What is made of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Register,
    Counter,
    Set,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Register, Self::Counter, Self::Set];
}

/// How many names sessions use in sets; lies use others.
const NAMES: u64 = 5;

/// A session, and what it waits for.
#[derive(Debug)]
struct Client {
    session: i64,
    /// The newest state that it has seen.
    seen: usize,
    waits: Option<Waits>,
}

#[derive(Debug)]
struct Waits {
    /// Its place in the history.
    number: usize,
    /// What the node said, if it has been asked.
    answer: Option<Answer>,
}

/// Makes a history up.
#[derive(Debug)]
pub(super) struct Inventor {
    pub(super) rng: Rng,
    pub(super) kind: Kind,
    clock: u64,
    sessions: i64,
    clients: Vec<Client>,
    /// All that the node has been; the last one is what it is.
    states: Vec<Option<Node>>,
    pub(super) operations: Vec<Operation>,
}

impl Inventor {
    /// The same history for the same seed and number.
    pub(super) fn new(seed: u64, number: u64, kind: Kind) -> Self {
        let mut rng = Rng::stream(seed, number);
        let mut inventor = Self {
            kind,
            clock: 0,
            sessions: 0,
            clients: Vec::new(),
            states: vec![None],
            operations: Vec::new(),
            rng: rng.fork(1),
        };
        for _ in 0..rng.within(2, 5) {
            let client = inventor.client();
            inventor.clients.push(client);
        }
        inventor
    }

    /// A history of so many operations, with a lie in it or without.
    pub(super) fn invent(&mut self, lens: (u64, u64), lie: Option<Lie>) -> Vec<Operation> {
        let len = usize::try_from(self.rng.within(lens.0, lens.1)).unwrap_or(usize::MAX);
        let when = self.rng.index(len);
        while self.operations.len() < when {
            self.step();
        }
        if let Some(lie) = lie {
            self.settle();
            lie.tell(self);
        }
        while self.operations.len() < len {
            self.step();
        }
        self.settle();
        std::mem::take(&mut self.operations)
    }

    pub(super) fn node(&self) -> Option<Node> {
        self.states[self.states.len() - 1]
    }

    fn client(&mut self) -> Client {
        self.sessions += 1;
        Client { session: self.sessions, seen: 0, waits: None }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// One of the clients goes on.
    fn step(&mut self) {
        let client = self.rng.index(self.clients.len());
        match &self.clients[client].waits {
            None => {
                let ask = self.ask();
                self.asks(client, ask);
            }
            // Lost, before or after it has happened; its session is over.
            Some(_) if self.rng.one_in(25) => self.clients[client] = self.client(),
            Some(Waits { answer: None, .. }) => self.happens(client),
            Some(Waits { answer: Some(_), .. }) => self.answers(client),
        }
    }

    /// All that was asked is answered.
    fn settle(&mut self) {
        for client in 0..self.clients.len() {
            self.happens(client);
            self.answers(client);
        }
    }

    /// Asked, happened and answered, with nothing else meanwhile; what the node said.
    pub(super) fn at_once(&mut self, client: usize, ask: Ask) -> Answer {
        let client = client % self.clients.len();
        self.asks(client, ask);
        self.happens(client);
        self.answers(client);
        self.operations[self.operations.len() - 1].answer
    }

    fn ask(&mut self) -> Ask {
        let (value, name) = (self.rng.next(), self.rng.below(NAMES));
        let name = u8::try_from(name).unwrap_or_default();
        let synced = self.rng.one_in(2);
        match (self.kind, self.rng.below(12), self.node()) {
            (_, 0..=4, _) => Ask::Read { synced },
            (Kind::Set, 5..=8, _) => Ask::Add(name),
            (Kind::Set, ..) => Ask::Remove(name),
            (Kind::Counter, _, None) => Ask::Create(0),
            (Kind::Counter, _, Some(node)) => {
                Ask::Set(node.value.wrapping_add(1), Some(node.version))
            }
            (Kind::Register, 5 | 6, Some(node)) => Ask::Set(value, Some(node.version)),
            (Kind::Register, 7..=9, _) => Ask::Set(value, None),
            (Kind::Register, 10, Some(node)) => Ask::Delete(Some(node.version)),
            (Kind::Register, ..) => Ask::Create(value),
        }
    }

    fn asks(&mut self, client: usize, ask: Ask) {
        let asked = self.tick();
        let session = self.clients[client].session;
        let (answered, answer) = (u64::MAX, Answer::Open);
        self.operations.push(Operation { session, asked, answered, ask, answer });
        let number = self.operations.len() - 1;
        self.clients[client].waits = Some(Waits { number, answer: None });
    }

    fn happens(&mut self, client: usize) {
        let newest = self.states.len() - 1;
        let Client { seen, waits, .. } = &mut self.clients[client];
        let Some(Waits { number, answer: answer @ None }) = waits else { return };
        let ask = self.operations[*number].ask;
        let place = match ask {
            Ask::Read { synced: false } => *seen + self.rng.index(newest - *seen + 1),
            _ => newest,
        };
        let (after, given) = apply(self.states[place], ask);
        *answer = Some(given);
        *seen = place;
        if after != self.states[place] {
            self.states.push(after);
            *seen = newest + 1;
        }
    }

    fn answers(&mut self, client: usize) {
        let Some(Waits { number, answer: Some(answer) }) = self.clients[client].waits.take() else {
            return;
        };
        let now = self.tick();
        let operation = &mut self.operations[number];
        (operation.answered, operation.answer) = (now, answer);
    }
}
