//! One builder: the options of a create in any order, and whatever is missing above it.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use zk_client::{Cause, Client, Create, CreateMode, Created, OpCode, Rejection, WriteError};
use zk_testkit::{
    TestServer,
    proxy::{Frame, Match},
    real::Release,
    server::Config,
};
use zk_tests::{
    busy::ask_for_nothing, feature::Feature, network::Disposition, patience::within, test_with,
};

use super::promises::{connected, play};
use crate::api::{Place, behind_proxy, client, on_each_release};

/// What a create resolves to, and what its node is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    OrExists,
    Protected,
    ByName,
    ByData,
}

const KINDS: [Kind; 5] = [Kind::Plain, Kind::OrExists, Kind::Protected, Kind::ByName, Kind::ByData];

/// What is to become of what is missing above the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    Nothing,
    Parents,
    Containers,
    /// Below a node that must be there.
    Below,
}

const ABOVE: [Above; 4] = [Above::Nothing, Above::Parents, Above::Containers, Above::Below];

/// Gives a create its options, before or behind what it is to resolve to.
fn told<'a>(create: Create<'a>, above: Above, mode: CreateMode, mode_first: bool) -> Create<'a> {
    let create = if mode_first { create.mode(mode) } else { create };
    let create = match above {
        Above::Nothing => create,
        Above::Parents => create.parents(),
        Above::Containers if mode_first => create.parents().containers(),
        Above::Containers => create.containers().parents(),
        Above::Below => create.parents_below("/floor"),
    };
    if mode_first { create } else { create.mode(mode) }
}

async fn make(
    zk: &Client,
    path: &str,
    (kind, above, mode): (Kind, Above, CreateMode),
    (first, submitted): (bool, bool),
) -> Result<Created, WriteError> {
    let create = zk.create(path, b"unique 1");
    let create = told(create, if first { above } else { Above::Nothing }, mode, first);
    let create = match kind {
        Kind::Plain => create,
        Kind::OrExists => create.or_exists(),
        Kind::Protected => create.protected(),
        Kind::ByName => create.protected_by_its_name(),
        Kind::ByData => create.protected_by_its_data(),
    };
    let create = told(create, if first { Above::Nothing } else { above }, mode, !first);
    if submitted { create.submit().await } else { create.await }
}

/// Whether such a node can be had at all.
fn is_allowed(kind: Kind, mode: CreateMode) -> bool {
    let sequential =
        matches!(mode, CreateMode::EphemeralSequential | CreateMode::PersistentSequential);
    let ephemeral = matches!(mode, CreateMode::EphemeralSequential | CreateMode::Ephemeral);
    match kind {
        Kind::Plain => true,
        Kind::OrExists => !sequential,
        Kind::Protected | Kind::ByName | Kind::ByData => ephemeral,
    }
}

#[test_with(on_each_release)]
async fn create_options_combine_in_any_order(server: &Place) {
    let root = client(server).await;
    root.create("/floor", b"").await.unwrap();
    let modes = [
        CreateMode::Persistent,
        CreateMode::PersistentSequential,
        CreateMode::Ephemeral,
        CreateMode::EphemeralSequential,
    ];
    let mut cells = 0;
    for (number, kind) in KINDS.into_iter().enumerate() {
        for above in ABOVE {
            for mode in modes {
                for (first, submitted) in [(false, true), (true, false)] {
                    cells += 1;
                    let wanted = (kind, above, mode);
                    let on = format!("{wanted:?}, above first: {first}");
                    let parent = format!("/floor/{number}/{cells}");
                    let path = format!("{parent}/n");
                    let made = make(&root, &path, wanted, (first, submitted)).await;
                    if !is_allowed(kind, mode) {
                        assert!(matches!(made, Err(WriteError::NotApplied(_))), "{on}");
                        assert_eq!(root.exists(&parent).await, Ok(None), "{on}");
                        continue;
                    }
                    if above == Above::Nothing {
                        let missing = WriteError::Rejected(Rejection::NoNode);
                        assert_eq!(made.map(drop), Err(missing), "{on}");
                        continue;
                    }
                    let made = made.unwrap_or_else(|error| panic!("{on}: {error}"));
                    let is_protected = !matches!(kind, Kind::Plain | Kind::OrExists);
                    assert_eq!((made.owned.is_some(), made.existed), (is_protected, false));
                    let there = made.path.clone();
                    let stat = root.exists(&there).await.unwrap().expect(&on);
                    let is_ephemeral = stat.ephemeral_owner == root.session().id();
                    assert_eq!(is_ephemeral, format!("{mode:?}").starts_with("Eph"), "{on}");
                    // Clients distinguish containers not by the node, but by the request.
                    let above_it = root.exists(&parent).await.unwrap().expect(&on);
                    assert_eq!(above_it.data_length, 0, "{on}");
                    drop(made);
                    if !is_protected {
                        assert!(root.exists(&there).await.unwrap().is_some(), "{on}");
                        continue;
                    }
                    while let (Some(_), changed) = root.exists(&there).watch().await.unwrap() {
                        changed.await.unwrap();
                    }
                }
            }
        }
    }
}

