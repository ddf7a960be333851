//! Group members, and nodes that come back.

use std::time::Duration;

use tokio::sync::watch;
use zk_client::{ConnectError, CreateMode};
use zk_locks::{Group, GroupMember, Layout, Lost, NodeState, PersistentNode};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{
    busy::too_busy_for,
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, closed, in_virtual_time, joined, on_each_release, ops, options_for, within,
};

fn data(members: &[GroupMember]) -> Vec<&[u8]> {
    members.iter().map(|member| &*member.data).collect()
}

#[test_with(on_each_release)]
async fn group_follower_sees_every_change(setup: Setup) {
    let path = setup.path("missing/group");
    let (proxy, zk) = setup.proxied().await;
    let group = Group::new(&setup.outsider, &path);
    let mut follower = Group::new(&zk, &path).follow();
    assert_eq!(within(follower.next()).await.unwrap(), []);
    let first = within(group.join(b"first")).await.unwrap();
    assert_eq!(data(&within(follower.next()).await.unwrap()), [b"first"]);

    let mark = proxy.mark();
    let second = within(group.join(b"second")).await.unwrap();
    let members = within(follower.next()).await.unwrap();
    let frames = proxy.frames_since(mark);
    let expected = [OpCode::GET_CHILDREN2, OpCode::GET_DATA, OpCode::GET_DATA];
    assert_eq!(ops(&frames), expected, "{frames}");
    assert_eq!(frames.round_trips(), 2, "{frames}");
    assert_eq!(data(&members), [&b"first"[..], b"second"]);
    assert_eq!(members[0].session, setup.outsider.session().id());
    assert_eq!(members[1].joined.0, second.token().get());
    assert_eq!(group.members().await.unwrap(), members);

    within(first.release()).await.unwrap();
    assert_eq!(data(&within(follower.next()).await.unwrap()), [b"second"]);
    let operator = setup.client().await;
    operator.delete(second.path()).await.unwrap();
    assert_eq!(within(second.lost()).await, Lost::NodeDeleted);
    assert_eq!(within(follower.next()).await.unwrap(), []);
    closed(&zk).await;
    // As often as it is asked.
    for _ in 0..2 {
        within(follower.next()).await.unwrap_err();
    }
}

#[test_with(on_each_release)]
async fn kazoo_party_has_only_its_members(setup: Setup) {
    let path = setup.existing("party").await;
    setup.outsider.create(&format!("{path}/other"), b"").await.unwrap();
    let party = Group::builder(&setup.outsider, &path).layout(Layout::Kazoo).build();
    let member = within(party.join(b"us")).await.unwrap();
    assert!(member.path().contains("__party__0"), "{member:?}");
    assert_eq!(data(&party.members().await.unwrap()), [b"us"]);
    assert_eq!(Group::new(&setup.outsider, &path).members().await.unwrap().len(), 2);
    within(member.release()).await.unwrap();
}

/// Whatever it has said since.
#[test_with(in_virtual_time)]
async fn member_is_one_since_it_joined(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let membership = within(Group::new(&zk, "/group").join(b"first")).await.unwrap();
    pass(Duration::from_secs(5)).await;
    let stat = other.set(membership.path(), b"later").await.unwrap();
    assert!(stat.mtime > stat.ctime, "{stat:?}");
    let members = within(Group::new(&other, "/group").members()).await.unwrap();
    assert_eq!(data(&members), [b"later"]);
    assert_eq!((members[0].since, members[0].joined), (stat.ctime, stat.czxid));
}

async fn until(
    states: &mut watch::Receiver<NodeState>,
    wanted: impl Fn(&NodeState) -> bool,
) -> NodeState {
    within(states.wait_for(|state| wanted(state))).await.unwrap().clone()
}

/// As a former session of ours might, which the servers have not given up yet.
#[test_with(on_each_release)]
async fn taken_path_is_waited_for(setup: Setup) {
    let path = setup.path("taken");
    setup.outsider.create(&path, b"").mode(CreateMode::Ephemeral).await.unwrap();
    let node = PersistentNode::start(setup.options(), &path, b"a").await.unwrap();
    let mut states = node.subscribe();
    let by = setup.outsider.session().id();
    until(&mut states, |state| *state == NodeState::Taken { by }).await;
    setup.outsider.set(&path, b"still here").await.unwrap();
    setup.outsider.delete(&path).await.unwrap();
    within(node.present()).await;
    let owner = setup.outsider.exists(&path).await.unwrap().unwrap().ephemeral_owner;
    assert_ne!(owner, by);
    within(node.close()).await;
    assert_eq!(until(&mut states, |state| *state == NodeState::Closed).await, NodeState::Closed);
}

/// The servers have no time for a write, and another client has a node there by the time they have.
#[test_with(on_each_release)]
async fn late_write_spares_the_next_node(setup: Setup) {
    let (path, proxy) = (setup.path("late"), setup.proxy().await);
    let node = PersistentNode::start(options_for(&proxy), &path, b"ours").await.unwrap();
    within(node.present()).await;
    let busy = too_busy_for(&proxy, Match::request(OpCode::SET_DATA));
    let mut states = node.subscribe();
    node.set_data(b"ours still");
    within(busy.has_turned_away(1)).await;
    let mode = CreateMode::Ephemeral;
    let replaced = setup.outsider.multi().delete(&path).create(&path, b"theirs", mode).await;
    replaced.unwrap().unwrap();
    let by = setup.outsider.session().id();
    until(&mut states, |state| *state == NodeState::Taken { by }).await;
    drop(busy);
    let ((data, _), gone) = setup.outsider.get(&path).watch().await.unwrap();
    assert_eq!(&*data, b"theirs");
    within(node.close()).await;
    assert_eq!(setup.outsider.get(&path).await.unwrap().0, data);
    drop(gone);
}

/// Its servers have gone for longer than a session lasts, and are tried again.
#[test_with(on_each_release)]
async fn node_without_a_session_tells_why_it_has_none(setup: Setup) {
    let (path, proxy) = (setup.path("away"), setup.proxy().await);
    let options = options_for(&proxy).session_timeout(Duration::from_secs(4));
    let options = options.connect_deadline(Some(Duration::from_secs(5)));
    let node = PersistentNode::start(options, &path, b"back").await.unwrap();
    within(node.present()).await;
    let mut states = node.subscribe();
    proxy.refuse_connections().await;
    proxy.cut_all();
    let state = until(&mut states, |state| matches!(state, NodeState::Unconnected(_))).await;
    let NodeState::Unconnected(why) = state else { panic!("{state:?}") };
    assert!(matches!(why, ConnectError::TimedOut { last: Some(_) }), "{why:?}");
    assert_eq!(setup.outsider.exists(&path).await.unwrap(), None);
    proxy.accept_connections().await;
    within(node.present()).await;
    assert_eq!(&*setup.outsider.get(&path).await.unwrap().0, b"back");
    within(node.close()).await;
}

#[test_with(on_each_release)]
async fn refused_node_is_reported_and_retried(setup: Setup) {
    let parent = setup.path("parent");
    setup.outsider.create(&parent, b"").mode(CreateMode::Ephemeral).await.unwrap();
    let path = format!("{parent}/child");
    let node = PersistentNode::start(setup.options(), &path, b"").await.unwrap();
    let mut states = node.subscribe();
    until(&mut states, |state| matches!(state, NodeState::Refused(_))).await;
    setup.outsider.delete(&parent).await.unwrap();
    within(node.present()).await;
    joined(&setup.outsider, &parent, 1).await;
    within(node.close()).await;
}
