//! What cannot have happened, whatever else has: each is told while no session waits for anything.

use super::invent::{Inventor, Kind};
use crate::linear::{Answer, Ask, Node, set_of};

/// A name that is used by lies only.
const NAME: u8 = 40;

/// How a history is made wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// A read behind a sync sees what had been overwritten before.
    Stale,
    /// A session sees a write, and later what was there before it.
    BackInSession,
    /// A read sees what is written after its answer.
    Future,
    /// A read sees what is never written.
    Unwritten,
    /// Two writes replace the same version.
    LostUpdate,
    /// A write by a version leaves another one than the next.
    Skipped,
    /// Two sessions create the same.
    TwiceAdded,
}

impl Lie {
    const OF_NODES: [Self; 6] = [
        Self::Stale,
        Self::BackInSession,
        Self::Future,
        Self::Unwritten,
        Self::LostUpdate,
        Self::Skipped,
    ];
    const OF_SETS: [Self; 5] =
        [Self::Stale, Self::BackInSession, Self::Future, Self::Unwritten, Self::TwiceAdded];

    /// All of them in turn.
    pub(super) fn nth(kind: Kind, number: usize) -> Self {
        match kind {
            Kind::Set => Self::OF_SETS[number % Self::OF_SETS.len()],
            Kind::Register | Kind::Counter => Self::OF_NODES[number % Self::OF_NODES.len()],
        }
    }

    /// Makes the history wrong.
    pub(super) fn tell(self, inventor: &mut Inventor) {
        let (writer, reader) = (0, 1);
        let (synced, late) = (Ask::Read { synced: true }, Ask::Read { synced: false });
        match self {
            Self::Stale => {
                let (before, _) = change(inventor, writer);
                inventor.at_once(reader, synced);
                saw(inventor, before);
            }
            Self::BackInSession => {
                let (before, after) = change(inventor, writer);
                inventor.at_once(reader, late);
                saw(inventor, after);
                inventor.at_once(reader, late);
                saw(inventor, before);
            }
            Self::Future => {
                inventor.at_once(reader, late);
                let place = inventor.operations.len() - 1;
                let (_, after) = change(inventor, writer);
                inventor.operations[place].answer = Answer::Saw(after);
            }
            Self::Unwritten => {
                let value = inventor.rng.next();
                inventor.at_once(reader, late);
                saw(
                    inventor,
                    match inventor.kind {
                        Kind::Set => set_of(1 << (NAME + 1)),
                        Kind::Register | Kind::Counter => Some(Node { value, version: 0 }),
                    },
                );
            }
            Self::LostUpdate => {
                let version = written_often(inventor, writer);
                for client in [writer, reader] {
                    let value = inventor.rng.next();
                    inventor.at_once(client, Ask::Set(value, Some(version)));
                    let told = inventor.operations.len() - 1;
                    inventor.operations[told].answer = Answer::Version(version + 1);
                }
            }
            Self::Skipped => {
                let version = written_often(inventor, writer);
                let value = inventor.rng.next();
                inventor.at_once(writer, Ask::Set(value, Some(version)));
                let told = inventor.operations.len() - 1;
                inventor.operations[told].answer = Answer::Version(version + 2);
            }
            Self::TwiceAdded => {
                for client in [writer, reader] {
                    inventor.at_once(client, Ask::Add(NAME));
                    let told = inventor.operations.len() - 1;
                    inventor.operations[told].answer = Answer::Done;
                }
            }
        }
    }
}

/// The last answer is this.
fn saw(inventor: &mut Inventor, node: Option<Node>) {
    let told = inventor.operations.len() - 1;
    inventor.operations[told].answer = Answer::Saw(node);
}

/// Changes the node; what it was, and what it is, neither of which it will ever be again.
fn change(inventor: &mut Inventor, client: usize) -> (Option<Node>, Option<Node>) {
    if inventor.kind == Kind::Set {
        // The name has not been there, and is there for good: without it there is nothing any more.
        let before = inventor.node();
        inventor.at_once(client, Ask::Add(NAME));
        return (before, inventor.node());
    }
    written_often(inventor, client);
    let before = inventor.node();
    let value = inventor.rng.next();
    inventor.at_once(client, Ask::Set(value, None));
    (before, inventor.node())
}

/// Writes so often that the version cannot come again by writes whose answers are still open. Returns it.
fn written_often(inventor: &mut Inventor, client: usize) -> i32 {
    let open = inventor.operations.iter().filter(|it| it.answer == Answer::Open).count();
    let value = inventor.rng.next();
    inventor.at_once(client, Ask::Create(value));
    loop {
        let value = inventor.rng.next();
        if let Answer::Version(version) = inventor.at_once(client, Ask::Set(value, None)) {
            if usize::try_from(version).is_ok_and(|version| version > open) {
                return version;
            }
        }
    }
}
