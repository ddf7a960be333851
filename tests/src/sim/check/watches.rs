//! W1: an event comes before what it is about can be read. W2: every change under a watch is delivered.
//! W3: nothing else is. W5: all changes of a transaction are delivered.

use zk_client::{NodeEvent, SessionEnd, Stat, Watch};
use zk_proto::{EventType, Zxid};

use super::Checker;

/// What a watch is armed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A node that is missing.
    Missing,
    /// A node's data.
    Data,
    /// A node's children.
    Children,
}

/// A watch, and what was known when it was armed.
#[derive(Debug)]
pub(crate) struct Armed {
    /// As its client knows it.
    pub(crate) path: String,
    /// What stands in front of that for the servers.
    pub(crate) root: &'static str,
    pub(crate) kind: Kind,
    pub(crate) known: Zxid,
    pub(crate) watch: Watch,
    /// Whether the server was cut off from the quorum: what it has shown is not held against others, so
    /// that an event can be about what was known.
    pub(crate) read_only: bool,
}

impl Armed {
    /// Whether a node that is found like this has changed.
    fn has_changed(&self, stat: Option<&Stat>) -> bool {
        match (self.kind, stat) {
            (Kind::Missing, stat) => stat.is_some(),
            (_, None) => true,
            (Kind::Data, Some(stat)) => stat.mzxid > self.known,
            (Kind::Children, Some(stat)) => stat.pzxid > self.known,
        }
    }

    const fn fits(&self, event: EventType) -> bool {
        let children = matches!(event, EventType::NODE_CHILDREN_CHANGED);
        match self.kind {
            Kind::Missing => matches!(event, EventType::NODE_CREATED),
            Kind::Data => !children,
            Kind::Children => children || matches!(event, EventType::NODE_DELETED),
        }
    }
}

impl Checker {
    /// A client has found a node, or none; a watch that was armed before on an older state must have fired. Returns
    /// the watch if it is still armed.
    pub(crate) fn watched(
        &mut self,
        client: u32,
        mut armed: Armed,
        stat: Option<&Stat>,
    ) -> Option<Armed> {
        match armed.watch.try_event() {
            Some(event) => {
                self.fired(client, &armed, &event);
                None
            }
            None if armed.has_changed(stat) => {
                let Armed { path, known, kind, .. } = &armed;
                let text =
                    format!("c{client} finds {path}: {stat:?}, no event of {kind:?} after {known}");
                self.shown_wrong(client, "W1", text);
                None
            }
            None => Some(armed),
        }
    }

    /// A watch has fired: was there a reason?
    fn fired(&mut self, client: u32, armed: &Armed, event: &Result<NodeEvent, SessionEnd>) {
        let Ok(event) = event else { return self.count("watches ended with their session") };
        self.count("events checked");
        let Armed { path, root, kind, known, .. } = armed;
        let changes = self.history.changes_after(&format!("{root}{path}"), *known);
        let is_due = !changes.is_empty() || armed.read_only;
        if !is_due || !armed.fits(event.kind) || event.path != *path {
            let text = format!("c{client} hears {event:?} of {kind:?} of {path} as of {known}");
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
