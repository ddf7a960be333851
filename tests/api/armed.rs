//! Every kind of watch, however it was armed and whatever happens to the connection then: what was promised fires, once for
//! what it is to fire for, and nothing is left on the server when its owner has gone.

use std::time::Duration;

use zk_client::{
    Cause, Client, EventType, OpCode, ReadError, Rejection, Resync, SessionState, Watch, WatchItem,
    WatchKind, WatchStream,
};
use zk_testkit::proxy::{Match, Proxy};
use zk_tests::{
    busy::too_busy_for,
    feature::Feature,
    patience::{closed, within},
    test_with,
};

use crate::api::{Place, behind_proxy, client, on_each_release};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    /// Of a node that is there.
    Exists,
    /// Of one that is not.
    Missing,
    Children,
    Node,
    Recursive,
}

/// How the request fares that asks for the watch.
#[derive(Clone, Copy, Debug)]
enum Arm {
    Plain,
    TurnedAway,
    LostToReset,
    /// Its reply arrives after its caller is gone.
    Withdrawn,
}

/// What happens to the connection between the request and the change.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    Reset,
    /// The change happens while there is no connection.
    Away,
}

enum Armed {
    Once(Watch),
    Stream(WatchStream),
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Data, Self::Exists, Self::Missing, Self::Children, Self::Node, Self::Recursive];

    const fn op(self) -> OpCode {
        match self {
            Self::Data => OpCode::GET_DATA,
            Self::Exists | Self::Missing => OpCode::EXISTS,
            Self::Children => OpCode::GET_CHILDREN2,
            Self::Node | Self::Recursive => OpCode::ADD_WATCH,
        }
    }

    const fn goes_on(self) -> bool {
        matches!(self, Self::Node | Self::Recursive)
    }

    async fn arm(self, zk: &Client) -> Result<Armed, ReadError> {
        Ok(match self {
            Self::Data => Armed::Once(zk.get("/w").watch().await?.1),
            Self::Exists | Self::Missing => Armed::Once(zk.exists("/w").watch().await?.1),
            Self::Children => Armed::Once(zk.children("/w").watch().await?.1),
            Self::Node => Armed::Stream(zk.watch("/w").await?),
            Self::Recursive => Armed::Stream(zk.watch("/w").recursive().await?),
        })
    }

    /// Changes what it watches, and says what that is for it. Can be done again.
    async fn change(self, other: &Client) -> EventType {
        match self {
            Self::Data | Self::Node => {
                other.set("/w", b"new").await.unwrap();
                EventType::NODE_DATA_CHANGED
            }
            Self::Exists => {
                other.set("/w", b"new").await.unwrap();
                EventType::NODE_DATA_CHANGED
            }
            Self::Missing => {
                let _ = other.delete("/w").await;
                other.create("/w", b"").await.unwrap();
                EventType::NODE_CREATED
            }
            Self::Children => {
                let _ = other.delete("/w/c").await;
                other.create("/w/c", b"").await.unwrap();
                EventType::NODE_CHILDREN_CHANGED
            }
            Self::Recursive => {
                if other.delete("/w/c").await.is_ok() {
                    return EventType::NODE_DELETED;
                }
                other.create("/w/c", b"").await.unwrap();
                EventType::NODE_CREATED
            }
        }
    }
}

/// Arms it; `None` if nothing is promised.
async fn armed(kind: Kind, arm: Arm, zk: &Client, proxy: &Proxy) -> Option<Armed> {
    let reply = || Match::reply(kind.op()).path("/w").once();
    match arm {
        Arm::Plain => Some(within(kind.arm(zk)).await.unwrap()),
        Arm::TurnedAway => {
            let busy = too_busy_for(proxy, Match::request(kind.op()).path("/w").times(2));
            let armed = within(kind.arm(&zk.patient())).await.unwrap();
            assert_eq!(busy.turned_away(), 2);
            Some(armed)
        }
        Arm::LostToReset => {
            let lost = proxy.on(reply()).reset();
            let armed = within(kind.arm(zk)).await.unwrap();
            assert_eq!(lost.times_fired(), 1);
            Some(armed)
        }
        Arm::Withdrawn => {
            let late = proxy.on(reply()).hold();
            let hasty = zk.with(zk_client::CallOptions::new().timeout(Duration::from_millis(20)));
            let (armed, _) = tokio::join!(within(kind.arm(&hasty)), within(late.fired()));
            let error = armed.err();
            assert_eq!(error, Some(ReadError::Unavailable(Cause::DeadlineExceeded)));
            late.release();
            None
        }
    }
}

