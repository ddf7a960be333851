//! Keeps what the server watches in line with what is registered, while subscribers come and go.

use alloc::{boxed::Box, sync::Arc};

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
        phase::Phase,
        slot::{Purpose, Slot},
        state::Session,
    },
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
        self.registry.unregister(by, path, &mut gone);
        self.flight.cancel_pending(by, path, gone);
        if any && !self.is_watched(path) {
            self.remove_all(now, path);
        }
        self.check();
    }

    /// A request that was to register a subscriber has been answered. Returns where that was.
    #[inline(always)]
    pub(in crate::session) fn register(
        &mut self,
        pending: Option<Box<WatchIntent<W>>>,
        err: ErrorCode,
    ) -> Option<Arc<str>> {
        let WatchIntent { path, by, watcher } = *pending?;
        let code = if planted!(ExistWatchAsData) { ErrorCode::OK } else { err };
        if let Some(kind) = Kind::registered(by, code) {
            self.registry.register(kind, path.clone(), watcher);
        }
        Some(path)
    }

    /// A server has answered an `addWatch`.
    pub(in crate::session) fn add_watch_answered(
        &mut self,
        now: Time,
        by: WatchBy,
        path: Arc<str>,
        err: ErrorCode,
    ) -> Result<(), Broken> {
        if err.is_ok() {
            let replaces = by == WatchBy::Persistent && self.registry.modes_at(&path).recursive;
            if replaces && !self.server_watches.keeps_kinds_apart() {
                let mode = AddWatchMode::PERSISTENT_RECURSIVE;
                let frame = RequestFrame::of(&AddWatchRequest { path: Str::from(&*path), mode });
                self.submit_own(now, frame, Purpose::Rearm(path.clone()));
            }
            self.remove_unwatched(now, &path);
            return Ok(());
        }
        self.add_watch_refused(&path, err)
    }

    /// A server has not carried an `addWatch` out.
    pub(in crate::session) fn add_watch_refused(
        &mut self,
        path: &Arc<str>,
        err: ErrorCode,
    ) -> Result<(), Broken> {
        let modes = self.registry.modes_at(path);
        self.server_watches.set(path, modes);
        let leant_on = self.flight.has_pending_at(path);
        if leant_on && !modes.carry(WatchBy::Data) {
            // Reads behind it have been sent as if it stood. On the next connection they ask for themselves.
            return Err(Broken::Link(LinkError::Unrestored(err)));
        }
        Ok(())
    }

    /// A server has answered that a recursive watch stands again. What happened below it meanwhile may have been kept back.
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

    /// Has the server forget a path on which a persistent watch stands that nobody waits for any more.
    pub(in crate::session) fn remove_unwatched(&mut self, now: Time, path: &str) {
        if self.server_watches.is_any_at(path) && !self.is_watched(path) {
            self.remove_all(now, path);
        }
    }

    /// Whether anybody waits for anything on a path, or is about to.
    fn is_watched(&mut self, path: &str) -> bool {
        self.registry.is_any_at(path) || self.flight.has_pending_at(path)
    }

    /// Has the server remove whatever it watches on a path.
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
