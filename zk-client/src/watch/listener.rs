//! The session's end of a watch.

use std::sync::Arc;

use zk_proto::{
    EventType,
    session::{WatchBy, WatchNotice, Watcher},
};

use super::{
    event::{Delivery, Event},
    event_queue::EventSender,
    once,
};

/// The session's end of a watch.
#[derive(Clone, Debug)]
pub(crate) enum Listener {
    /// For a one-shot watch.
    Once(once::Sender),
    /// For a persistent watch.
    Many(Arc<EventSender>),
}

impl Listener {
    /// Notifies the listener that its watch, armed by such a request on this path, has been removed.
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
            Self::Many(event_sender) => event_sender.0.remove(),
        }
    }

    pub(crate) fn notify(&self, notice: WatchNotice) -> Delivery {
        match self {
            Self::Once(sender) => {
                sender.notify(notice);
                Delivery::Kept
            }
            Self::Many(event_sender) => event_sender.0.notify(notice),
        }
    }
}

impl Watcher for Listener {
    fn is_gone(&self) -> bool {
        match self {
            Self::Once(sender) => sender.is_gone(),
            Self::Many(event_sender) => event_sender.0.is_closed(),
        }
    }
}
