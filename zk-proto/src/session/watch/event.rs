//! Watch events from servers.

use alloc::format;

use bytes::Bytes;

use super::subscribers::Watcher;
use crate::{
    data::{EventType, Zxid},
    jute::{Decode, Reader},
    path,
    request::WatcherEventView,
    session::{
        fault::{Broken, LinkError},
        output::Output,
        state::Session,
    },
    time::Time,
};

/// Longest path of an event that is accepted although it is not UTF-8. The replacement of an invalid byte is three
/// times as long, so a frame of the longest kind would take up several times its length; and servers do not allow such
/// names.
const LEN_UNREADABLE_MAX: usize = 16 << 10;

impl<R, W: Watcher> Session<R, W> {
    /// Processes an event that a server has pushed.
    pub(in crate::session) fn event(
        &mut self,
        now: Time,
        zxid: Zxid,
        body: &Bytes,
    ) -> Result<(), Broken> {
        let event = WatcherEventView::decode(&mut Reader::new(body))?;
        let path = event.path.as_bytes().unwrap_or_default();
        if path.len() > LEN_UNREADABLE_MAX && core::str::from_utf8(path).is_err() {
            let why = format!("event about a path of {} bytes that is no text", path.len());
            return Err(Broken::Link(LinkError::Protocol(why)));
        }
        let told = (zxid.0 > 0).then_some(zxid);
        self.fire(now, event.kind, &event.path.lossy(), told);
        Ok(())
    }

    /// Delivers an event to all watchers concerned.
    fn fire(&mut self, now: Time, kind: EventType, path: &str, zxid: Option<Zxid>) {
        if zxid.is_some() {
            self.server_watches.event_had_zxid();
        }
        let outputs = &mut self.outputs;
        let mut notify = |watcher, notice| outputs.push_back(Output::Watch { watcher, notice });
        self.registry.fire(kind, path, zxid, &mut notify);
        if !self.server_watches.is_any() {
            return;
        }
        let of_child = matches!(kind, EventType::NODE_CREATED | EventType::NODE_DELETED);
        let parent = path::parent(path).filter(|_| of_child && zxid.is_none());
        if let Some(parent) = parent.filter(|parent| self.server_watches.may_be_recursive(parent)) {
            // Before 3.9 the recursive watch has replaced every other one on that path.
            self.registry.fire(EventType::NODE_CHILDREN_CHANGED, parent, None, notify);
        }
        self.remove_unwatched(now, path);
        // A watcher that leant on a recursive watch may have gone without a word: the events are what is left of it.
        for above in path::ancestors(path).skip(1) {
            if self.server_watches.at(above).recursive {
                self.remove_unwatched(now, above);
            }
        }
    }
}
