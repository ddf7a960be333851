//! X1: one node for each protected create at most. X2, X3: no node, session or watch is left behind. R1:
//! tasks and connections neither.

use zk_proto::SessionId;
use zk_testkit::{server::Member, sim::State};

use super::Checker;
use crate::{
    history::{Live, guid},
    sim::workload::{BY_HAND, ERRANDS},
};

impl Checker {
    /// No two nodes of one protected create live at once.
    pub(crate) fn check_twins(&mut self) {
        let mut guids: Vec<&str> = self.history.live.keys().filter_map(|path| guid(path)).collect();
        guids.sort_unstable();
        let twins: Vec<String> = guids
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0].to_owned())
            .collect();
        if !twins.is_empty() {
            self.violated("X1", format!("several nodes of {twins:?}"));
        }
    }

    /// A client has left its session to the next one, and no recipe's node with it.
    pub(crate) fn check_left(&mut self, client: u32, session: SessionId) {
        let nodes = self.history.live.iter().filter(|(_, live)| live.owner == session);
        let left: Vec<_> =
            nodes.map(|(path, _)| path).filter(|path| guid(path).is_some()).collect();
        if !left.is_empty() {
            let text = format!("c{client} leaves {session} with {left:?}");
            self.shown_wrong(client, "X3", text);
        }
    }

    /// All have released, and sessions still live: whatever was to be deleted is.
    pub(crate) fn check_swept(&mut self) {
        // Those go with their sessions.
        let left = self.nodes_left(|path| !path.starts_with(ERRANDS) && !path.contains(BY_HAND));
        if !left.is_empty() {
            self.violated("X3", format!("not deleted in time: {left:?}"));
        }
    }

    fn nodes_left(&self, counts: impl Fn(&str) -> bool) -> Vec<String> {
        let ephemeral = |live: &Live| live.owner.0 != 0;
        let ours =
            self.history.live.iter().filter(|(path, live)| guid(path).is_some() || ephemeral(live));
        let ours = ours.filter(|(path, _)| counts(path));
        ours.map(|(path, live)| format!("{path} of {}", live.owner)).take(5).collect()
    }

    /// All sessions are closed or expired: nothing is left of them.
    pub(crate) fn check_nothing_left(&mut self, state: &State, tasks: usize) {
        let left = self.nodes_left(|_| true);
        if !left.is_empty() {
            self.violated("X2", format!("nodes without anybody: {left:?}"));
        }
        let sessions: Vec<_> = state.ensemble.sessions().map(|(session, _)| session).collect();
        if !sessions.is_empty() {
            self.violated("X2", format!("sessions without anybody: {sessions:?}"));
        }
        let watches = state.ensemble.watch_count();
        if watches > 0 {
            self.violated("X2", format!("{watches} watches without anybody"));
        }
        let members = 0..self.options.members;
        let whose: Vec<_> =
            members.flat_map(|member| state.ensemble.connections(Member(member))).collect();
        let conns = whose.len();
        let links = state.net.open_links(None).count();
        if conns + links > 0 {
            let text = format!("{conns} connections at servers, {links} at clients; {whose:?}");
            self.violated("R1", text);
        }
        if tasks > 0 {
            self.violated("R1", format!("{tasks} tasks of clients have not ended"));
        }
    }
}
