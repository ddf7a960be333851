//! W1: an event comes before what it is about can be read. W2: every change under a watch is delivered.
//! W3: nothing else is. W5: all changes of a transaction are delivered.

use zk_client::{NodeEvent, SessionEnd, Stat, Watch};
use zk_proto::{EventType, Zxid};

use super::Bench;

/// A watch, and what was known when it was armed.
#[derive(Debug)]
pub(crate) struct Armed {
    pub(crate) path: String,
    pub(crate) known: Zxid,
    pub(crate) watch: Watch,
    pub(crate) children: bool,
    /// Whether the server was cut off from the quorum: what it has shown is not held against others, so
    /// that an event can be about what was known.
    pub(crate) read_only: bool,
}

impl Bench {
    /// A client has read a state; a watch that was armed before and is older must have fired. Returns
    /// the watch if it is still armed.
    pub(crate) fn watched(&mut self, client: u32, mut armed: Armed, stat: &Stat) -> Option<Armed> {
        let now_known = if armed.children { stat.pzxid } else { stat.mzxid };
        match armed.watch.try_event() {
            Some(event) => {
                self.fired(client, &armed, &event);
                None
            }
            None if now_known > armed.known => {
                let Armed { path, known, .. } = &armed;
                let text = format!(
                    "c{client} sees {path} as of {now_known} without an event after {known}"
                );
                self.shown_wrong(client, "W1", text);
                None
            }
            None => Some(armed),
        }
    }

    /// A watch has fired: was there a reason?
    pub(crate) fn fired(
        &mut self,
        client: u32,
        armed: &Armed,
        event: &Result<NodeEvent, SessionEnd>,
    ) {
        let Ok(event) = event else { return self.count("watches ended with their session") };
        self.count("events checked");
        let changes = self.history.changes_after(&armed.path, armed.known);
        let right_kind = match event.kind {
            EventType::NODE_CHILDREN_CHANGED => armed.children,
            EventType::NODE_DELETED => true,
            _ => !armed.children,
        };
        if (changes.is_empty() && !armed.read_only) || !right_kind || event.path != armed.path {
            let Armed { path, known, .. } = armed;
            let text = format!("c{client} hears {event:?} of {path}, unchanged since {known}");
            self.shown_wrong(client, "W3", text);
        }
    }

    /// The session is over: the watch must say so, or have fired.
    pub(crate) fn session_over(&mut self, client: u32, mut armed: Armed) {
        match armed.watch.try_event() {
            Some(event) => self.fired(client, &armed, &event),
            None => {
                let text = format!("c{client} waits for {} in a session that is over", armed.path);
                self.violated("W2", text);
            }
        }
    }
}
