//! Which contenders are inside, and what a lock should have prevented.
//!
//! What counts as a violation, precisely. A contender is *inside* from the resource's answer to its `enter`
//! until its `leave`, or until another one is let in instead of it as its node is gone. Neither the end of its
//! process nor that of its connection takes it out.
//!
//! * **Overlap**: a contender enters while one that it excludes is inside *and still has its node* on the
//!   servers, as they say after a write. A holder without a node has lost its lock, whether it knows or not:
//!   that is no violation. It is superseded, and all that it says later is refused by its token.
//! * **Too many**: a contender enters while as many as there are permits are inside and still have their nodes.
//! * **Out of order**: a contender enters with a smaller token than one that excludes it had before, and still
//!   has its node: so that it was in front when the other one was granted. Without a node it is late, and
//!   only refused.
//! * **Jumped in**: a contender goes on reading, with a node that exists, where it has been superseded as a writer.
//!   Curator is known to do that (docs/interop.md says when): it is counted, and not held against the run.

use std::collections::BTreeSet;

use super::{
    claim::{Claim, Mode, Party},
    counts::{Counts, Violation, Who},
    request::Answer,
};

/// The resource's state.
#[derive(Debug)]
pub(super) struct Checker {
    permits: usize,
    inside: Vec<Claim>,
    /// Closed connections; their contenders may still be inside.
    gone: BTreeSet<u64>,
    /// The largest token of all, and of all that were alone.
    highest: i64,
    highest_alone: i64,
    last: Option<Who>,
    counts: Counts,
}

impl Checker {
    /// A checker of a lock with so many permits for contenders for a lease.
    #[must_use]
    pub(super) fn new(permits: usize) -> Self {
        Self {
            permits,
            inside: Vec::new(),
            gone: BTreeSet::new(),
            highest: 0,
            highest_alone: 0,
            last: None,
            counts: Counts::default(),
        }
    }

    /// What has happened so far.
    #[must_use]
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Those inside whose processes are still connected.
    pub(super) fn present(&self) -> impl Iterator<Item = &Claim> {
        self.inside.iter().filter(|claim| !self.gone.contains(&claim.connection))
    }

    /// Counts from 0 again, but for violations.
    pub(super) fn begin_counting(&mut self) {
        let Counts { violations, told, .. } = std::mem::take(&mut self.counts);
        self.counts = Counts { violations, told, ..Counts::default() };
    }

    /// Which nodes the servers have to be asked for before a contender can [enter](Self::enter).
    #[must_use]
    pub(super) fn nodes_in_question(&self, newcomer: &Claim) -> Vec<String> {
        let stale = self.is_stale(newcomer).then_some(newcomer);
        let opposed = self.opposed(newcomer);
        stale.into_iter().chain(opposed).map(|claim| claim.node.clone()).collect()
    }

    /// A contender begins to use the resource, while the nodes `there` still exist of those in question.
    pub(super) fn enter(&mut self, newcomer: Claim, there: &BTreeSet<String>) -> Answer {
        // A contender that comes again is not there any more from the last time.
        self.inside.retain(|inside| inside.connection != newcomer.connection);
        if self.is_stale(&newcomer) {
            *self.counts.refused.entry(newcomer.party).or_default() += 1;
            if there.contains(&newcomer.node) {
                let highest = self.highest;
                self.counts.violated(Violation::OutOfOrder { newcomer, highest });
            }
            return Answer::Refused;
        }
        let opposed: Vec<Claim> = self.opposed(&newcomer).cloned().collect();
        let (alive, lost): (Vec<_>, Vec<_>) =
            opposed.into_iter().partition(|claim| there.contains(&claim.node));
        for claim in lost {
            *self.counts.superseded.entry(claim.party).or_default() += 1;
            self.inside.retain(|inside| *inside != claim);
        }
        if newcomer.mode == Mode::Lease {
            if alive.len() >= self.permits {
                let inside = alive.len();
                self.counts.violated(Violation::TooMany { newcomer: newcomer.clone(), inside });
            }
        } else {
            for inside in alive {
                self.counts.violated(Violation::Overlap { newcomer: newcomer.clone(), inside });
            }
        }
        self.count(&newcomer);
        self.inside.push(newcomer);
        Answer::Ok
    }

    /// A contender stops using the resource.
    pub(super) fn leave(&mut self, connection: u64, party: Party) -> Answer {
        let before = self.inside.len();
        self.inside.retain(|inside| inside.connection != connection);
        if self.inside.len() < before {
            return Answer::Ok;
        }
        *self.counts.refused.entry(party).or_default() += 1;
        Answer::Refused
    }

