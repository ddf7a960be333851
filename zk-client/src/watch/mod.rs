//! Watches: those that fire once, and those that go on.
//!
//! | module | concern |
//! |---|---|
//! | `once` | a watch as a future of one event |
//! | `mailbox` | events on their way to whoever listens, bounded |
//! | `stream` | a watch as a stream of events |
//! | `upkeep` | asking for watches and taking them away, by number |

mod mailbox;
mod once;
mod stream;
mod upkeep;

use std::sync::Arc;

use zk_proto::{
    EventType, Zxid,
    session::{self, WatchBy, WatchNotice, Watcher},
};

pub(crate) use self::{
    mailbox::{Item as News, Letterbox, Mailbox},
    once::read_event,
};
pub use self::{
    once::Watch,
    stream::{AddWatch, Resync, WatchEnd, WatchItem, WatchMode, WatchStream},
    upkeep::{CheckWatches, WatchKind},
};

/// What happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeEvent {
    /// What.
    pub kind: EventType,
    /// To which node, relative to the client's chroot.
    pub path: String,
    /// The transaction that did it. Servers before 3.9 do not say, and none does for an event that was
    /// missed while disconnected.
    pub zxid: Option<Zxid>,
}

/// What the session keeps of a watch.
#[derive(Clone, Debug)]
pub(crate) enum Listener {
    /// For one event.
    Once(once::Sender),
    /// For as many as there are.
    Many(Arc<Letterbox>),
}

impl Listener {
    /// Tells whoever listens that this watch, armed by such a request on this path, has been taken away.
    pub(crate) fn remove(&self, by: WatchBy, path: &Arc<str>) {
        let kind = match by {
            WatchBy::Data | WatchBy::Exists => EventType::DATA_WATCH_REMOVED,
            WatchBy::Children => EventType::CHILD_WATCH_REMOVED,
            WatchBy::Persistent | WatchBy::Recursive => EventType::PERSISTENT_WATCH_REMOVED,
        };
        match self {
            Self::Once(sender) => {
                let event = Event { kind, path: path.clone(), zxid: None };
                sender.notify(WatchNotice::Event(event));
            }
            Self::Many(letterbox) => letterbox.0.remove(),
        }
    }

    pub(crate) fn notify(&self, notice: WatchNotice) -> Delivery {
        match self {
            Self::Once(sender) => {
                sender.notify(notice);
                Delivery::Kept
            }
            Self::Many(letterbox) => letterbox.0.notify(notice),
        }
    }
}

/// What has become of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Kept,
    /// There was no room, and what had been kept has gone too.
    Lagged,
}

impl Watcher for Listener {
    fn is_gone(&self) -> bool {
        match self {
            Self::Once(sender) => sender.is_gone(),
            Self::Many(letterbox) => letterbox.0.is_closed(),
        }
    }
}

/// A watch that comes with the answer to a request.
#[derive(Debug)]
pub(crate) enum Attached {
    Nothing,
    Once(Watch),
    Many(Box<WatchStream>),
}

impl Attached {
    pub(crate) fn once(self) -> Option<Watch> {
        match self {
            Self::Once(watch) => Some(watch),
            Self::Nothing | Self::Many(_) => None,
        }
    }
}

pub(crate) type Event = session::NodeEvent;
