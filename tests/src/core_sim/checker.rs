//! What one session was asked and what it has said: everything that it must get right.

use std::collections::BTreeMap;

use zk_proto::{
    AddWatchMode, ErrorCode, SessionId, Zxid,
    jute::decode_prefix,
    request::{GetChildrenResponse, GetDataResponse, MultiResponse, MultiResult},
    session::{Answer, CloseReason, Outcome, State, WatchBy, WatchNotice},
};

use super::{
    change_log::ChangeLog,
    report::{of_outcome, of_state},
    watching::{Rearmed, Watching},
    workload::Wish,
};
use crate::{
    history::{Node, digest},
    sim::Counts,
};

#[derive(Debug)]
struct Request {
    asked: Wish,
    begun: bool,
}

/// The promises of one session.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    pub(crate) id: Option<SessionId>,
    open: BTreeMap<u64, Request>,
    watches: BTreeMap<u64, Watching>,
    /// The last request that was answered.
    answered: u64,
    /// The newest state that was seen.
    seen: Zxid,
    /// The watches that were armed again on the present connection, and at which state, until that is looked
    /// at.
    pub(crate) restored: Vec<(Zxid, Vec<Rearmed>)>,
    pub(crate) connected: bool,
    /// Whether a member without a quorum serves it: what that shows is required of no other.
    reads_alone: bool,
    /// Whether others know the session.
    is_global: bool,
    pub(crate) over: Option<CloseReason>,
    /// What is wrong, in the order of finding it.
    pub(crate) violations: Vec<String>,
    /// Writes of which nothing is known, and those that were not sent.
    not_done: Vec<u64>,
    /// What was checked and met.
    pub(crate) counts: Counts,
}

impl Checker {
    /// Something is asked for, perhaps with a watch, whose name is the request's token.
    pub(crate) fn asked(&mut self, token: u64, asked: Wish, watching: Option<Watching>) {
        self.watches.extend(watching.map(|watching| (token, watching)));
        self.open.insert(token, Request { asked, begun: false });
    }

