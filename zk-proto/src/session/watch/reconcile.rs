//! Keeps the server's watches consistent with the registered ones, while subscribers are added and removed.

use alloc::{boxed::Box, sync::Arc};
use core::time::Duration;

use super::{
    intent::{WatchBy, WatchIntent},
    kind::Kind,
    notice::WatchNotice,
    subscribers::Watcher,
};
use crate::{
    code::ErrorCode,
    data::{AddWatchMode, WatcherType},
    frame::RequestFrame,
    request::{AddWatchRequest, CheckWatchesRequest, RemoveWatchesRequest},
    session::{
        fault::{Broken, LinkError},
        output::Output,
        pending_request::{PendingRequest, Purpose},
        phase::Phase,
        state::Session,
        timer::Timer,
    },
    text::Str,
    time::Time,
};

/// Pause before a server that throttled the removal of watches is asked again.
const REMOVE_AGAIN: Duration = Duration::from_millis(500);

impl<R, W: Watcher> Session<R, W> {
    /// Forgets the watches that requests of kind `by` arm on `path`, or have armed, and that `gone` picks.
    ///
    /// The session removes the server's watches as soon as the path has no watchers left, behind all requests submitted
    /// so far: watches armed by later requests stay.
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
        self.registry.unregister(by, path, &mut gone);
        self.in_flight.cancel_pending(by, path, gone);
        // It may have been watched for the sake of a request that was taken back since.
        let may_remove = any || self.server_watches.is_any_at(path);
        if may_remove && !self.registry.is_any_at(path) {
            if !self.in_flight.has_pending_at(path) {
                self.remove_all(now, path);
            } else if self.server_watches.can_remove() && matches!(self.phase, Phase::Up(_)) {
                // A request that comes to nothing leaves them there.
                self.server_watches.not_removed(Arc::from(path));
            }
        }
        self.check();
    }

    /// Registers the watcher of a request that was answered. Returns the path.
    #[inline(always)]
    pub(in crate::session) fn register(
        &mut self,
        pending: Option<Box<WatchIntent<W>>>,
        err: ErrorCode,
    ) -> Option<Arc<str>> {
        let WatchIntent { path, by, watcher } = *pending?;
        if let Some(kind) = Kind::registered(by, err) {
            self.registry.register(kind, path.clone(), watcher);
        }
        Some(path)
    }

    /// Processes the answer to an `addWatch`.
    pub(in crate::session) fn add_watch_answered(
        &mut self,
        now: Time,
        by: WatchBy,
        path: Arc<str>,
        err: ErrorCode,
    ) -> Result<(), Broken> {
        if err.is_ok() {
            self.server_watches.armed(&path);
            if by == WatchBy::Persistent {
                self.persistent_answered(now, &path);
            }
            self.remove_unwatched(now, &path);
            return Ok(());
        }
        self.add_watch_refused(now, &path, err)
    }

    /// Before 3.9, the recursive watch on the same path has been replaced.
    fn persistent_answered(&mut self, now: Time, path: &Arc<str>) {
        // Another one may follow on a recursive watch that was asked for in between.
        if !self.in_flight.is_to_be_persistent(path) {
            self.server_watches.has_replaced(path);
        }
        if self.registry.modes_at(path).recursive && !self.server_watches.keeps_kinds_apart() {
            let mode = AddWatchMode::PERSISTENT_RECURSIVE;
            let frame = RequestFrame::of(&AddWatchRequest { path: Str::from(&**path), mode });
            self.submit_own(now, frame, Purpose::Rearm(path.clone()));
        }
    }

    /// Processes the refusal of an `addWatch`.
    pub(in crate::session) fn add_watch_refused(
        &mut self,
        now: Time,
        path: &Arc<str>,
        err: ErrorCode,
    ) -> Result<(), Broken> {
        self.server_watches.set(path, self.registry.modes_at(path));
        if self.in_flight.note_sent_at(path, &mut self.server_watches) {
            // Reads have been sent as if it were armed. On the next connection they ask for watches themselves.
            return Err(Broken::Link(LinkError::Unrestored(err)));
        }
        // For the sake of this request the watch of another was left alone.
        self.remove_unwatched(now, path);
        Ok(())
    }

    /// Processes the answer that a recursive watch is armed again. Events below it may have been missed meanwhile.
    pub(in crate::session) fn rearmed(&mut self, path: &str, err: ErrorCode) -> Result<(), Broken> {
        if !err.is_ok() {
            return Err(Broken::Link(LinkError::Unrestored(err)));
        }
        if !self.server_watches.keeps_kinds_apart() {
            let outputs = &mut self.outputs;
            self.registry.tell(Kind::Recursive, path, &WatchNotice::Gap, |watcher, notice| {
                outputs.push_back(Output::Watch { watcher, notice });
            });
        }
        Ok(())
    }

    /// Makes the server forget a path with a persistent watch that has no watchers left.
    pub(in crate::session) fn remove_unwatched(&mut self, now: Time, path: &str) {
        let is_left = self.server_watches.is_any_at(path) && !self.is_watched(path);
        // A removal that waits comes behind what has armed it. Each event would add another.
        if is_left && !self.in_flight.is_to_be_unwatched(path) {
            self.remove_all(now, path);
        }
    }

    /// Processes that the server had no time to remove its watches from a path: it goes on sending their events.
    pub(in crate::session) fn removal_throttled(&mut self, now: Time, path: Arc<str>) {
        self.server_watches.not_removed(path);
        self.timers.set(Timer::Unwatch, now.after(REMOVE_AGAIN));
    }

    /// Makes the server remove what it had no time for. A path that is watched again keeps it until that watch goes.
    pub(in crate::session) fn remove_again(&mut self, now: Time) {
        for path in self.server_watches.take_left() {
            if self.is_watched(&path) {
                self.server_watches.not_removed(path);
            } else {
                self.remove_all(now, &path);
            }
        }
    }

    /// Whether a path has watchers, or is about to.
    fn is_watched(&mut self, path: &str) -> bool {
        self.registry.is_any_at(path) || self.in_flight.has_pending_at(path)
    }

    /// Makes the server remove all its watches on a path, if it knows how to.
    fn remove_all(&mut self, now: Time, path: &str) {
        if !self.server_watches.can_remove() {
            return;
        }
        let kind = WatcherType::ANY;
        let remove = RemoveWatchesRequest(CheckWatchesRequest { path: Str::from(path), kind });
        self.submit_own(now, RequestFrame::of(&remove), Purpose::Unwatch(Arc::from(path)));
    }

    /// Without a connection there is nothing to change. Nothing follows the close of a session.
    fn submit_own(&mut self, now: Time, frame: RequestFrame, purpose: Purpose) {
        if matches!(self.phase, Phase::Up(_)) && !self.closing {
            self.in_flight.push(PendingRequest::own(frame, purpose));
            self.send_waiting(now);
        }
    }
}
