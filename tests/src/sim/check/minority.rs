//! S4: members without a leader confirm no lease, unless every answer counts. L1: no client stays with such a member.

use std::collections::BTreeMap;

use zk_client::{Lease, SessionState};
use zk_proto::SessionId;
use zk_testkit::sim::{LinkId, Seen};

use super::{Checker, ROUNDING};
use crate::sim::alone;

/// Until when a session counted on its lease as it was served by a minority, by connection.
#[derive(Default)]
pub(super) struct Minorities(BTreeMap<LinkId, (SessionId, u64)>);

impl Checker {
    /// A member without a leader takes a session in.
    pub(super) fn served_by_minority(&mut self, seen: &Seen, session: SessionId) {
        if self.options.lease == Lease::Connection {
            return;
        }
        if let Some(until) = self.counts_on(session) {
            self.minorities.0.insert(seen.link, (session, until));
        }
    }

    /// A client does something on a connection, or leaves it.
    pub(super) fn acts_on(&mut self, client: u32, link: LinkId, leaves: bool) {
        let Some(&(session, before)) = self.minorities.0.get(&link) else { return };
        if let Some(until) = self.counts_on(session) {
            let drift = self.drift(client, self.options.longest_timeout()) + ROUNDING;
            if until > before + drift {
                let text = format!(
                    "c{client} counts on {session} until {until}, not {before}, by a minority"
                );
                self.violated("S4", text);
            }
        }
        if leaves {
            self.minorities.0.remove(&link);
        }
    }

    /// Until when a session's lease lasts, if something is held in it.
    fn counts_on(&self, session: SessionId) -> Option<u64> {
        let its = self.promises.sessions.values().find(|its| its.id() == session)?;
        self.claims_of(session).then(|| self.now + its.lease_left().as_millis() as u64)
    }

    /// A node is said to be there, which is so no longer than its session lives.
    pub(crate) fn node_is_there(&mut self, client: u32, session: SessionId, lives: bool) {
        let is_proved = self.options.lease != Lease::Connection
            && self.options.drifts[client as usize] >= 0
            && !self.was_doubtful(session);
        if is_proved && !lives {
            let text = format!("c{client} has a node of {session}, and that has ended");
            self.violated("S4", text);
        }
    }

    /// A member without a quorum has taken a session in: its own, or one of the others.
    pub(super) fn reads_from_minority(&mut self, resumed: bool) {
        self.count("connections that only read");
        if resumed {
            self.count("sessions resumed by a minority");
        }
        let is_alone = self.options.alone.is_some();
        if is_alone && self.now >= self.options.duration.saturating_sub(alone::LASTS) {
            self.count("clients of a member that is alone at the end");
        }
    }

    /// Whether what a session has just been shown may come from a member without a quorum, of which nothing is required of
    /// others: it may have seen what they never agreed on.
    pub(super) fn may_read_alone(&self, session: SessionId) -> bool {
        let its = self.promises.sessions.values().find(|its| its.id() == session);
        its.is_some_and(|its| its.read_only_epoch() > 0 && its.read_only_epoch() == its.epoch())
    }

    /// Clients that can only read, with the numbers of their connections.
    pub(crate) fn read_alone(&self) -> Vec<(u32, u64)> {
        let reads_alone = SessionState::Connected { read_only: true };
        let sessions = self.promises.sessions.iter();
        let alone = sessions.filter(|(_, session)| session.state() == reads_alone);
        alone.map(|(client, session)| (*client, session.epoch())).collect()
    }

    /// All this time others have taken writes: none of these clients is where it was.
    pub(crate) fn check_moved(&mut self, before: &[(u32, u64)]) {
        let Some(alone) = self.options.alone else { return };
        for reader in self.read_alone() {
            let client = reader.0;
            if before.contains(&reader) && self.may_leave(client, alone) {
                self.violated("L1", format!("c{client} stays with a member that takes no writes"));
            }
        }
    }
}