    /// A writer goes on as a reader, with a node that is still to come.
    pub(super) fn downgrade(&mut self, connection: u64, party: Party) -> Answer {
        let Some(claim) = self.inside.iter_mut().find(|claim| claim.connection == connection)
        else {
            *self.counts.refused.entry(party).or_default() += 1;
            return Answer::Refused;
        };
        claim.mode = Mode::Downgraded;
        Answer::Ok
    }

    /// The node of a writer that goes on as a reader has come, and is `there` or not.
    pub(super) fn moved(
        &mut self,
        connection: u64,
        party: Party,
        node: &str,
        there: bool,
    ) -> Answer {
        if let Some(claim) = self.inside.iter_mut().find(|claim| claim.connection == connection) {
            node.clone_into(&mut claim.node);
            let who = (party, Mode::Downgraded);
            *self.counts.entered.entry(who).or_default() += 1;
            self.last = Some(who);
            return Answer::Ok;
        }
        *self.counts.refused.entry(party).or_default() += 1;
        if there && party == Party::Curator {
            self.counts.jumped_in += 1;
        } else if there {
            self.counts.violated(Violation::JumpedIn { party, node: node.to_owned() });
        }
        Answer::Refused
    }

    /// Something that a contender wants to be counted.
    pub(super) fn note(&mut self, party: Party, word: String) {
        *self.counts.notes.entry((party, word)).or_default() += 1;
    }

    /// Nothing more will come from there. A contender that was inside remains so.
    pub(super) fn disconnected(&mut self, connection: u64) {
        if self.inside.iter().any(|claim| claim.connection == connection) {
            self.gone.insert(connection);
        }
    }

    /// Whether a contender has been there since that would not have been let in in front of this one.
    fn is_stale(&self, newcomer: &Claim) -> bool {
        match newcomer.mode {
            Mode::Alone => newcomer.token <= self.highest,
            Mode::Read | Mode::Downgraded => newcomer.token <= self.highest_alone,
            Mode::Lease => false,
        }
    }

    /// Those inside who leave no room for the newcomer, if they are what they say.
    fn opposed(&self, newcomer: &Claim) -> impl Iterator<Item = &Claim> {
        let full = self.inside.len() >= self.permits;
        let (connection, mode) = (newcomer.connection, newcomer.mode);
        self.inside.iter().filter(move |inside| {
            inside.connection != connection
                && if mode == Mode::Lease { full } else { mode.excludes(inside.mode) }
        })
    }

