//! S6: what clients have asked of a node and were answered can be explained by operations that happen one at
//! a time. A check beside S5 that does not trust the numbers of transactions.

use zk_proto::SessionId;

use super::Checker;
use crate::linear::{Answer, Ask, Operation, Verdict, judge};

/// Operations after which clients turn to another node.
const LEN: usize = 240;

/// Operations from which on a history counts as a long one.
const LONG: usize = 200;

/// What was asked of nodes, one after the other.
#[derive(Default)]
pub(super) struct Histories {
    /// Counts all that is asked and answered.
    clock: u64,
    /// `None` for what has certainly not happened.
    nodes: Vec<Vec<Option<Operation>>>,
}

/// Something that was asked.
#[derive(Debug)]
pub(crate) struct Asked {
    node: usize,
    number: usize,
}

impl Histories {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Checker {
    /// The number of the node that is to be asked now.
    pub(crate) fn node_of_interest(&mut self) -> usize {
        let nodes = &mut self.histories.nodes;
        if nodes.last().is_none_or(|last| last.len() >= LEN) {
            nodes.push(Vec::new());
        }
        nodes.len() - 1
    }

    /// A client asks something of a node, and has not been answered.
    pub(crate) fn asks(&mut self, node: usize, session: SessionId, ask: Ask) -> Asked {
        let asked = self.histories.tick();
        let (session, answered, answer) = (session.0, u64::MAX, Answer::Open);
        let operations = &mut self.histories.nodes[node];
        operations.push(Some(Operation { session, asked, answered, ask, answer }));
        Asked { node, number: operations.len() - 1 }
    }

    /// It was answered; `None` if it is certain that nothing has happened.
    pub(crate) fn answered(&mut self, asked: Asked, answer: Option<Answer>) {
        let now = self.histories.tick();
        let Asked { node, number } = asked;
        let session = self.histories.nodes[node][number].map(|it| SessionId(it.session));
        // What comes to such a session may be damaged.
        let answer = match session.is_some_and(|session| self.is_doubtful(session)) {
            true => Some(Answer::Open),
            false => answer,
        };
        let place = &mut self.histories.nodes[node][number];
        match (answer, place.as_mut()) {
            (None, _) => *place = None,
            (Some(Answer::Open), _) | (_, None) => {}
            (Some(answer), Some(operation)) => {
                (operation.answered, operation.answer) = (now, answer);
            }
        }
    }

    /// At the end: can it all have happened?
    pub(crate) fn check_histories(&mut self) {
        for (node, operations) in std::mem::take(&mut self.histories.nodes).iter().enumerate() {
            let operations: Vec<Operation> = operations.iter().flatten().copied().collect();
            self.count("histories checked");
            if operations.len() >= LONG {
                self.count("histories of 200 operations checked");
            }
            match judge(&operations) {
                Verdict::Linearizable => {}
                Verdict::Undecided => self.count("histories not decided"),
                verdict @ Verdict::Not { .. } => {
                    self.violated(
                        "S6",
                        format!("node {node} of {}: {verdict:?}", operations.len()),
                    );
                }
            }
        }
    }
}
