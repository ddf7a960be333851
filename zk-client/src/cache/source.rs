//! The source of change events.
//!
//! Servers since 3.6 have one watch for a whole subtree. On older ones, each node is watched individually: its data,
//! and its set of children if those belong to the copy. Both kinds of watches deliver to the same queue.

use std::{
    collections::BTreeMap,
    future::IntoFuture,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use zk_proto::{EventType, Stat};

use super::scope::Scope;
use crate::{
    error::{ReadError, Rejection},
    request::{ChildNames, client::Client, pending::Pending, watch_stream::WatchStream},
    watch::{EventQueue, EventSender, Listener, Queued, WatchEnd},
};

/// Change events for the nodes of a copy.
pub(super) enum Source {
    /// One watch for all nodes.
    Stream(WatchStream),
    /// Watches of single nodes.
    Singles(Singles),
}

/// Watches of single nodes, which fire once.
pub(super) struct Singles {
    event_queue: EventQueue,
    /// The session's end of each watch.
    event_sender: Arc<EventSender>,
    armed: BTreeMap<Arc<str>, Armed>,
}

/// The watches of a node that have not fired.
#[derive(Clone, Copy, Debug, Default)]
struct Armed {
    node: bool,
    children: bool,
}

/// What to read of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// Whether it exists at all, in addition to the rest: for nodes whose data need not be readable, or there.
    pub(super) existence: bool,
    /// Its data, or only its metadata.
    pub(super) data: bool,
    pub(super) children: bool,
    /// Whether to watch what is read.
    pub(super) watch_node: bool,
    pub(super) watch_children: bool,
}

/// The pending reads.
pub(super) struct Reads {
    pub(super) existence: Option<Pending<Option<Stat>, ReadError>>,
    pub(super) data: Option<Pending<(Bytes, Stat), ReadError>>,
    pub(super) children: Option<Pending<(ChildNames, Stat), ReadError>>,
}

impl Source {
    pub(super) async fn open(client: &Client, root: &str, scope: Scope) -> Result<Self, ReadError> {
        match client.watch(root).covering(scope.watch()).into_future().await {
            Ok(stream) => Ok(Self::Stream(stream)),
            Err(ReadError::Rejected(Rejection::Unimplemented)) => Ok(Self::singles(client)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn singles(client: &Client) -> Self {
        Self::Singles(Singles::new(EventQueue::new(client.handle.shared.watch_items_max)))
    }

    /// Whether reads have to arm watches in order to learn of later changes.
    pub(super) const fn is_of_singles(&self) -> bool {
        matches!(self, Self::Singles(_))
    }

    fn event_queue(&self) -> &EventQueue {
        match self {
            Self::Stream(stream) => stream.event_queue(),
            Self::Singles(singles) => &singles.event_queue,
        }
    }

    pub(super) fn poll_news(&self, cx: &Context<'_>) -> Poll<Option<Queued>> {
        self.event_queue().poll_next(cx)
    }

    pub(super) fn try_news(&self) -> Option<Queued> {
        self.event_queue().try_next()
    }

    pub(super) fn end(&self) -> Option<WatchEnd> {
        self.event_queue().end()
    }

    /// Which watches a read has to arm in order to learn of later changes: of the node, and of its set of children.
    pub(super) fn lacks(&self, path: &str) -> (bool, bool) {
        match self {
            Self::Stream(_) => (false, false),
            Self::Singles(singles) => {
                let armed = singles.armed.get(path).copied().unwrap_or_default();
                (!armed.node, !armed.children)
            }
        }
    }

    /// Records that a read has armed watches.
    pub(super) fn armed(&mut self, path: &Arc<str>, node: bool, children: bool) {
        if let (Self::Singles(singles), true) = (self, node || children) {
            let armed = singles.armed.entry(path.clone()).or_default();
            armed.node |= node;
            armed.children |= children;
        }
    }

    /// Records the watches that an event has used up. A delete uses up both, even if the node has been recreated.
    pub(super) fn fired(&mut self, kind: EventType, path: &str) {
        let Self::Singles(singles) = self else { return };
        if let Some(armed) = singles.armed.get_mut(path) {
            armed.node &= kind == EventType::NODE_CHILDREN_CHANGED;
            armed.children &=
                !matches!(kind, EventType::NODE_CHILDREN_CHANGED | EventType::NODE_DELETED);
        }
    }

    /// Forgets the watches of a node that does not exist.
    pub(super) fn forget(&mut self, path: &str) {
        if let Self::Singles(singles) = self {
            singles.armed.remove(path);
        }
    }

    /// Submits the reads of a node, in an order in which no change falls between arming a watch and reading.
    pub(super) fn read(&self, client: &Client, path: &str, wants: Wants) -> Reads {
        let listener = match self {
            Self::Stream(_) => None,
            Self::Singles(singles) => Some(Listener::Many(singles.event_sender.clone())),
        };
        let heard = |watch: bool| listener.clone().filter(|_| watch);
        let (node, children) = (heard(wants.watch_node), heard(wants.watch_children));
        let of_data = node.clone().filter(|_| !wants.existence);
        let existence = client.exists(path).heard_by(node);
        let data = client.get(path).heard_by(of_data);
        let children = client.children(path).heard_by(children).packed();
        Reads {
            existence: wants.existence.then(|| existence.into_future()),
            data: wants.data.then(|| data.into_future()),
            children: wants.children.then(|| children.into_future()),
        }
    }
}

impl Singles {
    fn new(event_queue: EventQueue) -> Self {
        let event_sender = Arc::new(EventSender(event_queue.clone()));
        Self { event_queue, event_sender, armed: BTreeMap::new() }
    }
}

impl Drop for Singles {
    fn drop(&mut self) {
        self.event_queue.close();
    }
}

#[cfg(test)]
mod tests {
    use zk_proto::session::Watcher as _;

    use super::*;

    #[test]
    fn nodes_that_are_gone_take_no_memory() {
        let (mut source, path) = (Source::Singles(Singles::new(EventQueue::new(8))), "/a");
        source.armed(&path.into(), true, true);
        assert_eq!(source.lacks(path), (false, false));
        source.fired(EventType::NODE_CHILDREN_CHANGED, path);
        assert_eq!(source.lacks(path), (false, true));
        source.fired(EventType::NODE_DELETED, path);
        assert_eq!(source.lacks(path), (true, true));
        source.forget(path);
        let Source::Singles(singles) = source else { unreachable!("it is of singles") };
        assert!(singles.armed.is_empty());
    }

    #[test]
    fn watches_end_with_their_copy() {
        let singles = Singles::new(EventQueue::new(8));
        let listener = Listener::Many(singles.event_sender.clone());
        assert!(!listener.is_gone());
        drop(singles);
        assert!(listener.is_gone());
    }
}