    fn count(&mut self, newcomer: &Claim) {
        let who = (newcomer.party, newcomer.mode);
        *self.counts.entered.entry(who).or_default() += 1;
        let foreign = self.present().filter(|claim| claim.party != newcomer.party);
        let beside: BTreeSet<Who> = foreign.map(|claim| (claim.party, claim.mode)).collect();
        for other in beside {
            *self.counts.shared.entry((other, who)).or_default() += 1;
        }
        if let Some(last) = self.last.replace(who).filter(|last| last.1.excludes(who.1)) {
            *self.counts.handed_over.entry((last, who)).or_default() += 1;
        }
        self.highest = self.highest.max(newcomer.token);
        if newcomer.mode == Mode::Alone {
            self.highest_alone = self.highest_alone.max(newcomer.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(connection: u64, mode: Mode, token: i64) -> Claim {
        let node = format!("/lock/{connection}-{token}");
        Claim { connection, party: Party::Ours, mode, token, node }
    }

    /// All nodes that are asked for exist.
    fn enter(checker: &mut Checker, claim: Claim) -> Answer {
        let there = checker.nodes_in_question(&claim).into_iter().collect();
        checker.enter(claim, &there)
    }

    /// None of them does.
    fn enter_alone(checker: &mut Checker, claim: Claim) -> Answer {
        checker.enter(claim, &BTreeSet::new())
    }

    #[test]
    fn one_after_the_other_is_clean() {
        let mut checker = Checker::new(1);
        for token in 1..4 {
            assert_eq!(enter(&mut checker, claim(1, Mode::Alone, token)), Answer::Ok);
            assert_eq!(checker.leave(1, Party::Ours), Answer::Ok);
        }
        assert_eq!((checker.counts().violations, checker.counts().entered_in_all()), (0, 3));
    }

    #[test]
    fn two_whose_nodes_are_both_there_overlap() {
        for (first, second) in
            [(Mode::Alone, Mode::Alone), (Mode::Read, Mode::Alone), (Mode::Alone, Mode::Read)]
        {
            let mut checker = Checker::new(1);
            enter(&mut checker, claim(1, first, 5));
            enter(&mut checker, claim(2, second, 6));
            assert!(matches!(checker.counts().told[..], [Violation::Overlap { .. }]), "{first:?}");
        }
    }

    /// The lock is not free before its node is gone, whatever became of the process.
    #[test]
    fn dead_process_excludes_until_node_is_gone() {
        let mut checker = Checker::new(1);
        enter(&mut checker, claim(1, Mode::Alone, 5));
        checker.disconnected(1);
        enter(&mut checker, claim(2, Mode::Alone, 6));
        assert_eq!(checker.counts().violations, 1);
    }

    #[test]
    fn holder_without_node_is_superseded() {
        let mut checker = Checker::new(1);
        enter(&mut checker, claim(1, Mode::Alone, 5));
        assert_eq!(enter_alone(&mut checker, claim(2, Mode::Alone, 6)), Answer::Ok);
        assert_eq!(checker.leave(1, Party::Ours), Answer::Refused);
        assert_eq!(enter_alone(&mut checker, claim(1, Mode::Alone, 4)), Answer::Refused);
        assert_eq!(checker.leave(2, Party::Ours), Answer::Ok);
        let counts = checker.counts();
        assert_eq!((counts.violations, counts.superseded[&Party::Ours]), (0, 1));
        assert_eq!(counts.refused[&Party::Ours], 2);
    }

    #[test]
    fn smaller_token_with_live_node_is_reported() {
        let mut checker = Checker::new(1);
        enter(&mut checker, claim(1, Mode::Alone, 5));
        checker.leave(1, Party::Ours);
        assert_eq!(enter(&mut checker, claim(2, Mode::Alone, 4)), Answer::Refused);
        assert!(matches!(checker.counts().told[..], [Violation::OutOfOrder { .. }]));
    }

    #[test]
    fn readers_and_permits_share_within_limits() {
        let mut checker = Checker::new(2);
        for (connection, token) in [(1, 6), (2, 5), (3, 7)] {
            assert_eq!(enter(&mut checker, claim(connection, Mode::Read, token)), Answer::Ok);
        }
        assert_eq!(checker.counts().violations, 0);
        let mut checker = Checker::new(2);
        for connection in 1..=2 {
            enter(&mut checker, claim(connection, Mode::Lease, 9));
        }
        assert_eq!(checker.counts().violations, 0);
        enter(&mut checker, claim(3, Mode::Lease, 9));
        assert!(matches!(checker.counts().told[..], [Violation::TooMany { inside: 2, .. }]));
    }

    #[test]
    fn a_lease_whose_node_is_gone_leaves_room() {
        let mut checker = Checker::new(1);
        enter(&mut checker, claim(1, Mode::Lease, 5));
        enter_alone(&mut checker, claim(2, Mode::Lease, 6));
        assert_eq!(checker.counts().violations, 0);
    }

    #[test]
    fn downgraded_writer_admits_readers_only() {
        let mut checker = Checker::new(1);
        enter(&mut checker, claim(1, Mode::Alone, 5));
        assert_eq!(checker.downgrade(1, Party::Ours), Answer::Ok);
        assert_eq!(checker.moved(1, Party::Ours, "/lock/reading", true), Answer::Ok);
        enter(&mut checker, claim(2, Mode::Read, 7));
        checker.leave(2, Party::Ours);
        assert_eq!(checker.counts().violations, 0);
        enter(&mut checker, claim(3, Mode::Alone, 8));
        assert_eq!(checker.counts().violations, 1);
    }

    #[test]
    fn writer_admitted_in_downgrade_is_reported() {
        let mut checker = Checker::new(1);
        enter(&mut checker, claim(1, Mode::Alone, 5));
        checker.downgrade(1, Party::Ours);
        enter_alone(&mut checker, claim(2, Mode::Alone, 6));
        checker.leave(2, Party::Ours);
        assert_eq!(checker.moved(1, Party::Ours, "/lock/reading", true), Answer::Refused);
        assert!(matches!(checker.counts().told[..], [Violation::JumpedIn { .. }]));
        assert_eq!(checker.moved(1, Party::Curator, "/lock/reading", true), Answer::Refused);
        assert_eq!((checker.counts().violations, checker.counts().jumped_in), (1, 1));
    }
}
