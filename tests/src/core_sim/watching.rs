//! One watch, and what it must receive: every change that concerns it, once and in order.

use zk_proto::{
    EventType, Zxid,
    path::ancestors,
    session::{NodeEvent, WatchBy},
};

use super::change_log::{Change, ChangeLog};

/// A watch that was asked for.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(crate) by: WatchBy,
    pub(crate) path: &'static str,
    pub(crate) state: State,
    /// Whether the present connection has yet to arm it. Events of others on the connection reach it all
    /// the same.
    pub(crate) is_lapsed: bool,
    /// Whether it has missed changes between two connections, and is yet to be told of a gap.
    owes_gap: bool,
    /// Whether another kind has taken its place at the server.
    is_replaced: bool,
    /// Changes before this place may have been missed while it was replaced.
    forgiven: usize,
}

#[derive(Debug)]
pub(crate) enum State {
    /// The request has not been answered.
    Asked,
    /// It waits for a node that was missing.
    Missing { next: usize },
    /// It waits for a change, from this place among all changes on.
    Once { next: usize },
    /// It receives every change, from this place on; of those with the same number some already.
    Always { next: usize, delivered: Vec<usize> },
}

/// As what a server knows a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Armed {
    Data,
    /// Of a node that was missing.
    Missing,
    Children,
    Persistent,
    Recursive,
}

/// A watch that a new connection has armed again.
pub(crate) type Rearmed = (Armed, Box<str>);

impl Watching {
    pub(crate) fn new(by: WatchBy, path: &'static str) -> Self {
        Self {
            by,
            path,
            state: State::Asked,
            is_lapsed: false,
            owes_gap: false,
            is_replaced: false,
            forgiven: 0,
        }
    }

    pub(crate) fn is_persistent(&self) -> bool {
        matches!(self.by, WatchBy::Persistent | WatchBy::Recursive)
    }

    /// The answer has armed it, at the state of `zxid`.
    pub(crate) fn arm(&mut self, zxid: Zxid, exists: bool, log: &ChangeLog) {
        let next = log.after(zxid);
        self.is_lapsed = false;
        self.state = match self.by {
            WatchBy::Persistent | WatchBy::Recursive => {
                State::Always { next, delivered: Vec::new() }
            }
            WatchBy::Exists if !exists => State::Missing { next },
            _ => State::Once { next },
        };
    }

    /// Whether it is among those that were armed again.
    pub(crate) fn is_among(&self, rearmed: &[Rearmed]) -> bool {
        let own = match (self.by, &self.state) {
            (WatchBy::Exists, State::Missing { .. }) => Armed::Missing,
            (WatchBy::Data | WatchBy::Exists, _) => Armed::Data,
            (WatchBy::Children, _) => Armed::Children,
            (WatchBy::Persistent, _) => Armed::Persistent,
            (WatchBy::Recursive, _) => Armed::Recursive,
        };
        rearmed.iter().any(|(armed, path)| *armed == own && **path == *self.path)
    }

    /// Whether a change concerns it.
    fn concerns(&self, change: &Change) -> bool {
        let here = *change.path == *self.path;
        let children = change.kind == EventType::NODE_CHILDREN_CHANGED;
        match (&self.state, self.by) {
            (State::Asked, _) => false,
            (State::Missing { .. }, _) => here && change.kind == EventType::NODE_CREATED,
            (_, WatchBy::Children) => here && (children || change.kind == EventType::NODE_DELETED),
            (_, WatchBy::Data | WatchBy::Exists) => here && !children,
            (_, WatchBy::Persistent) => here,
            (_, WatchBy::Recursive) => {
                !children && ancestors(&change.path).any(|path| path == self.path)
            }
        }
    }

