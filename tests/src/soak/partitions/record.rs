//! What clients have asked of nodes that many of them use, and what they were answered: histories to be judged.

use std::sync::{Mutex, MutexGuard, PoisonError};

use zk_client::SessionId;

use crate::linear::{Answer, Ask, Operation};

/// Operations after which clients turn to another object.
const LEN: usize = 80;

/// What clients make of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A node that is created, written, read and deleted.
    Register,
    /// A node whose number is only ever raised by one, by the version that was read with it.
    Counter,
    /// The names below a node.
    Set,
}

/// One of them, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object(usize);

impl Object {
    pub(super) const fn kind(self) -> Kind {
        match self.0 % 3 {
            0 => Kind::Register,
            1 => Kind::Counter,
            _ => Kind::Set,
        }
    }

    pub(super) const fn number(self) -> usize {
        self.0
    }
}

/// The order of all that was asked and answered.
#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    clock: u64,
    /// `None` for what has certainly not happened.
    objects: Vec<Vec<Option<Operation>>>,
}

/// Something that was asked.
#[derive(Debug)]
pub(super) struct Asked {
    object: usize,
    number: usize,
}

impl Recorder {
    /// What is to be used now.
    pub(super) fn object(&self) -> Object {
        let objects = &mut self.recorded().objects;
        if objects.last().is_none_or(|last| last.len() >= LEN) {
            objects.push(Vec::new());
        }
        Object(objects.len() - 1)
    }

    /// A client asks something, and has not been answered.
    pub(super) fn asks(&self, object: Object, session: SessionId, ask: Ask) -> Asked {
        let mut recorded = self.recorded();
        let asked = recorded.tick();
        let (answered, answer) = (u64::MAX, Answer::Open);
        let operations = &mut recorded.objects[object.0];
        operations.push(Some(Operation { session: session.0, asked, answered, ask, answer }));
        Asked { object: object.0, number: operations.len() - 1 }
    }

    /// It was answered; `None` if it is certain that nothing has happened.
    pub(super) fn answered(&self, asked: &Asked, answer: Option<Answer>) {
        let mut recorded = self.recorded();
        let now = recorded.tick();
        let place = &mut recorded.objects[asked.object][asked.number];
        match (answer, place.as_mut()) {
            (None, _) => *place = None,
            (Some(Answer::Open), _) | (_, None) => {}
            (Some(answer), Some(operation)) => {
                (operation.answered, operation.answer) = (now, answer);
            }
        }
    }

    /// All histories, as far as they have come.
    pub(super) fn histories(&self) -> Vec<Vec<Operation>> {
        let recorded = self.recorded();
        recorded.objects.iter().map(|object| object.iter().flatten().copied().collect()).collect()
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}
