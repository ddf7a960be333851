//! L1: healed clients come back. L2: waiters get their turn. L3: no client asks too often. L4: what
//! is promised in time comes in time.

use std::collections::{BTreeMap, BTreeSet};

use zk_client::{Session, SessionState, Zxid};

use super::{Checker, ROUNDING, doubt::Doubt};
use crate::{
    history::{Live, What, digest, guid},
    sim::{
        recipe::{QUEUES, Recipe, Site},
        workload::KEPT,
    },
};

/// How long the first in a queue may be without the lock if nothing goes wrong, in milliseconds.
const FIRST_MAX: u64 = 5_000;

/// A client that is connected where it is not to be: with the number of its connections so far, where it is and where it is
/// to go.
type Stray = (u32, u64, usize, BTreeSet<usize>);

/// Looks at a client after which it must have noticed that it has no connection.
const LOOKS: u32 = 10;

#[derive(Default)]
pub(crate) struct Promises {
    /// The session of each client that has one.
    pub(crate) sessions: BTreeMap<u32, Session>,
    /// The members to which each client was told to go, if it was not to all.
    servers: BTreeMap<u32, BTreeSet<usize>>,
    /// How long the requests of each client's session may take, if that is limited.
    limits: BTreeMap<u32, u64>,
    /// Clients that have finished what they had begun.
    pub(crate) drained: BTreeSet<u32>,
    /// Clients that have no session that is known here.
    pub(crate) keepers: BTreeSet<u32>,
    /// The data of a node that comes back, and since when it is to have it.
    kept: Option<(u64, u64)>,
    /// The waiters, where they wait, and since when.
    waiting: BTreeMap<u64, (Site, u32, u64)>,
    /// When each place was granted last.
    granted: BTreeMap<Site, u64>,
    next: u64,
    /// Which node is first in each lock's queue, and since when that lock has no holder.
    first: BTreeMap<usize, (u64, Option<Zxid>)>,
    /// How often in a row each client had no connection and said otherwise.
    believers: BTreeMap<u32, u32>,
}

impl Checker {
    /// A client has a session, and may use it on all members.
    pub(crate) fn has_session(&mut self, client: u32, session: Session) {
        self.promises.sessions.insert(client, session);
        self.promises.servers.remove(&client);
    }

    /// The requests of a client's next session may take so long, or as long as they want.
    pub(crate) fn has_limit(&mut self, client: u32, limit: Option<u64>) {
        match limit {
            Some(limit) => self.promises.limits.insert(client, limit),
            None => self.promises.limits.remove(&client),
        };
    }

    /// How long a request of a client's session may take.
    pub(crate) fn limit_of(&self, client: u32) -> Option<u64> {
        self.promises.limits.get(&client).copied()
    }

    /// A client is told to use its session on these members only.
    pub(crate) fn goes_to(&mut self, client: u32, members: BTreeSet<usize>) {
        self.promises.servers.insert(client, members);
    }

    pub(crate) fn begins_waiting(&mut self, site: Site, client: u32) -> u64 {
        let number = self.promises.next;
        self.promises.next += 1;
        self.promises.waiting.insert(number, (site, client, self.now));
        number
    }

    pub(crate) fn ends_waiting(&mut self, number: u64, granted: bool) {
        let waited = self.promises.waiting.remove(&number);
        if let (Some((site, ..)), true) = (waited, granted) {
            self.promises.granted.insert(site, self.now);
        }
    }

    /// A grant happened here, maybe to a client that waits elsewhere as well.
    pub(super) fn moves_on(&mut self, site: Site) {
        self.promises.granted.insert(site, self.now);
    }

    pub(crate) fn waiters(&self) -> usize {
        self.promises.waiting.len()
    }

    /// Something with a time limit has come to its end; while the client stood still it could not.
    pub(crate) fn took(&mut self, what: &str, client: u32, took: u64, stalled: u64, allowed: u64) {
        // A fast clock makes a client hurry, a slow one dawdle.
        let drift =
            allowed * u64::from(self.options.drifts[client as usize].unsigned_abs()) / 1_000_000;
        if took > allowed + drift + stalled + ROUNDING {
            let text = format!("{what} of c{client} took {took} ms instead of {allowed} ms");
            self.violated("L4", text);
        }
    }

