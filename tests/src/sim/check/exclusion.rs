//! S1: tokens grow from grant to grant. S2: no two hold at once what only one may hold. S3: grants are in
//! the order of asking. S4: a client that loses its session knows it before the servers end it.

use std::{collections::BTreeMap, sync::Arc};

use zk_locks::{FencingToken, Lost, SessionEnd, Status};
use zk_proto::SessionId;

use super::{Checker, claim::Claim, doubt::Doubt};
use crate::{
    history::Live,
    sim::{
        recipe::{PERMITS, Recipe, Site},
        workload::Drawn,
    },
};

/// Under which all grants are counted.
pub(crate) const GRANTED: &str = "acquisitions";

/// Under which those are counted that no rule is held against.
pub(crate) const EXEMPT_GRANTS: &str = "exempt grants";

/// With which others something can be held together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Without others.
    Alone,
    /// With others who read.
    Reading,
    /// With so many others.
    Permit,
}

/// How a client has come to hold something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// By its turn.
    InTurn,
    /// By its turn, but for this node of its own, which was in front.
    Besides(String),
    /// By going on under the token of what it held before.
    GoingOn,
}

/// A client that holds something, or believes so.
pub(crate) struct Held {
    pub(crate) site: Site,
    pub(crate) share: Share,
    pub(crate) came: Came,
    pub(crate) client: u32,
    pub(crate) session: zk_client::Session,
    pub(crate) claim: Arc<dyn Claim>,
    /// With which settings, if these are known.
    pub(crate) drawn: Option<Drawn>,
}

/// The largest tokens that were granted.
#[derive(Clone, Copy, Default)]
struct Granted {
    to_anybody: Option<FencingToken>,
    alone: Option<FencingToken>,
}

#[derive(Default)]
pub(super) struct Holders {
    held: BTreeMap<u64, Held>,
    next: u64,
    /// The largest tokens of each place, by order of grants.
    granted: BTreeMap<Site, Granted>,
    /// When the servers have ended the sessions of those that still hold something.
    ended: BTreeMap<u64, u64>,
    /// When a lock's node was deleted by another client.
    meddled: BTreeMap<String, u64>,
    /// When a lock was first requested back.
    asked_back: BTreeMap<String, u64>,
    /// The same by what a fenced resource has seen.
    fenced: BTreeMap<Site, Granted>,
}

impl Held {
    /// Whether it says that it is held. One that was lost for a moment, while its session lives on, may be given away
    /// when it has been held for as long as it may.
    fn claims(&self) -> bool {
        self.claim.is_the_same() && !matches!(self.claim.status(), Status::Lost(_))
    }

    /// Whether it was held for as long as it may be, and is given to the next; or its session is being closed, and the holder
    /// knows.
    fn is_taken_back(&self) -> bool {
        let over = [Lost::HeldTooLong, Lost::SessionEnded(SessionEnd::Closed)];
        over.map(Status::Lost).contains(&self.claim.status())
    }

    pub(super) fn is_in_turn(&self) -> bool {
        self.came == Came::InTurn
    }

    fn excludes(&self, other: &Self) -> bool {
        self.share == Share::Alone || other.share == Share::Alone
    }
}

impl Granted {
    /// The largest token that has to be smaller, or for which the same will do.
    fn before(self, share: Share) -> Option<FencingToken> {
        match share {
            Share::Alone => self.to_anybody,
            Share::Reading => self.alone,
            Share::Permit => None,
        }
    }

    fn add(&mut self, share: Share, token: FencingToken) {
        self.to_anybody = self.to_anybody.max(Some(token));
        if share == Share::Alone {
            self.alone = self.alone.max(Some(token));
        }
    }
}

impl Holders {
    pub(super) fn holds(&self, site: Site) -> bool {
        self.held.values().any(|held| held.site == site)
    }
}

/// Whether a node has a place in a queue, whatever implementation has named it.
fn is_contender(name: &str, live: &Live) -> bool {
    let number = name.get(name.len().saturating_sub(10)..);
    live.owner.0 != 0 && number.is_some_and(|number| number.bytes().all(|it| it.is_ascii_digit()))
}

/// Whether it reads only.
fn is_reader(name: &str) -> bool {
    ["__READ__", "__rlock__", "-R-"].iter().any(|marker| name.contains(marker))
}

impl Checker {
    /// Something was granted. Returns the number under which it is [given back](Checker::given_back).
    pub(crate) fn granted(&mut self, held: Held, what: &'static str) -> u64 {
        self.count(GRANTED);
        self.count(what);
        self.moves_on(held.site);
        self.holds_on(held.claim.token());
        let (site, client, token) = (held.site, held.client, held.claim.token());
        let doubt = self.why_doubtful(held.session.id());
        // Some are held for a moment only, and their holder is asked for something first.
        let taken_back = held.is_taken_back();
        let innocent = doubt.is_some() || taken_back;
        let granted = self.holders.granted.entry(site).or_default();
        let last = granted.before(held.share);
        granted.add(held.share, token);
        let goes_on = held.came == Came::GoingOn && last == Some(token);
        if last.is_some_and(|last| token <= last) && !goes_on && !innocent {
            let text = format!("c{client} got {} with {token} after {last:?}", site.path());
            self.violated("S1", text);
        }
        match doubt {
            None if taken_back => self.count("grants taken back before their use"),
            None => {
                self.check_others(&held);
                self.check_queue(&held);
                self.check_delay(&held);
                self.check_passing(&held);
            }
            Some(why) => {
                self.count(EXEMPT_GRANTS);
                self.count(why.grants());
            }
        }
        let number = self.holders.next;
        self.holders.next += 1;
        self.holders.held.insert(number, held);
        number
    }

