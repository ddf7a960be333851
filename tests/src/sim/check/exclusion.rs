//! S1: tokens grow from grant to grant. S2: no two hold a lock at once. S3: grants are in the order of
//! asking. S4: whoever loses its session knows it before the servers end it.

use std::{collections::BTreeMap, sync::Arc};

use zk_locks::{Guard, Status};
use zk_proto::SessionId;

use super::Bench;

/// Somebody who holds a lock, or believes so.
pub(crate) struct Held {
    pub(crate) lock: usize,
    pub(crate) client: u32,
    pub(crate) session: zk_client::Session,
    pub(crate) guard: Arc<Guard>,
}

#[derive(Default)]
pub(super) struct Holders {
    held: BTreeMap<u64, Held>,
    next: u64,
    /// The largest token of each lock, by order of grants.
    granted: BTreeMap<usize, i64>,
    /// When the servers have ended the sessions of those who still hold something.
    ended: BTreeMap<u64, u64>,
    /// When somebody has deleted a lock's node.
    meddled: BTreeMap<String, u64>,
    /// The same by what a fenced resource has seen.
    register: BTreeMap<usize, i64>,
}

impl Held {
    /// Whether it says that it is held. What the session says goes first, so that asking changes nothing.
    fn claims(&self) -> bool {
        use zk_client::SessionState as State;
        let over = matches!(self.session.state(), State::Ended(_) | State::Closing);
        let alive = !over && !self.session.lease_left().is_zero();
        alive || !matches!(self.guard.status(), Status::Lost(_))
    }
}

impl Holders {
    pub(super) fn holds(&self, lock: usize) -> bool {
        self.held.values().any(|held| held.lock == lock)
    }
}

impl Bench {
    /// A lock was granted. Returns the number under which it is [given back](Bench::given_back).
    pub(crate) fn granted(&mut self, held: Held) -> u64 {
        self.count("acquisitions");
        let (lock, client) = (held.lock, held.client);
        let (token, session) = (held.guard.token().get(), held.session.id());
        let innocent = self.is_doubtful(session);
        let last = self.holders.granted.get(&lock).copied().unwrap_or_default();
        if token <= last && !innocent {
            self.violated("S1", format!("c{client} got lock {lock} with {token} after {last}"));
        }
        self.holders.granted.insert(lock, last.max(token));
        if !innocent {
            self.check_others(lock, client, token);
            self.check_queue(&held, token, session);
        } else {
            self.count("grants in doubtful sessions");
        }
        let number = self.holders.next;
        self.holders.next += 1;
        self.holders.held.insert(number, held);
        number
    }

    fn check_others(&mut self, lock: usize, client: u32, token: i64) {
        let mut overlaps = Vec::new();
        for other in self.holders.held.values().filter(|other| other.lock == lock) {
            let session = other.session.id();
            if !self.is_doubtful(session) && other.claims() && self.slack(other.client) == 0 {
                overlaps.push((other.client, other.guard.token().get()));
            }
        }
        for (other, its) in overlaps {
            let text =
                format!("c{client} got lock {lock} with {token}, c{other} holds it with {its}");
            self.violated("S2", text);
        }
    }

    /// Nobody who asked before is still there, and we are.
    fn check_queue(&mut self, held: &Held, token: i64, session: SessionId) {
        let (lock, client) = (held.lock, held.client);
        let path = super::super::workload::lock_path(lock);
        let earlier: Vec<String> = self
            .truth
            .children(&path)
            .filter(|(name, live)| live.czxid.0 < token && name.starts_with("_c_"))
            .map(|(name, live)| format!("{name} ({}) of {}", live.czxid.0, live.owner))
            .collect();
        if !earlier.is_empty() {
            self.violated(
                "S3",
                format!(
                    "c{client} got lock {lock} with {} ({token}) before {earlier:?}",
                    held.guard.path()
                ),
            );
        }
        match self.truth.live.get(held.guard.path()) {
            Some(live) if live.czxid.0 == token && live.owner == session => {}
            found => {
                let text = format!("c{client} got lock {lock} with {token} but there is {found:?}");
                self.violated("S3", text);
            }
        }
    }

    /// Whoever worked under a lock has stopped, at the latest when its session ended.
    pub(crate) fn work_ended(&mut self, number: u64, client: u32) {
        let Some(ended) = self.holders.ended.remove(&number) else { return };
        if self.now > ended + 10 {
            let text = format!("c{client} works under a lock after its session ended at {ended}");
            self.violated("S4", text);
        }
    }

    pub(crate) fn given_back(&mut self, number: u64) -> Option<Held> {
        self.holders.held.remove(&number)
    }

    /// A holder writes to what the lock protects, and is refused if it comes too late.
    pub(crate) fn write_fenced(&mut self, lock: usize, token: i64) -> bool {
        let highest = self.holders.register.entry(lock).or_default();
        let accepted = token >= *highest;
        *highest = token.max(*highest);
        self.count(if accepted { "fenced writes" } else { "fenced writes refused" });
        accepted
    }

    /// Somebody has deleted a lock's node.
    pub(crate) fn meddled(&mut self, path: String) {
        self.holders.meddled.insert(path, self.now);
    }

    /// Somebody has held a lock to the end, and has not heard of anything.
    pub(crate) fn held_to_the_end(&mut self, client: u32, path: &str) {
        let Some(&deleted) = self.holders.meddled.get(path) else { return };
        // With a connection it hears of it, and without one its lease runs out.
        let timeout = self.options.session_timeouts[client as usize];
        if self.now > deleted + 2 * timeout + self.options.sync_limit + 10_000 {
            let text = format!("c{client} holds {path}, which was deleted at {deleted}");
            self.violated("S4", text);
        }
    }

    /// The servers have ended a session: whoever held a lock by it must know by now.
    pub(super) fn session_ended(&mut self, session: SessionId) {
        if self.is_doubtful(session) {
            return;
        }
        let owner = self.promises.sessions.iter().find(|(_, its)| its.id() == session);
        if let Some((client, lease)) = owner.map(|(client, its)| (*client, its.lease_left())) {
            // What its client has asked for does not surprise it.
            let expired = !self.was_closed(session);
            if expired && !lease.is_zero() && self.slack(client) == 0 {
                let text = format!("c{client} counts on {session} for {lease:?}, and it has ended");
                self.violated("S4", text);
            }
        }
        let mut late = Vec::new();
        for (number, held) in &self.holders.held {
            if held.session.id() == session && self.slack(held.client) == 0 {
                self.holders.ended.insert(*number, self.now);
            }
            if held.session.id() == session && self.slack(held.client) == 0 && held.claims() {
                late.push((held.client, held.lock, held.guard.token().get()));
            }
        }
        for (client, lock, token) in late {
            let text = format!("c{client} believes in lock {lock} ({token}) after {session} ended");
            self.violated("S4", text);
        }
        // A member that lags goes on serving it for a moment. What a client concludes from that is the known
        // limit of leases from followers.
        self.doubtful.insert(session, u64::MAX);
        self.writes.session_ended(session);
    }
}
