//! Kinds of watches on one path, asked for and removed one by one.

use zk_client::{Client, EventType, Watch, WatchEnd, WatchItem, WatchKind, WatchStream};
use zk_tests::{feature::Feature, patience::within, test_with};

use crate::api::{Place, client, on_each_release};

const KINDS: [WatchKind; 4] =
    [WatchKind::Data, WatchKind::Children, WatchKind::Node, WatchKind::Recursive];

enum Listener {
    Once(Watch),
    Stream(WatchStream),
}

impl Listener {
    async fn armed(zk: &Client, path: &str, kind: WatchKind) -> Self {
        match kind {
            WatchKind::Data => Self::Once(zk.get(path).watch().await.unwrap().1),
            WatchKind::Children => Self::Once(zk.children(path).watch().await.unwrap().1),
            WatchKind::Node => Self::Stream(zk.watch(path).await.unwrap()),
            WatchKind::Recursive => Self::Stream(zk.watch(path).recursive().await.unwrap()),
            other => panic!("{other:?}"),
        }
    }

    /// The events that it has heard since it was last asked, and how it has ended if it is a stream.
    fn heard(&mut self) -> (Vec<EventType>, Option<WatchEnd>) {
        let event = |item| match item {
            WatchItem::Event(event) => Some(event.kind),
            _ => None,
        };
        match self {
            Self::Once(watch) => {
                (watch.try_event().map(|event| event.unwrap().kind).into_iter().collect(), None)
            }
            Self::Stream(stream) => {
                let events = std::iter::from_fn(|| stream.try_next()).filter_map(event).collect();
                (events, stream.end())
            }
        }
    }
}

/// What one that listens hears of a write and of a new child.
fn of_changes(kind: WatchKind) -> (Vec<EventType>, Option<WatchEnd>) {
    use EventType as Type;
    let events = match kind {
        WatchKind::Data => vec![Type::NODE_DATA_CHANGED],
        WatchKind::Children => vec![Type::NODE_CHILDREN_CHANGED],
        WatchKind::Node => vec![Type::NODE_DATA_CHANGED, Type::NODE_CHILDREN_CHANGED],
        WatchKind::Recursive => vec![Type::NODE_DATA_CHANGED, Type::NODE_CREATED],
        other => panic!("{other:?}"),
    };
    (events, None)
}

/// What one hears of its removal, and of nothing behind it.
fn of_removal(kind: WatchKind) -> (Vec<EventType>, Option<WatchEnd>) {
    match kind {
        WatchKind::Data => (vec![EventType::DATA_WATCH_REMOVED], None),
        WatchKind::Children => (vec![EventType::CHILD_WATCH_REMOVED], None),
        _ => (Vec::new(), Some(WatchEnd::Removed)),
    }
}

/// Also where the server has one watch for all of them, before 3.9.
#[test_with(on_each_release)]
async fn removal_ends_listeners_of_its_kind_alone(server: &Place) {
    if !server.has(Feature::PersistentWatches) {
        return;
    }
    let (zk, other) = (client(server).await, client(server).await);
    for removed in KINDS {
        let path = format!("/{removed:?}");
        other.create(&path, b"").await.unwrap();
        let mut listeners = Vec::new();
        for kind in KINDS {
            listeners.push((kind, within(Listener::armed(&zk, &path, kind)).await));
        }
        // Behind gaps that arming both kinds of streams may have told of.
        within(zk.sync("/")).await.unwrap();
        for (kind, listener) in &mut listeners {
            assert_eq!(listener.heard(), (Vec::new(), None), "{kind:?}");
        }

        zk.remove_watches(&path, removed).unwrap();
        within(zk.sync("/")).await.unwrap();
        other.set(&path, b"x").await.unwrap();
        other.create(&format!("{path}/child"), b"").await.unwrap();
        within(zk.sync("/")).await.unwrap();
        for (kind, listener) in &mut listeners {
            let expected = if *kind == removed { of_removal } else { of_changes };
            assert_eq!(listener.heard(), expected(*kind), "{removed:?} removed: {kind:?}");
        }
    }
}

#[test_with(on_each_release)]
async fn check_finds_watches_of_its_kind_alone(server: &Place) {
    if !server.has(Feature::PersistentWatchCheck) {
        return;
    }
    let zk = client(server).await;
    for armed in KINDS {
        let path = format!("/{armed:?}");
        zk.create(&path, b"").await.unwrap();
        let _listener = within(Listener::armed(&zk, &path, armed)).await;
        for asked in KINDS.into_iter().chain([WatchKind::Any]) {
            let found = within(zk.check_watches(&path, asked)).await;
            let expected = asked == armed || asked == WatchKind::Any;
            assert_eq!(found, Ok(expected), "{armed:?} armed, asked for {asked:?}");
        }
    }
}