    /// Whether a session has something that it takes for held.
    pub(super) fn claims_of(&self, session: SessionId) -> bool {
        self.holders.held.values().any(|held| held.session.id() == session && held.claims())
    }

    fn check_others(&mut self, held: &Held) {
        let others = self.holders.held.values().filter(|other| other.site == held.site);
        let claiming: Vec<&Held> = others
            .filter(|other| {
                let doubtful = self.is_doubtful(other.session.id());
                !doubtful && other.claims() && self.slack(other.client) == 0
            })
            .collect();
        let most = match held.site.recipe {
            Recipe::Semaphore => PERMITS as usize,
            Recipe::SemaphoreMutex => 1,
            _ => usize::MAX,
        };
        let is_full = claiming.len() >= most;
        let excluding = claiming.into_iter().filter(|other| is_full || held.excludes(other));
        let overlaps: Vec<_> = excluding.map(|other| (other.client, other.claim.token())).collect();
        let (client, path, token) = (held.client, held.site.path(), held.claim.token());
        for (other, its) in overlaps {
            let text = format!("c{client} got {path} with {token}, c{other} holds it with {its}");
            self.violated("S2", text);
        }
    }

    /// All earlier contenders are gone, and we are there.
    fn check_queue(&mut self, held: &Held) {
        let (path, client, token) = (held.site.path(), held.client, held.claim.token());
        let own = held.claim.path();
        if let Some(queue) = held.site.queue().filter(|_| held.came != Came::GoingOn) {
            let earlier: Vec<String> = self
                .history
                .children(&queue)
                .filter(|(name, live)| live.czxid.0 < token.get() && is_contender(name, live))
                .filter(|(name, _)| held.share != Share::Reading || !is_reader(name))
                .filter(|(name, _)| match &held.came {
                    Came::Besides(own) => !own.ends_with(name),
                    _ => true,
                })
                .map(|(name, live)| format!("{name} ({}) of {}", live.czxid.0, live.owner))
                .collect();
            if !earlier.is_empty() {
                let text =
                    format!("c{client} got {path} with {own:?} ({token}) before {earlier:?}");
                self.violated("S3", text);
            }
        }
        let Some(own) = own else { return };
        let goes_on = held.came == Came::GoingOn;
        match self.history.live.get(own) {
            Some(live)
                if live.owner == held.session.id() && (goes_on || live.czxid.0 == token.get()) => {}
            found => {
                let text = format!("c{client} got {path} with {token} but there is {found:?}");
                self.violated("S3", text);
            }
        }
    }

    /// Work under a lock has stopped, at the latest when its session ended.
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

    /// A holder uses what the lock protects, and is refused if it comes too late.
    pub(crate) fn write_fenced(&mut self, site: Site, share: Share, token: FencingToken) {
        let fenced = self.holders.fenced.entry(site).or_default();
        let accepted = fenced.before(share).is_none_or(|highest| token >= highest);
        fenced.add(share, token);
        self.count(if accepted { "fenced writes" } else { "fenced writes refused" });
    }

    /// A lock's node was deleted by another client.
    pub(crate) fn meddled(&mut self, path: String) {
        self.holders.meddled.insert(path, self.now);
    }

    /// A lock was requested back.
    pub(crate) fn asked_back(&mut self, path: String) {
        self.holders.asked_back.entry(path).or_insert(self.now);
    }

    /// A client has held a lock to the end, and has not heard of anything.
    pub(crate) fn held_to_the_end(&mut self, client: u32, path: &str) {
        let asked = self.holders.asked_back.get(path).copied();
        if let Some(asked) = asked.filter(|asked| self.now > asked + self.patience(client)) {
            let text = format!("c{client} holds {path}, which was asked for at {asked}");
            self.violated("S4", text);
        }
        let Some(&deleted) = self.holders.meddled.get(path) else { return };
        // With a connection it hears of it, and without one its lease runs out.
        if self.now > deleted + self.patience(client) {
            let text = format!("c{client} holds {path}, which was deleted at {deleted}");
            self.violated("S4", text);
        }
    }

    /// How long it takes at most until a client hears of a change, or its lease runs out.
    pub(crate) fn patience(&self, client: u32) -> u64 {
        let timeout = self.options.session_timeouts[client as usize];
        2 * timeout + self.options.sync_limit + 10_000
    }

    /// The servers have ended a session: its holders must know by now.
    pub(super) fn session_ended(&mut self, session: SessionId) {
        if self.is_doubtful(session) {
            return;
        }
        // By the connection alone, what a member has answered counts also if it ends before it tells its leader.
        if self.options.lease == zk_client::Lease::Connection && self.options.members > 1 {
            let until = self.now + self.options.longest_timeout();
            return self.doubt(session, Doubt::CutOff, until);
        }
        let owner = self.promises.sessions.iter().find(|(_, its)| its.id() == session);
        if let Some((client, lease)) = owner.map(|(client, its)| (*client, its.lease_left())) {
            // What its client has asked for does not surprise it.
            let expired = !self.was_closed(session);
            // Without anything that is held, every answer counts, also of a member that has not told its leader of it; what is
            // held is judged below.
            let misled = self.options.members > 1 && !self.claims_of(session)
                || self.misled.get(&session).is_some_and(|until| self.now <= *until);
            if expired && !misled && !lease.is_zero() && self.slack(client) == 0 {
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
                late.push((held.client, held.site.path(), held.claim.token()));
            }
        }
        for (client, path, token) in late {
            let text = format!("c{client} believes in {path} ({token}) after {session} ended");
            self.violated("S4", text);
        }
        // A member that lags goes on serving it for a moment. What a client concludes from that is the known
        // limit of leases from followers.
        self.doubt(session, Doubt::Ended, u64::MAX);
        self.writes.session_ended(session);
    }
}