/// Breaks the connection and waits for the next, on which all watches stand; does something in between.
async fn broken(zk: &Client, proxy: &Proxy, between: impl AsyncFnOnce()) {
    let mut session = zk.session();
    let before = session.epoch();
    let dialed = proxy.on(Match::connect_request()).hold();
    proxy.reset_all();
    within(dialed.fired()).await;
    between().await;
    drop(dialed);
    let connected = async {
        while session.epoch() == before
            || !matches!(session.state(), SessionState::Connected { .. })
        {
            session.changed().await;
        }
    };
    within(connected).await;
    within(zk.sync("/")).await.unwrap();
}

/// What a stream has to say so far.
async fn told(stream: &mut WatchStream, zk: &Client) -> Vec<WatchItem> {
    within(zk.sync("/")).await.unwrap();
    std::iter::from_fn(|| stream.try_next()).collect()
}

fn kinds(items: &[WatchItem]) -> Vec<EventType> {
    let event = |item: &WatchItem| match item {
        WatchItem::Event(event) => Some(event.kind),
        _ => None,
    };
    items.iter().filter_map(event).collect()
}

async fn is_watched(zk: &Client) -> bool {
    match within(zk.check_watches("/w", WatchKind::Any)).await {
        Ok(watched) => watched,
        // There is no telling.
        Err(ReadError::Rejected(Rejection::Unimplemented)) => false,
        Err(error) => panic!("{error}"),
    }
}

async fn cell(server: &Place, other: &Client, (kind, arm, between): (Kind, Arm, Between)) {
    let context = format!("{kind:?}, {arm:?}, {between:?}");
    let (proxy, zk) = behind_proxy(server).await;
    let _ = other.delete_recursive("/w").await;
    if kind != Kind::Missing {
        other.create("/w", b"old").await.unwrap();
    }
    let armed = armed(kind, arm, &zk, &proxy).await;
    let mut expected = None;
    match between {
        Between::Nothing => {}
        Between::Reset => broken(&zk, &proxy, async || {}).await,
        Between::Away => {
            let change = async || expected = Some(kind.change(other).await);
            broken(&zk, &proxy, change).await;
        }
    }
    let mark = proxy.mark();
    match armed {
        Some(Armed::Once(watch)) => {
            let expected = match expected {
                Some(expected) => expected,
                None => kind.change(other).await,
            };
            let event = within(watch).await.unwrap();
            assert_eq!((event.kind, event.path.as_str()), (expected, "/w"), "{context}");
            kind.change(other).await;
            within(zk.sync("/")).await.unwrap();
            let frames = proxy.frames_since(mark);
            let events = frames.iter().filter(|frame| frame.event.is_some()).count();
            let due = if matches!(between, Between::Away) { 0 } else { 1 };
            assert_eq!(events, due, "{context}: it has fired, and is no more");
        }
        Some(Armed::Stream(mut stream)) => {
            let missed = told(&mut stream, &zk).await;
            let gap = [WatchItem::Resync(Resync::Reconnected)];
            let gaps: &[_] = if matches!(between, Between::Nothing) { &[] } else { &gap };
            assert_eq!(missed, gaps, "{context}");
            for _ in 0..3 {
                // Reads that watch too must not take it away, which servers before 3.9 would have them do.
                let (_, mut data) = within(zk.get("/w").watch()).await.unwrap();
                let (_, mut children) = within(zk.children("/w").watch()).await.unwrap();
                let expected = kind.change(other).await;
                let seen = kinds(&told(&mut stream, &zk).await);
                assert_eq!(seen, [expected], "{context}");
                other.set("/w", b"newer").await.unwrap();
                let seen = kinds(&told(&mut stream, &zk).await);
                assert_eq!(seen, [EventType::NODE_DATA_CHANGED], "{context}");
                assert!(data.try_event().is_some(), "{context}");
                other.create("/w/x", b"").await.unwrap();
                other.delete("/w/x").await.unwrap();
                let seen = told(&mut stream, &zk).await.len();
                assert_eq!(seen, 2, "{context}");
                assert!(children.try_event().is_some(), "{context}");
            }
            drop(stream);
        }
        None if kind.goes_on() => {}
        // Servers keep what fires once until it does, or until their connection goes, and then it is not asked for again.
        None => broken(&zk, &proxy, async || {}).await,
    }
    within(zk.sync("/")).await.unwrap();
    assert!(!is_watched(&zk).await, "{context}: a watch is left on the server");
    closed(&zk).await;
}

#[test_with(on_each_release)]
async fn armed_watch_fires_once_and_is_removed(server: &Place) {
    let other = client(server).await;
    for kind in Kind::ALL {
        if kind.goes_on() && !server.has(Feature::PersistentWatches) {
            continue;
        }
        for arm in [Arm::Plain, Arm::TurnedAway, Arm::LostToReset] {
            for between in [Between::Nothing, Between::Reset, Between::Away] {
                cell(server, &other, (kind, arm, between)).await;
            }
        }
        cell(server, &other, (kind, Arm::Withdrawn, Between::Nothing)).await;
    }
}