/// What is at the floor or above it is never created, be it the chroot.
/// A number may be all of a name.
#[test_with(on_each_release)]
async fn names_of_numbers_alone_have_parents_and_owners(server: &Place) {
    let zk = client(server).await;
    let numbered = |path| zk.create(path, b"").mode(CreateMode::EphemeralSequential);
    let top = zk.create("/", b"").mode(CreateMode::PersistentSequential).parents().await.unwrap();
    assert_eq!(top.path, "/0000000000");
    let created = numbered("/q/w/").parents().await.unwrap();
    assert_eq!(created.path, "/q/w/0000000000");
    let owned = numbered("/q/w/").protected().await.unwrap().owned.unwrap();
    assert_eq!(owned.sequence(), Some(1));
    let seats = zk.create_all_protected([numbered("/r/w/").parents()]).await.unwrap().unwrap();
    assert_eq!(seats[0].path(), format!("/r/w/{}", seats[0].name()));
    let refused = numbered("/q/w/").protected_by_its_name().await.map(drop);
    assert!(matches!(refused, Err(WriteError::NotApplied(Cause::InvalidArgument(_)))));
    let below = zk.chrooted("/missing").unwrap();
    let below = below.create("/", b"").mode(CreateMode::PersistentSequential).parents().await;
    assert_eq!(below.unwrap().path, "/0000000000");
}

#[test_with(on_each_release)]
async fn what_must_be_there_is_not_created(server: &Place) {
    let root = client(server).await;
    let zk = root.chrooted("/gone").unwrap();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let mode = CreateMode::Ephemeral;
        let wanted = (kind, Above::Below, mode);
        let missing = make(&zk, "/floor/a/b", wanted, (true, false)).await;
        let refused = WriteError::Rejected(Rejection::NoNode);
        assert_eq!(missing.map(|_| ()), Err(refused), "{kind:?}");
        assert_eq!(root.exists("/gone").await, Ok(None), "{kind:?}");
        // Without a floor the chroot is part of what is missing.
        let there = root.chrooted(&format!("/chroot-{number}/deep")).unwrap();
        let made = make(&there, "/n", (kind, Above::Parents, mode), (true, true)).await;
        assert!(made.is_ok(), "{kind:?}");
    }
}

/// A server that knows no containers says so at the price of a connection: once in a session.
#[tokio::test]
async fn missing_container_support_is_probed_once() {
    for release in Release::ALL {
        let mut config = Config::default();
        config.release = release;
        let server = TestServer::start_with(config).await.unwrap();
        let zk = Client::connect(&server.connect_string()).await.unwrap();
        let mut connections = Vec::new();
        for path in ["/a/b/c", "/d/e/f", "/g/h/i"] {
            let create = zk.create(path, b"").mode(CreateMode::Ephemeral);
            drop(create.protected().containers().await.unwrap());
            zk.sync("/").await.unwrap();
            connections.push(zk.session().epoch());
        }
        let spent = if Feature::Containers.is_in(release) { 1 } else { connections[0] };
        assert_eq!(connections, [spent; 3], "{release}");
        assert!(spent <= 2, "{release}: {spent} connections");
    }
}

/// A transaction creates without asking for metadata, and so do the parents that it lacks: servers that cannot return any
/// are asked for containers alone.
#[tokio::test]
async fn parents_are_created_without_metadata() {
    for release in Release::ALL {
        let mut config = Config::default();
        config.release = release;
        let server = TestServer::start_with(config).await.unwrap();
        let mut connections = Vec::new();
        for above in [Above::Parents, Above::Containers] {
            let zk = Client::connect(&server.connect_string()).await.unwrap();
            let node = |path| told(zk.create(path, b""), above, CreateMode::Ephemeral, false);
            let both = match above {
                Above::Parents => ["/a/1/n", "/b/2/n"],
                _ => ["/c/1/n", "/d/2/n"],
            };
            drop(zk.create_all_protected(both.map(node)).await.unwrap().unwrap());
            zk.sync("/").await.unwrap();
            connections.push(zk.session().epoch());
        }
        let refusals = u64::from(!Feature::Containers.is_in(release));
        assert_eq!(connections, [1, 1 + refusals], "{release}");
    }
}