    /// Says what is wrong with this event. One-shot watches are over afterwards.
    pub(crate) fn deliver(&mut self, event: &NodeEvent, log: &ChangeLog) -> Result<(), String> {
        let is_it = |change: &Change| change.kind == event.kind && *change.path == *event.path;
        match (&self.state, event.zxid) {
            (State::Asked, _) => Err(format!("W3: {event:?} before the watch was armed")),
            (State::Missing { next } | State::Once { next }, Some(zxid)) => {
                let first = log.changes[*next..].iter().find(|change| self.concerns(change));
                match first {
                    Some(first) if first.zxid == zxid && is_it(first) => Ok(()),
                    first => Err(format!("W3: {event:?} where {first:?} was due")),
                }
            }
            // What was missed is reported by its outcome.
            (State::Missing { next } | State::Once { next }, None) => {
                let any = log.changes[*next..].iter().any(|change| self.concerns(change));
                any.then_some(()).ok_or_else(|| format!("W3: {event:?}, but nothing has changed"))
            }
            (State::Always { next, delivered }, None)
                if log.is_without_zxids && !self.is_lapsed =>
            {
                let is_due = |place: &usize| {
                    let change = &log.changes[*place];
                    !delivered.contains(place) && is_it(change) && self.concerns(change)
                };
                // What is forgiven may have been delivered, and need not.
                let owed = (*next).max(self.forgiven)..log.changes.len();
                let place = owed.clone().find(is_due).or_else(|| (*next..owed.start).find(is_due));
                if let Some(place) = place {
                    self.tick_off(place, log);
                } else if event.kind != EventType::NODE_CHILDREN_CHANGED {
                    // Of children it may be told twice.
                    return Err(format!("W4: {event:?} where nothing of that kind was due"));
                }
                Ok(())
            }
            // A one-shot watch on the same node has missed it; the gap is yet to be reported.
            (State::Always { next, .. }, None) => {
                let missed = |change: &Change| *change.path == *event.path && self.concerns(change);
                let any = log.changes[*next..].iter().any(missed);
                any.then_some(()).ok_or_else(|| format!("W4: {event:?}, but nothing has changed"))
            }
            (State::Always { next, delivered }, Some(zxid)) => {
                let due = self.due(*next, log.changes.len(), delivered, log);
                let Some(first) = due.map(|place| log.changes[place].zxid) else {
                    return Err(format!("W4: {event:?} where nothing was due"));
                };
                let place = (*next..log.changes.len())
                    .take_while(|place| self.is_lapsed || log.changes[*place].zxid <= first)
                    .filter(|place| !delivered.contains(place))
                    .find(|place| {
                        let change = &log.changes[*place];
                        change.zxid == zxid && is_it(change) && self.concerns(change)
                    });
                let Some(place) = place else {
                    return Err(format!("W4: {event:?} where a change of {first} was due"));
                };
                self.tick_off(place, log);
                Ok(())
            }
        }
    }

    /// The first change that a persistent watch has not received.
    fn due(&self, next: usize, end: usize, delivered: &[usize], log: &ChangeLog) -> Option<usize> {
        let mut places = next.max(self.forgiven)..end;
        places.find(|place| self.concerns(&log.changes[*place]) && !delivered.contains(place))
    }

    fn tick_off(&mut self, place: usize, log: &ChangeLog) {
        let concerned = |watching: &Self, place| watching.concerns(&log.changes[place]);
        let State::Always { next, delivered } = &self.state else { return };
        let (mut next, mut delivered) = (*next, delivered.clone());
        delivered.push(place);
        while next < log.changes.len() && (delivered.contains(&next) || !concerned(self, next)) {
            delivered.retain(|place| *place != next);
            next += 1;
        }
        self.state = State::Always { next, delivered };
    }

    /// It is told that it may have missed something.
    pub(crate) fn tell_gap(&mut self, log: &ChangeLog) {
        self.owes_gap = false;
        if std::mem::take(&mut self.is_replaced) {
            self.forgiven = log.changes.len();
        }
    }

    /// A persistent watch takes its place, until it is armed again and told of a gap.
    pub(crate) fn replaced(&mut self) {
        // One that is yet to be answered is behind it.
        self.is_replaced |= self.by == WatchBy::Recursive && !matches!(self.state, State::Asked);
    }

    /// There is another connection, which has not armed it yet.
    pub(crate) const fn lapse(&mut self) {
        (self.is_lapsed, self.is_replaced) = (true, false);
    }

    /// Everything up to the state of `zxid` must have been delivered by now.
    pub(crate) fn up_to(&mut self, zxid: Zxid, log: &ChangeLog) -> Result<(), String> {
        if self.owes_gap {
            return Err(format!("W4: {self:?} was not told of a gap before {zxid}"));
        }
        if self.is_replaced {
            return Ok(());
        }
        let end = log.after(zxid);
        let (from, delivered): (usize, &[usize]) = match &self.state {
            State::Asked => return Ok(()),
            State::Missing { next } | State::Once { next } => (*next, &[]),
            State::Always { next, delivered } => (*next, delivered),
        };
        if let Some(missed) = self.due(from, end, delivered, log) {
            let missed = &log.changes[missed];
            return Err(format!("W1, W2: {self:?} was not delivered of {missed:?} before {zxid}"));
        }
        self.skip_to(end.max(from));
        Ok(())
    }

    /// It was armed again on a new connection, at the state of `zxid`, after the events were delivered.
    pub(crate) fn restored(&mut self, zxid: Zxid, log: &ChangeLog) -> Result<(), String> {
        self.is_lapsed = false;
        match self.state {
            // Servers look at whether the node is there now, not whether it was in between.
            State::Missing { .. } if log.history.at(self.path, zxid).is_none() => {
                self.skip_to(log.after(zxid));
                Ok(())
            }
            // What happened in between is not delivered; the gap is.
            State::Always { next, ref delivered } => {
                let end = log.after(zxid);
                self.owes_gap |= self.due(next, end, delivered, log).is_some();
                self.skip_to(end);
                Ok(())
            }
            _ => self.up_to(zxid, log),
        }
    }

    fn skip_to(&mut self, place: usize) {
        match &mut self.state {
            State::Asked => {}
            State::Missing { next } | State::Once { next } => *next = place,
            State::Always { next, delivered } => {
                *next = place;
                delivered.clear();
            }
        }
    }
}