    /// Whether a client may use its session on other members than this.
    pub(super) fn may_leave(&self, client: u32, member: usize) -> bool {
        let allowed = self.promises.servers.get(&client);
        allowed.is_none_or(|allowed| allowed.iter().any(|other| *other != member))
    }

    /// Whether something that was due then has taken too long, with all troubles over.
    pub(crate) fn is_overdue(&self, client: u32, since: u64) -> bool {
        self.now > since.max(self.options.well_from()) + self.patience(client)
    }

    /// What clients that do not stand still say of their sessions; `true` for those that have no
    /// connection, or are about to have one.
    pub(crate) fn check_states(&mut self, clients: &[(u32, bool)]) {
        let mut believers = BTreeMap::new();
        for &(client, offline) in clients {
            let session = self.promises.sessions.get(&client).cloned();
            let Some(session) = session else { continue };
            self.check_lease(client, &session);
            self.check_habits(client, &session);
            let (id, state) = (session.id(), session.state());
            match state {
                SessionState::Connected { .. } if offline => {
                    let before = self.promises.believers.get(&client).copied().unwrap_or_default();
                    believers.insert(client, before + 1);
                    if before + 1 == LOOKS {
                        let text = format!("c{client} is told that it is connected, and is not");
                        self.violated("S4", text);
                    }
                }
                SessionState::Disconnected => self.check_given_up(client, id),
                _ => {}
            }
        }
        self.promises.believers = believers;
    }

    /// Clients that want a connection now and have none. One whose session is over gets another when its work under
    /// the old one has come to an end. With the number of their connections so far: on old servers each operation that
    /// these do not know costs one.
    pub(crate) fn unconnected(&self) -> Vec<(u32, Option<u64>)> {
        let state = |client: &u32| self.promises.sessions.get(client).map(Session::state);
        let epoch = |client: &u32| self.promises.sessions.get(client).map(Session::epoch);
        let content = |client: &u32| {
            self.promises.keepers.contains(client)
                || matches!(
                    state(client),
                    Some(SessionState::Connected { .. } | SessionState::Ended(_))
                )
        };
        let clients = (0..self.options.clients).filter(|client| !content(client));
        clients.map(|client| (client, epoch(&client))).collect()
    }

    /// Everything has been well for long enough: all are back. One that was not there at two looks was not
    /// just between one session, or connection, and the next.
    pub(crate) fn check_connected(&mut self, missed_before: &[(u32, Option<u64>)]) {
        for (client, epoch) in self.unconnected() {
            if missed_before.contains(&(client, epoch)) {
                let state = self.promises.sessions.get(&client).map(Session::state);
                self.violated("L1", format!("c{client} is not back: {state:?}"));
            }
        }
    }

    /// Clients that are connected to a member to which they are not to go, by all connections that there are.
    pub(crate) fn strays(&self, connections: &[(u32, usize)]) -> Vec<Stray> {
        let strays = connections.iter().filter_map(|&(client, member)| {
            let allowed = self.promises.servers.get(&client)?;
            let session = self.promises.sessions.get(&client)?;
            let is_one = !allowed.contains(&member)
                && matches!(session.state(), SessionState::Connected { .. });
            is_one.then(|| (client, session.epoch(), member, allowed.clone()))
        });
        strays.collect()
    }

    /// Everything has been well for long enough: who was where it is not to be has gone.
    pub(crate) fn check_strays(&mut self, connections: &[(u32, usize)], before: &[Stray]) {
        for stray in self.strays(connections) {
            if before.contains(&stray) {
                let (client, _, member, allowed) = stray;
                let text =
                    format!("c{client} stays with member {member}, and is to go to {allowed:?}");
                self.violated("L1", text);
            }
        }
    }