/// Told by the requests: an empty container is a node like others.
#[test_with(on_each_release)]
async fn parents_are_containers_in_either_order(server: &Place) {
    if !server.has(Feature::Containers) {
        return;
    }
    let (proxy, zk) = behind_proxy(server).await;
    let orders: [fn(Create<'_>) -> Create<'_>; 2] =
        [|create| create.parents().containers(), |create| create.containers().parents()];
    let place = server.connect_string();
    let (_, root) = place.split_once('/').unwrap();
    for (top, order) in ["/first", "/second"].into_iter().zip(orders) {
        let node = format!("{top}/a/n");
        let mark = proxy.mark();
        order(zk.create(&node, b"")).await.unwrap();
        let requests = proxy.frames_since(mark).requests();
        let asked: Vec<_> =
            requests.iter().map(|frame| (frame.op.unwrap(), frame.path.clone().unwrap())).collect();
        // The chroot is part of what may be missing.
        let expected = [
            (OpCode::CREATE2, format!("/{root}{node}")),
            (OpCode::CREATE_CONTAINER, format!("/{root}")),
            (OpCode::CREATE_CONTAINER, format!("/{root}{top}")),
            (OpCode::CREATE_CONTAINER, format!("/{root}{top}/a")),
            (OpCode::CREATE2, format!("/{root}{node}")),
        ];
        assert_eq!(asked, expected);
    }
}

/// Why there is no node is why there is none above it.
#[test_with(on_each_release)]
async fn refused_parent_is_reported_as_such(server: &Place) {
    let root = client(server).await;
    let readable = zk_client::AclList::from_iter([zk_client::Acl::world_readable()]);
    root.create("/closed", b"").acl(&readable).await.unwrap();
    root.create("/leaf", b"").mode(CreateMode::Ephemeral).await.unwrap();
    for kind in KINDS {
        let wanted = (kind, Above::Containers, CreateMode::Ephemeral);
        for (path, why) in
            [("/closed/a/b", Rejection::NoAuth), ("/leaf/a/b", Rejection::NoChildrenForEphemerals)]
        {
            let refused = make(&root, path, wanted, (true, false)).await;
            assert_eq!(refused.map(|_| ()), Err(WriteError::Rejected(why)), "{kind:?}");
        }
    }
}

/// An outsider who deletes the path each time that it was created: that comes to an end.
#[test_with(on_each_release)]
async fn path_deleted_repeatedly_is_given_up(server: &Place) {
    let outsider = client(server).await;
    for kind in [Kind::Plain, Kind::OrExists, Kind::ByName] {
        let (proxy, zk) = behind_proxy(server).await;
        // None of the levels ever comes to be.
        let level = Match::requests()
            .when(|frame| frame.path.as_deref().is_some_and(|path| path.ends_with("/never")));
        let lost = proxy.on(level).rewrite(ask_for_nothing);
        let wanted = (kind, Above::Parents, CreateMode::Ephemeral);
        let given_up = make(&zk, "/never/n", wanted, (true, false)).await;
        let missing = WriteError::Rejected(Rejection::NoNode);
        assert_eq!(given_up.map(|_| ()), Err(missing), "{kind:?}");
        assert!((2..20).contains(&lost.times_fired()), "{kind:?}: {}", lost.times_fired());
        assert_eq!(outsider.exists("/never").await, Ok(None));
    }
}

/// What its search by name may meet.
const NEIGHBOURS: [&str; 5] = ["n-config", "nn", "n1", "n-0000000007x", "N"];

/// A create whose answer, or which itself, is lost takes no other node for its own, and deletes none.
#[test_with(on_each_release)]
async fn search_for_a_node_leaves_those_with_longer_names(server: &Place) {
    let root = client(server).await;
    let (proxy, zk) = behind_proxy(server).await;
    // What the server can do is known.
    zk.create("/probe", b"").await.unwrap();
    let mut cells = 0;
    for kind in [Kind::ByName, Kind::ByData, Kind::Protected] {
        for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential] {
            for (what, lost) in [("request", Match::requests()), ("answer", Match::replies())] {
                for (whose, owner) in [("our", &zk), ("another", &root)] {
                    cells += 1;
                    let on =
                        format!("{kind:?} {mode:?}: {what} lost, {whose} session's neighbours");
                    let parent = format!("/search-{cells}");
                    root.create(&parent, b"").await.unwrap();
                    for name in NEIGHBOURS {
                        let path = format!("{parent}/{name}");
                        owner.create(&path, b"unique 1").mode(CreateMode::Ephemeral).await.unwrap();
                    }
                    let lost = proxy.on(lost.clone().when(creates).once()).cut();
                    let (path, wanted) = (format!("{parent}/n"), (kind, Above::Nothing, mode));
                    let made = within(make(&zk, &path, wanted, (true, false))).await;
                    let made = made.unwrap_or_else(|error| panic!("{on}: {error}"));
                    assert_eq!(lost.times_fired(), 1, "{on}");
                    let (names, _) = root.children(&parent).await.unwrap();
                    let ours = made.path.rsplit('/').next().unwrap();
                    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
                    let expected = NEIGHBOURS.into_iter().chain([ours]).collect();
                    assert_eq!(names, expected, "{on}");
                }
            }
        }
    }
}

/// Whether it is about a create, which is one of several operations where data tell whose a node is.
fn creates(frame: &Frame) -> bool {
    [OpCode::CREATE, OpCode::CREATE2, OpCode::MULTI].map(Some).contains(&frame.op)
}

/// Its parents are as patient as the node itself, and have no longer than that.
#[test]
fn timeout_of_a_protected_create_bounds_its_parents() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        network.direct(|_, op| match op {
            OpCode::CREATE => Disposition::Outage(Duration::from_secs(60)),
            _ => Disposition::Answered,
        });
        let create = zk.create("/a/b/n-", b"").mode(CreateMode::EphemeralSequential);
        let create = create.protected().parents().timeout(Duration::from_secs(1));
        let begun = Instant::now();
        assert!(create.await.is_err());
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    });
}