/// Servers before 3.9 keep one watch for each path. Both have to be there after a reconnect all the same.
#[test_with(on_each_release)]
async fn both_kinds_on_one_path_are_restored(server: &Place) {
    if !server.has(Feature::PersistentWatches) {
        return;
    }
    let (proxy, zk) = behind_proxy(server).await;
    let other = client(server).await;
    other.create("/w", b"").await.unwrap();
    let mut node = zk.watch("/w").await.unwrap();
    let mut tree = zk.watch("/w").recursive().await.unwrap();
    for round in 0..3 {
        broken(&zk, &proxy, async || {}).await;
        for stream in [&mut node, &mut tree] {
            let gap = told(stream, &zk).await;
            assert_eq!(gap, [WatchItem::Resync(Resync::Reconnected)], "round {round}");
        }
        for _ in 0..2 {
            use EventType as Type;
            other.set("/w", b"x").await.unwrap();
            other.create("/w/c", b"").await.unwrap();
            other.delete("/w/c").await.unwrap();
            let seen = kinds(&told(&mut node, &zk).await);
            let children = Type::NODE_CHILDREN_CHANGED;
            assert_eq!(seen, [Type::NODE_DATA_CHANGED, children, children]);
            let seen = kinds(&told(&mut tree, &zk).await);
            assert_eq!(seen, [Type::NODE_DATA_CHANGED, Type::NODE_CREATED, Type::NODE_DELETED]);
        }
    }
}

/// Two on one path, in this order: servers before 3.9 keep one of them.
async fn pair(server: &Place, other: &Client, kinds_of_both: [Kind; 2], between: Between) {
    let context = format!("{kinds_of_both:?}, {between:?}");
    let (proxy, zk) = behind_proxy(server).await;
    let _ = other.delete_recursive("/w").await;
    if !kinds_of_both.contains(&Kind::Missing) {
        other.create("/w", b"old").await.unwrap();
    }
    let [first, second] = kinds_of_both;
    let both = [within(first.arm(&zk)).await.unwrap(), within(second.arm(&zk)).await.unwrap()];
    if matches!(between, Between::Reset) {
        broken(&zk, &proxy, async || {}).await;
    }
    let mut both: Vec<_> = kinds_of_both.into_iter().zip(both).collect();
    // The others need the node.
    both.sort_by_key(|(kind, _)| *kind != Kind::Missing);
    for (kind, armed) in both {
        match armed {
            Armed::Once(mut watch) => {
                // What concerns both has fired for the former.
                if watch.try_event().is_none() {
                    let expected = kind.change(other).await;
                    within(zk.sync("/")).await.unwrap();
                    let event = watch.try_event().map(|event| event.unwrap().kind);
                    assert_eq!(event, Some(expected), "{context}");
                }
            }
            Armed::Stream(mut stream) => {
                told(&mut stream, &zk).await;
                let expected = kind.change(other).await;
                let seen = kinds(&told(&mut stream, &zk).await);
                assert!(seen.contains(&expected), "{context}: {seen:?}");
            }
        }
    }
    closed(&zk).await;
}

#[test_with(on_each_release)]
async fn two_watches_on_one_path_both_fire(server: &Place) {
    let other = client(server).await;
    let may_be = |kind: &Kind| !kind.goes_on() || server.has(Feature::PersistentWatches);
    let needs_node = |kind| matches!(kind, Kind::Data | Kind::Exists | Kind::Children);
    for first in Kind::ALL.into_iter().filter(may_be) {
        for second in Kind::ALL.into_iter().filter(may_be) {
            let kinds = [first, second];
            if kinds.contains(&Kind::Missing) && kinds.into_iter().any(needs_node) {
                continue;
            }
            for between in [Between::Nothing, Between::Reset] {
                pair(server, &other, kinds, between).await;
            }
        }
    }
}

/// A read that needs no watch of its own is no reason to keep one for ever.
#[test_with(on_each_release)]
async fn tree_watch_outlives_no_listener(server: &Place) {
    if !server.has(Feature::PersistentWatches) {
        return;
    }
    let zk = client(server).await;
    let _ = zk.delete_recursive("/w").await;
    zk.create("/w", b"old").await.unwrap();
    let tree = within(zk.watch("/w").recursive()).await.unwrap();
    let (_, once) = within(zk.exists("/w").watch()).await.unwrap();
    drop(tree);
    assert!(is_watched(&zk).await, "for the other listener");
    drop(once);
    zk.create("/w/below", b"").await.unwrap();
    assert!(!is_watched(&zk).await, "the event was for nobody");
}