    /// Without faults, the first in a queue has the lock soon after.
    pub(crate) fn check_first(&mut self) {
        if !self.options.calm {
            return;
        }
        for lock in 0..self.options.locks {
            let site = Site::new(Recipe::Lock, lock);
            let path = site.path();
            // Some nodes there belong to no contender.
            let queue = self.history.children(&path).filter(|(name, _)| guid(name).is_some());
            let first = queue.map(|(_, live)| live.czxid).min();
            let (since, known) = self.promises.first.entry(lock).or_insert((self.now, None));
            if *known != first || first.is_none() || self.holders.holds(site) {
                (*since, *known) = (self.now, first);
            } else if self.now > *since + FIRST_MAX {
                let text = format!("nobody holds lock {lock} since {since} ms");
                *since = self.now;
                self.violated("L2", text);
            }
        }
    }

    /// And everything that is waited for has moved on.
    pub(crate) fn check_recovered(&mut self, healed: u64) {
        let moved = |site: &Site| self.promises.granted.get(site).is_some_and(|at| *at > healed);
        let is_stuck = |(site, _, since): &&(Site, u32, u64)| *since < healed && !moved(site);
        let stuck: Vec<_> = self.promises.waiting.values().filter(is_stuck).copied().collect();
        // The first in one queue of several may wait for another, as long as that moves.
        let queues = (0..QUEUES).map(|number| Site::new(Recipe::MultiLock, number));
        let others_move = queues.clone().filter(moved).count() > 0;
        let several_are_damaged = queues.filter(|site| self.is_behind_damage(site)).count() > 0;
        for (site, client, since) in stuck {
            let path = site.path();
            let is_of_several = site.recipe == Recipe::MultiLock;
            if self.is_behind_damage(&site) || is_of_several && several_are_damaged {
                continue;
            }
            let first = self.first_in(&path);
            let of = |session| {
                let mut sessions = self.promises.sessions.iter();
                sessions.find(|(_, its)| its.id() == session).map(|(client, _)| *client)
            };
            let first = first.map(|(name, live)| (name, live.czxid, live.owner, of(live.owner)));
            let waits_for_another = first.is_some_and(|(.., owner)| {
                let waits = |(site, client, _): &(Site, u32, u64)| {
                    site.recipe == Recipe::MultiLock && Some(*client) == owner
                };
                self.promises.waiting.values().any(waits)
            });
            if is_of_several && others_move && waits_for_another {
                continue;
            }
            let text = format!(
                "c{client} has waited for {path} since {since} ms, nobody got it; first is {first:?}"
            );
            self.violated("L2", text);
        }
    }

    /// Whether the first one's connection goes on with a frame that is not one: its client does not hear what it is granted.
    fn is_behind_damage(&self, site: &Site) -> bool {
        let first = self.first_in(&site.path());
        first.is_some_and(|(_, live)| self.why_doubtful(live.owner) == Some(Doubt::Damaged))
    }

    fn first_in(&self, queue: &str) -> Option<(&str, &Live)> {
        self.history.children(queue).min_by_key(|(_, live)| live.czxid)
    }

    /// From now on the node that comes back is to have this data.
    pub(crate) fn keeps(&mut self, data: &[u8]) {
        self.promises.kept = Some((digest(Some(data)), self.now));
    }

    /// And the node that comes back is back, as it is to be.
    pub(crate) fn check_kept(&mut self) {
        let Some((wanted, since)) = self.promises.kept else { return };
        let path = KEPT.path();
        let last = self.history.last_of(&path);
        let is_so = last.is_some_and(|last| match last.what {
            What::Created(node) | What::Written(node) => node.data == wanted,
            _ => false,
        });
        let changed = last.map_or(0, |last| self.crowds.when(last.zxid));
        // The client that has deleted it just now has not been answered yet.
        if !is_so && self.now > since.max(changed) + 10_000 {
            let text = format!("{path} is not back as it is to be since {since}: {last:?}");
            self.violated("L1", text);
        }
    }

    /// No release wakes a herd: without faults each grant costs its waiter a handful of requests.
    pub(crate) fn check_thrift(&mut self) {
        let count = |name| self.counts.get(name).copied().unwrap_or_default();
        let attempts = count("attempts");
        let others = count("requests of other workloads");
        let requests = count("requests").saturating_sub(others);
        let allowed = 8 * attempts + 100 * u64::from(self.options.clients);
        if self.options.calm && requests > allowed {
            self.violated("L3", format!("{requests} requests for {attempts} attempts"));
        }
        self.check_herd();
    }
}