    fn met(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// No watch is waiting for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Watches that are armed or may be, and how many of them are persistent.
    pub(crate) fn watches(&self) -> (usize, usize) {
        let persistent = self.watches.values().filter(|watch| watch.is_persistent()).count();
        (self.watches.len(), persistent)
    }

    /// The user gives one of the watches up, if there are any.
    pub(crate) fn forget(&mut self, choice: u64) -> Option<(u64, WatchBy, &'static str)> {
        let place = choice as usize % self.watches.len().max(1);
        let token = *self.watches.keys().nth(place)?;
        self.met("given up");
        self.watches.remove(&token).map(|watch| (token, watch.by, watch.path))
    }

    /// The first byte of a write was given to a connection.
    pub(crate) fn begun(&mut self, token: u64) {
        match self.open.get_mut(&token) {
            Some(request) if request.begun => self.wrong(format!("S9: {token:#x} is sent twice")),
            Some(request) => request.begun = true,
            None => self.wrong(format!("S9: {token:#x} is sent after its outcome")),
        }
    }

    /// A server has said that the request was not carried out, so that it may be sent again.
    pub(crate) fn refused(&mut self, token: u64) {
        if let Some(request) = self.open.get_mut(&token) {
            request.begun = false;
        }
    }

    pub(crate) fn concluded(&mut self, token: u64, outcome: &Outcome, log: &ChangeLog) {
        self.met(of_outcome(outcome));
        let Some(request) = self.open.remove(&token) else {
            self.wrong(format!("S8: {token:#x} has an outcome too many: {outcome:?}"));
            return;
        };
        let is_write = request.asked.is_marked();
        match outcome {
            Outcome::Answered(answer) => self.answered(token, &request, answer, log),
            Outcome::NotSent(_) => {
                if is_write && request.begun {
                    self.wrong(format!("S9: {token:#x} was sent"));
                }
                if is_write {
                    self.not_done.push(token);
                }
                self.watches.remove(&token);
            }
            Outcome::Unknown(_) => {
                if is_write && !request.begun {
                    self.wrong(format!("S9: {token:#x} was certainly not sent"));
                }
                self.watches.remove(&token);
            }
        }
    }

    fn answered(&mut self, token: u64, request: &Request, answer: &Answer, log: &ChangeLog) {
        if self.over.is_some() {
            self.wrong(format!("S4: {token:#x} is answered after the end"));
        }
        if token <= self.answered {
            self.wrong(format!("S8: {token:#x} is answered after {:#x}", self.answered));
        }
        self.answered = self.answered.max(token);
        if request.asked == Wish::Close {
            return;
        }
        if self.reads_alone {
            // Such a member counts on by itself: its numbers stand for no state that the others know.
            self.met("answers of members alone");
            let is_done = answer.code == ErrorCode::OK || log.written(token).is_some();
            if request.asked.is_marked() && is_done {
                self.wrong(format!("S9: {token:#x} is answered {answer:?} by a member alone"));
            }
            self.watches.remove(&token);
            return;
        }
        let before = self.violations.len();
        self.saw(answer.zxid, log);
        if let Some(wrong) = self.violations.get_mut(before) {
            wrong.push_str(&format!(", with the answer {answer:?} to {:?}", request.asked));
        }
        let is_ok = answer.code == ErrorCode::OK;
        let is_done = match request.asked {
            Wish::DeleteMarked(_) => is_ok && succeeded(answer),
            _ => is_ok,
        };
        let done = log.written(token);
        if request.asked.is_marked() && done != is_done.then_some(answer.zxid) {
            self.wrong(format!("S9: {token:#x} was answered {answer:?}, and done at {done:?}"));
        }
        if let Err(difference) = compare(request.asked, answer, log) {
            self.wrong(format!("S5: {difference} at {}", answer.zxid));
        }
        self.met("reads checked");
        if let (true, Wish::Follow(path, AddWatchMode::PERSISTENT)) = (is_ok, request.asked) {
            self.replaced(path, log);
        }
        let exists = answer.code != ErrorCode::NO_NODE;
        match self.watches.get_mut(&token) {
            Some(watch) if is_ok || (!exists && matches!(request.asked, Wish::Exists(..))) => {
                watch.arm(answer.zxid, exists, log);
            }
            _ => drop(self.watches.remove(&token)),
        }
    }

    /// Up to 3.8 a persistent watch takes the place of a recursive one, until that is armed again.
    fn replaced(&mut self, path: &str, log: &ChangeLog) {
        let on_it = self.watches.values_mut().filter(|watch| watch.path == path);
        on_it.filter(|_| log.is_without_zxids).for_each(Watching::replaced);
    }

    /// A handshake says what the session has seen: servers that are behind must not serve it.
    pub(crate) fn claims(&mut self, zxid: Zxid) {
        if zxid < self.seen {
            self.wrong(format!("S7: claims to have seen {zxid}, and was shown {}", self.seen));
        }
    }

    /// A state was shown: no older one than before, and its events were delivered before.
    fn saw(&mut self, zxid: Zxid, log: &ChangeLog) {
        self.look_at_restored(log);
        if zxid < self.seen {
            self.wrong(format!("S7: {zxid} was shown after {}", self.seen));
        }
        self.seen = self.seen.max(zxid);
        let wrong = self.watches.values_mut().filter_map(|watch| watch.up_to(zxid, log).err());
        let wrong: Vec<_> = wrong.collect();
        self.violations.extend(wrong);
    }

    fn look_at_restored(&mut self, log: &ChangeLog) {
        for (zxid, rearmed) in std::mem::take(&mut self.restored) {
            let watches = self.watches.values_mut().filter(|watch| watch.is_among(&rearmed));
            let wrong: Vec<_> =
                watches.filter_map(|watch| watch.restored(zxid, log).err()).collect();
            self.violations.extend(wrong);
        }
    }

    pub(crate) fn noticed(&mut self, watcher: u64, notice: &WatchNotice, log: &ChangeLog) {
        let is_live = matches!(
            notice,
            WatchNotice::Event(event) if event.zxid.is_some() || log.is_without_zxids
        );
        if is_live || matches!(notice, WatchNotice::Gap) {
            self.look_at_restored(log);
        }
        let Some(watch) = self.watches.get_mut(&watcher) else {
            self.wrong(format!("W3: {watcher:#x} is told {notice:?} and does not watch"));
            return;
        };
        let is_persistent = watch.is_persistent();
        match notice {
            WatchNotice::Event(event) => {
                let delivered = watch.deliver(event, log);
                self.violations.extend(delivered.err());
                self.met("watch events");
                if !is_persistent {
                    self.watches.remove(&watcher);
                }
            }
            WatchNotice::Gap if is_persistent => {
                watch.tell_gap(log);
                self.met("gaps");
            }
            WatchNotice::Over(_) => {
                self.watches.remove(&watcher);
            }
            other => self.wrong(format!("W3: {watcher:#x} is told {other:?}")),
        }
    }

    pub(crate) fn state(&mut self, state: &State) {
        self.met(of_state(state));
        if self.over.is_some() {
            self.wrong(format!("S4: {state:?} after the end"));
        }
        match state {
            State::Connected(negotiated) => {
                self.reads_alone = negotiated.read_only;
                let is_same = self.id.is_none_or(|id| id == negotiated.id);
                let was_global = self.is_global;
                self.is_global |= !negotiated.read_only;
                if was_global && !is_same {
                    self.wrong(format!("S7: {negotiated:?} is another session"));
                }
                self.id = Some(negotiated.id);
                self.watches.values_mut().for_each(Watching::lapse);
                self.connected = true;
            }
            State::Disconnected(_) => self.connected = false,
            State::Over(over) => {
                self.connected = false;
                self.over = Some(*over);
            }
        }
    }

    /// The session is over, and everything has been said.
    pub(crate) fn close(&mut self, log: &ChangeLog) {
        if !self.open.is_empty() {
            let open: Vec<_> = self.open.keys().collect();
            self.wrong(format!("S8: without an outcome: {open:x?}"));
        }
        if !self.watches.is_empty() {
            self.wrong(format!("W2: forgotten: {:?}", self.watches));
        }
        for token in std::mem::take(&mut self.not_done) {
            if log.written(token).is_some() {
                self.wrong(format!("S9: {token:#x} was done, and is said not to have been sent"));
            }
        }
    }

    fn wrong(&mut self, violation: String) {
        self.violations.push(violation);
    }
}

/// A failed multi is answered well, with an error for each of its parts.
fn succeeded(answer: &Answer) -> bool {
    let multi = decode_prefix::<MultiResponse>(&answer.body);
    multi.is_ok_and(|multi| multi.iter().all(|(_, it)| !matches!(it, MultiResult::Error(_))))
}

/// Says how an answer differs from the state that it claims to show.
fn compare(asked: Wish, answer: &Answer, log: &ChangeLog) -> Result<(), String> {
    let (Wish::Get(path, _) | Wish::Exists(path, _) | Wish::Children(path, _)) = asked else {
        return Ok(());
    };
    let node = log.history.at(path, answer.zxid);
    let exists = path == "/" || node.is_some();
    if (answer.code == ErrorCode::OK) != exists {
        return Err(format!("{path} is answered {:?}", answer.code));
    }
    match (asked, node) {
        (Wish::Get(..), Some(node)) => {
            let read: GetDataResponse = decode_prefix(&answer.body).map_err(|e| e.to_string())?;
            let (stat, data) = (read.stat, digest(read.data.as_deref()));
            let shown = Node { data, version: stat.version, owner: stat.ephemeral_owner };
            if (stat.mzxid, shown) != node {
                return Err(format!("{path} is {read:?} and should be {node:?}"));
            }
        }
        (Wish::Children(..), _) if exists => {
            let read: GetChildrenResponse =
                decode_prefix(&answer.body).map_err(|e| e.to_string())?;
            let mut shown: Vec<_> =
                read.children.strs().filter(|name| name != "zookeeper").collect();
            shown.sort_unstable();
            let children = log.history.children_at(path, answer.zxid);
            if !shown.iter().map(|name| &**name).eq(children.iter().copied()) {
                return Err(format!("{path} has {shown:?} and should have {children:?}"));
            }
        }
        _ => {}
    }
    Ok(())
}
