//! Watches that come and go: what events, answers and listeners that have gone mean for what the server keeps.

use alloc::sync::Arc;

use super::{
    fault::{Broken, LinkError},
    output::Output,
    phase::Phase,
    slot::{Purpose, Slot},
    state::Session,
    watch::{NodeEvent, WatchBy, WatchNotice},
    watches::{Kind, Watcher},
};
use crate::{
    code::ErrorCode,
    data::{AddWatchMode, EventType, WatcherType},
    frame::RequestFrame,
    path,
    request::{AddWatchRequest, CheckWatchesRequest, RemoveWatchesRequest},
    text::Str,
    time::Time,
};

impl<R, W: Watcher> Session<R, W> {
    /// Forgets the watches that requests of kind `by` arm on `path`, or have armed, and that `gone` picks.
    ///
    /// The server's are removed as soon as nobody waits for anything on that path, behind whatever has been
    /// submitted: what is armed by requests submitted later stays.
    pub fn unwatch(
        &mut self,
        now: Time,
        by: WatchBy,
        path: &str,
        mut gone: impl FnMut(&W) -> bool,
    ) {
        let mut any = false;
        let mut gone = |watcher: &W| {
            let is_gone = gone(watcher);
            any |= is_gone;
            is_gone
        };
        self.watches.remove(by, path, &mut gone);
        self.flight.disarm(by, path, gone);
        if any && !self.is_watched(path) {
            self.remove_all(now, path);
        }
        self.check();
    }

    /// Passes an event to everybody whom it concerns.
    pub(super) fn fire(&mut self, now: Time, event: &NodeEvent) {
        if event.zxid.is_some() {
            self.standing.event_had_zxid();
        }
        let outputs = &mut self.outputs;
        let mut notify = |watcher, notice| outputs.push_back(Output::Watch { watcher, notice });
        self.watches.fire(event, &mut notify);
        let of_child = matches!(event.kind, EventType::NODE_CREATED | EventType::NODE_DELETED);
        let parent = path::parent(&event.path).filter(|_| of_child && event.zxid.is_none());
        if let Some(parent) = parent.filter(|parent| self.standing.at(parent).both()) {
            // Before 3.9 the recursive watch has replaced the other.
            let children = NodeEvent {
                kind: EventType::NODE_CHILDREN_CHANGED,
                path: Arc::from(parent),
                zxid: None,
            };
            let notice = WatchNotice::Event(children);
            self.watches.tell(Kind::Persistent, parent, &notice, notify);
        }
        self.tidy(now, &event.path);
    }

    /// A server has answered to the wish for a persistent watch.
    pub(super) fn asked(
        &mut self,
        now: Time,
        by: WatchBy,
        path: Arc<str>,
        err: ErrorCode,
    ) -> Result<(), Broken> {
        if err.is_ok() {
            let replaces = by == WatchBy::Persistent && self.watches.modes_at(&path).recursive;
            if replaces && !self.standing.keeps_kinds_apart() {
                let mode = AddWatchMode::PERSISTENT_RECURSIVE;
                let frame = RequestFrame::of(&AddWatchRequest { path: Str::from(&*path), mode });
                self.submit_own(now, frame, Purpose::Rearm(path.clone()));
            }
            self.tidy(now, &path);
            return Ok(());
        }
        self.not_asked(&path, err)
    }

    /// A server has not heeded the wish for a persistent watch.
    pub(super) fn not_asked(&mut self, path: &Arc<str>, err: ErrorCode) -> Result<(), Broken> {
        let modes = self.watches.modes_at(path);
        self.standing.set(path, modes);
        let leant_on = self.flight.is_to_watch(path);
        if leant_on && !modes.carry(WatchBy::Data) {
            // Reads behind it have been sent as if it stood. On the next connection they ask for themselves.
            return Err(Broken::Link(LinkError::Unrestored(err)));
        }
        Ok(())
    }

    /// A recursive watch stands again; what happened below it meanwhile may have been kept back.
    pub(super) fn rearmed(&mut self, path: &str, err: ErrorCode) -> Result<(), Broken> {
        if !err.is_ok() {
            return Err(Broken::Link(LinkError::Unrestored(err)));
        }
        if !self.standing.keeps_kinds_apart() {
            let outputs = &mut self.outputs;
            self.watches.tell(Kind::Recursive, path, &WatchNotice::Gap, |watcher, notice| {
                outputs.push_back(Output::Watch { watcher, notice });
            });
        }
        Ok(())
    }

    /// A new connection has been told of all watches.
    pub(super) fn stand_as_restored(&mut self) {
        for (kind, path) in self.watches.persistent() {
            let by = match kind {
                Kind::Recursive => WatchBy::Recursive,
                _ => WatchBy::Persistent,
            };
            self.standing.asked(by, path);
        }
    }

    /// Has the server forget a path on which a persistent watch stands that nobody waits for any more.
    pub(super) fn tidy(&mut self, now: Time, path: &str) {
        if self.standing.is_any_at(path) && !self.is_watched(path) {
            self.remove_all(now, path);
        }
    }

    /// Whether anybody waits for anything on a path, or is about to.
    fn is_watched(&mut self, path: &str) -> bool {
        self.watches.is_any_at(path) || self.flight.is_to_watch(path)
    }

    fn remove_all(&mut self, now: Time, path: &str) {
        let kind = WatcherType::ANY;
        let remove = RemoveWatchesRequest(CheckWatchesRequest { path: Str::from(path), kind });
        self.submit_own(now, RequestFrame::of(&remove), Purpose::Unwatch(Arc::from(path)));
    }

    /// Only a connection has anything that would have to be told. Nothing follows the end of a session.
    fn submit_own(&mut self, now: Time, frame: RequestFrame, purpose: Purpose) {
        if matches!(self.phase, Phase::Up(_)) && !self.closing {
            self.flight.push(Slot::own(frame, purpose));
            self.send_waiting(now);
        }
    }
}
