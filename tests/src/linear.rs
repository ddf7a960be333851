//! Whether a history of one node can be explained by operations that happen one at a time, after Wing and
//! Gong, with Lowe's memory of what has been tried. Knows nothing of transactions and their numbers.
//!
//! Writes, and reads behind a `sync`, happen between being asked for and being answered. Plain reads may be
//! late: they happen before their answer, and in the order of their session. What was never answered may
//! happen at any time after it was asked for, or never.

use std::collections::{BTreeMap, BTreeSet};

/// States that are looked at before a history is given up.
const STATES_MAX: usize = 100_000;

/// A node that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) value: u64,
    pub(crate) version: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Read {
        synced: bool,
    },
    Create(u64),
    Set(u64, Option<i32>),
    Delete(Option<i32>),
    /// Of a set of names below 64, which is a node with a bit for each of them, and none while it is empty.
    Add(u8),
    Remove(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoNode,
    NodeExists,
    BadVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// None came.
    Open,
    /// What was read.
    Saw(Option<Node>),
    /// Written, and this is the version now.
    Version(i32),
    /// Created or deleted.
    Done,
    Refused(Refusal),
}

/// Something that was asked of a node. Times are places in the order of all that is asked and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) session: i64,
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) ask: Ask,
    pub(crate) answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Linearizable,
    /// As many operations as can be explained, the node then, and the next that cannot.
    Not {
        explained: usize,
        node: Option<Node>,
        stuck: Vec<Operation>,
    },
    /// It would take too long to find out.
    Undecided,
}

impl Operation {
    fn is_open(&self) -> bool {
        self.answer == Answer::Open
    }

    /// Whether it may show what was true before it was asked for.
    const fn may_be_late(&self) -> bool {
        matches!(self.ask, Ask::Read { synced: false })
    }
}

/// What a node does, one operation at a time.
pub(crate) fn apply(node: Option<Node>, ask: Ask) -> (Option<Node>, Answer) {
    let refused = |refusal| (node, Answer::Refused(refusal));
    match (ask, node) {
        (Ask::Read { .. }, node) => (node, Answer::Saw(node)),
        (Ask::Create(value), None) => (Some(Node { value, version: 0 }), Answer::Done),
        (Ask::Create(_), Some(_)) => refused(Refusal::NodeExists),
        (Ask::Set(..) | Ask::Delete(_), None) => refused(Refusal::NoNode),
        (Ask::Set(_, Some(wanted)) | Ask::Delete(Some(wanted)), Some(Node { version, .. }))
            if wanted != version =>
        {
            refused(Refusal::BadVersion)
        }
        (Ask::Set(value, _), Some(Node { version, .. })) => {
            let version = version + 1;
            (Some(Node { value, version }), Answer::Version(version))
        }
        (Ask::Delete(_), Some(_)) => (None, Answer::Done),
        (Ask::Add(name) | Ask::Remove(name), node) => {
            let (before, bit) = (node.map_or(0, |node| node.value), 1 << (name % 64));
            match (matches!(ask, Ask::Add(_)), before & bit != 0) {
                (true, true) => refused(Refusal::NodeExists),
                (false, false) => refused(Refusal::NoNode),
                _ => (set_of(before ^ bit), Answer::Done),
            }
        }
    }
}

/// The node that stands for a set.
pub(crate) fn set_of(names: u64) -> Option<Node> {
    (names != 0).then_some(Node { value: names, version: 0 })
}

/// The operations that have happened: a bit for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Happened(Vec<u64>);

impl Happened {
    fn has(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    fn with(&self, number: usize) -> Self {
        let mut more = self.clone();
        more.0[number / 64] |= 1 << (number % 64);
        more
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Judges a history of a node that does not exist at its beginning.
pub(crate) fn judge(operations: &[Operation]) -> Verdict {
    let mut operations = operations.to_vec();
    // A read without a reader says nothing.
    operations.retain(|it| !(it.is_open() && matches!(it.ask, Ask::Read { .. })));
    operations.sort_by_key(|it| it.asked);
    Search { before: predecessors(&operations), operations }.run()
}

/// The last one of the same session before each.
fn predecessors(operations: &[Operation]) -> Vec<Option<usize>> {
    let mut last = BTreeMap::new();
    let mut before = Vec::new();
    for (number, operation) in operations.iter().enumerate() {
        before.push(last.get(&operation.session).copied());
        if !operation.is_open() {
            last.insert(operation.session, number);
        }
    }
    before
}

struct Search {
    /// By the time of asking.
    operations: Vec<Operation>,
    before: Vec<Option<usize>>,
}

impl Search {
    fn run(&self) -> Verdict {
        let none = Happened(vec![0; self.operations.len().div_ceil(64)]);
        let mut best = (none.clone(), None);
        let mut seen = BTreeSet::new();
        let mut to_do = vec![(none, None)];
        while let Some((happened, node)) = to_do.pop() {
            let happened = self.without_effect(happened, node);
            if self.answered(&happened).next().is_none() {
                return Verdict::Linearizable;
            }
            if !seen.insert((happened.clone(), node)) {
                continue;
            }
            if seen.len() >= STATES_MAX {
                return Verdict::Undecided;
            }
            let next = self.next(&happened);
            // What was answered is tried first, which is what is taken last.
            for open in [true, false] {
                for &number in next.iter().rev() {
                    let Operation { ask, answer, .. } = self.operations[number];
                    let (changed, given) = apply(node, ask);
                    let fits = given == answer || answer == Answer::Open;
                    if fits && changed != node && (answer == Answer::Open) == open {
                        to_do.push((happened.with(number), changed));
                    }
                }
            }
            if happened.count() > best.0.count() {
                best = (happened, node);
            }
        }
        let (happened, node) = best;
        let stuck = self.next(&happened).into_iter().map(|number| self.operations[number]);
        Verdict::Not { explained: happened.count(), node, stuck: stuck.collect() }
    }

    /// With all that can happen now, was answered, and changes nothing: it may as well happen now, for
    /// later it can only be in the way.
    fn without_effect(&self, mut happened: Happened, node: Option<Node>) -> Happened {
        loop {
            let free = |number: &usize| {
                let Operation { ask, answer, .. } = self.operations[*number];
                apply(node, ask) == (node, answer)
            };
            let Some(number) = self.next(&happened).into_iter().find(free) else {
                return happened;
            };
            happened = happened.with(number);
        }
    }

    /// The answered operations that have not happened.
    fn answered<'a>(&'a self, happened: &'a Happened) -> impl Iterator<Item = &'a Operation> {
        let all = self.operations.iter().enumerate();
        all.filter(|(number, it)| !it.is_open() && !happened.has(*number)).map(|(_, it)| it)
    }

    /// The operations that can happen next.
    fn next(&self, happened: &Happened) -> Vec<usize> {
        let until = self.answered(happened).map(|it| it.answered).min().unwrap_or(u64::MAX);
        let can = |number: &usize| {
            let operation = &self.operations[*number];
            let in_order = self.before[*number].is_none_or(|before| happened.has(before));
            let in_time = operation.asked <= until || operation.may_be_late();
            !happened.has(*number) && in_order && in_time
        };
        (0..self.operations.len()).filter(can).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn operation(session: i64, times: (u64, u64), ask: Ask, answer: Answer) -> Operation {
        Operation { session, asked: times.0, answered: times.1, ask, answer }
    }

    fn read(session: i64, times: (u64, u64), synced: bool, node: Option<(u64, i32)>) -> Operation {
        let node = node.map(|(value, version)| Node { value, version });
        operation(session, times, Ask::Read { synced }, Answer::Saw(node))
    }

    fn is_fine(history: &[Operation]) -> bool {
        match judge(history) {
            Verdict::Linearizable => true,
            Verdict::Not { .. } => false,
            Verdict::Undecided => panic!("too long"),
        }
    }

    fn created() -> Operation {
        operation(1, (0, 1), Ask::Create(7), Answer::Done)
    }

    #[test]
    fn synced_read_is_current_and_plain_may_lag() {
        let set = operation(1, (2, 3), Ask::Set(8, None), Answer::Version(1));
        for (synced, fine) in [(true, false), (false, true)] {
            assert_eq!(is_fine(&[created(), set, read(2, (4, 5), synced, Some((7, 0)))]), fine);
        }
    }

    #[test]
    fn reads_never_see_later_writes() {
        let set = operation(1, (4, 5), Ask::Set(8, None), Answer::Version(1));
        for synced in [true, false] {
            assert!(!is_fine(&[created(), read(2, (2, 3), synced, Some((8, 1))), set]));
        }
    }

    #[test]
    fn session_reads_never_go_back() {
        let set = operation(1, (2, 3), Ask::Set(8, None), Answer::Version(1));
        let new = read(2, (4, 5), false, Some((8, 1)));
        let old = |session| read(session, (6, 7), false, Some((7, 0)));
        assert!(!is_fine(&[created(), set, new, old(2)]));
        assert!(is_fine(&[created(), set, new, old(3)]));
    }

    #[test]
    fn a_session_reads_what_it_has_written() {
        let set = operation(1, (2, 3), Ask::Set(8, None), Answer::Version(1));
        assert!(!is_fine(&[created(), set, read(1, (4, 5), false, Some((7, 0)))]));
        assert!(is_fine(&[created(), set, read(1, (4, 5), false, Some((8, 1)))]));
    }

    #[test]
    fn writes_of_one_version_conflict() {
        let set = |session, answer| operation(session, (2, 5), Ask::Set(8, Some(0)), answer);
        let refused = Answer::Refused(Refusal::BadVersion);
        assert!(is_fine(&[created(), set(1, Answer::Version(1)), set(2, refused)]));
        assert!(!is_fine(&[created(), set(1, Answer::Version(1)), set(2, Answer::Version(1))]));
        assert!(!is_fine(&[created(), set(1, refused), set(2, refused)]));
    }

    #[test]
    fn unanswered_write_applies_once_or_never() {
        let open = operation(2, (4, u64::MAX), Ask::Set(8, None), Answer::Open);
        let seen = |at, node| read(1, (at, at + 1), true, Some(node));
        assert!(is_fine(&[created(), open, seen(10, (7, 0)), seen(20, (8, 1))]));
        assert!(is_fine(&[created(), open, seen(10, (7, 0)), seen(20, (7, 0))]));
        assert!(!is_fine(&[created(), open, seen(10, (8, 1)), seen(20, (8, 2))]));
        assert!(!is_fine(&[created(), seen(2, (8, 1)), open]));
    }

    #[test]
    fn sets_keep_each_name_once() {
        let add = |session, times, answer| operation(session, times, Ask::Add(3), answer);
        let remove = operation(1, (4, 5), Ask::Remove(3), Answer::Done);
        let list = |at, names| {
            let node = set_of(names).map(|node| (node.value, node.version));
            read(2, (at, at + 1), true, node)
        };
        let twice = add(2, (2, 3), Answer::Refused(Refusal::NodeExists));
        let first = add(1, (0, 1), Answer::Done);
        assert!(is_fine(&[first, twice, remove, list(6, 0)]));
        assert!(!is_fine(&[first, add(2, (2, 3), Answer::Done)]));
        assert!(!is_fine(&[first, list(2, 0b1001)]));
        assert!(!is_fine(&[first, remove, list(6, 0b1000)]));
    }

    #[test]
    fn a_verdict_says_where_it_ends() {
        let late = read(2, (2, 3), true, None);
        let node = Some(Node { value: 7, version: 0 });
        let verdict = judge(&[created(), late]);
        assert_eq!(verdict, Verdict::Not { explained: 1, node, stuck: vec![late] });
    }

    /// Whether any order of all that was answered, and of some of the rest, explains the history: all of
    /// them are tried.
    fn any_order(history: &[Operation], order: &mut Vec<usize>) -> bool {
        let complete =
            history.iter().enumerate().all(|(number, it)| it.is_open() || order.contains(&number));
        if complete && holds(history, order) {
            return true;
        }
        for number in 0..history.len() {
            if !order.contains(&number) {
                order.push(number);
                if any_order(history, order) {
                    return true;
                }
                order.pop();
            }
        }
        false
    }

    fn holds(history: &[Operation], order: &[usize]) -> bool {
        let mut node = None;
        for (place, &number) in order.iter().enumerate() {
            let now = &history[number];
            for &later in &order[place + 1..] {
                let then = &history[later];
                let same = now.session == then.session;
                if then.answered < now.asked && (!now.may_be_late() || same)
                    || same && !then.is_open() && (then.asked, later) < (now.asked, number)
                {
                    return false;
                }
            }
            let (changed, given) = apply(node, now.ask);
            if given != now.answer && !now.is_open() {
                return false;
            }
            node = changed;
        }
        true
    }

    fn any_operation() -> impl Strategy<Value = Operation> {
        let version = prop_oneof![Just(None), (0..2).prop_map(Some)];
        let ask = prop_oneof![
            any::<bool>().prop_map(|synced| Ask::Read { synced }),
            Just(Ask::Create(1)),
            (2..4_u64, version.clone()).prop_map(|(value, version)| Ask::Set(value, version)),
            version.prop_map(Ask::Delete),
        ];
        let node = prop_oneof![
            Just(None),
            (1..4_u64, 0..3).prop_map(|(value, version)| Some(Node { value, version })),
        ];
        (ask, node, 0..10_u64, 0..6_u64, 0..3_i64, 0..8).prop_map(
            |(ask, node, asked, time, session, kind)| {
                // An answer as it might be, to whatever node there is.
                let answer = match kind {
                    0 if !matches!(ask, Ask::Read { .. }) => Answer::Open,
                    _ => apply(node, ask).1,
                };
                let answered = if answer == Answer::Open { u64::MAX } else { asked + time };
                Operation { session, asked, answered, ask, answer }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn it_agrees_with_trying_all_orders(
            history in prop::collection::vec(any_operation(), 0..6)
        ) {
            prop_assert_eq!(is_fine(&history), any_order(&history, &mut Vec::new()));
        }

        /// Histories that were made by a node, so that most are long enough to be interesting.
        #[test]
        fn generated_history_is_linearizable(
            operations in prop::collection::vec(any_operation(), 1..6),
            other in any_operation(),
            place in any::<prop::sample::Index>(),
        ) {
            let mut node = None;
            let mut history = Vec::new();
            for (number, operation) in (0..).zip(operations) {
                let (changed, answer) = apply(node, operation.ask);
                node = changed;
                // Each happens at ten times its number; its times are around that.
                let (asked, answered) = (10 * number + 5 - operation.asked.min(5), 10 * number + 6);
                let answered = answered + operation.asked * 3;
                history.push(Operation { asked, answered, answer, session: number as i64, ..operation });
            }
            prop_assert!(is_fine(&history));
            let place = place.index(history.len());
            history[place].answer = apply(other.answer.node(), history[place].ask).1;
            prop_assert_eq!(is_fine(&history), any_order(&history, &mut Vec::new()));
        }
    }

    impl Answer {
        fn node(self) -> Option<Node> {
            if let Self::Saw(node) = self { node } else { None }
        }
    }
}
