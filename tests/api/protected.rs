//! Protected creates: what is known of their nodes, what becomes of them where no search can find them, and that they wait.

use std::{mem, time::Duration};

use tokio::time::timeout;
use zk_client::{
    Acl, AclList, CallOptions, Cause, Client, Create, CreateMode, OpCode, Perms, ReadError,
    WriteError,
};
use zk_testkit::{proxy::Match, server::Config};
use zk_tests::{
    network::{Disposition, pass},
    patience::within,
    test_with,
};

use super::promises::{ME, MOMENT, connected, play};
use crate::api::{Place, behind_proxy, on_each_release};

fn numbered<'a>(zk: &'a Client, path: &'a str) -> Create<'a> {
    zk.create(path, b"12345").mode(CreateMode::EphemeralSequential)
}

/// Servers before 3.5 tell neither.
#[test_with(on_each_release)]
async fn owner_and_length_of_a_node_are_known(server: &Place) {
    let zk = server.options().connect().await.unwrap();
    let mut nodes = Vec::new();
    // The first one finds out what servers tell.
    for _ in 0..2 {
        nodes.extend(numbered(&zk, "/p-").protected().await.unwrap().owned);
    }
    let pair = [numbered(&zk, "/q-"), numbered(&zk, "/r-")];
    nodes.extend(zk.create_all_protected(pair).await.unwrap().unwrap());
    assert_eq!(nodes.len(), 4);
    for node in nodes {
        let known = (node.stat().data_length, node.stat().ephemeral_owner);
        assert_eq!(known, (5, zk.session().id()), "{}", node.path());
    }
}

#[test_with(on_each_release)]
async fn unlistable_protected_create_is_in_doubt(server: &Place) {
    let owner = server.options().auth("digest", "ann:secret").connect().await.unwrap();
    let acl = AclList::from_iter([
        Acl::creator_all(),
        Acl { perms: Perms::CREATE | Perms::DELETE, ..Acl::open_unsafe() },
    ]);
    let (proxy, zk) = behind_proxy(server).await;
    for (parent, by_name) in [("/by-id", false), ("/by-name", true)] {
        owner.create(parent, b"").acl(&acl).await.unwrap();
        let path = format!("{parent}/unique-1-");
        let create = numbered(&zk, &path);
        let create = if by_name { create.protected_by_its_name() } else { create.protected() };
        let mark = proxy.mark();
        let lost = proxy.on(Match::reply(server.create_op()).once()).reset();
        let created = within(create).await.map(drop);
        assert!(matches!(created, Err(WriteError::InDoubt { .. })), "{parent}: {created:?}");
        assert_eq!(lost.times_fired(), 1, "{parent}");
        let frames = proxy.frames_since(mark);
        assert_eq!(frames.counts().requests(server.create_op()), 1, "{frames}");
        let (names, _) = owner.children(parent).await.unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}

/// Each answer to the search costs a connection, and so would the next.
#[test]
fn search_that_is_never_read_is_given_up() {
    play(Config::default(), async |network| {
        let zk = network.options(ME, "", 7).reply_len_max(2000).connect().await.unwrap();
        let other = network.options("other", "", 8).connect().await.unwrap();
        for number in 0..100 {
            let path = format!("/q/other-{number:040}");
            other.create(&path, b"").parents().await.unwrap();
        }
        let mut is_first = true;
        network.direct(move |_, op| match op {
            OpCode::CREATE2 if mem::take(&mut is_first) => Disposition::AnswerLost,
            _ => Disposition::Answered,
        });
        let created = timeout(Duration::from_secs(60), numbered(&zk, "/q/p-").protected()).await;
        let epochs = zk.session().epoch();
        let created = created.unwrap_or_else(|_| panic!("{epochs} connections")).map(drop);
        assert!(matches!(created, Err(WriteError::InDoubt { .. })), "{created:?}");
        assert!((3..20).contains(&epochs), "{epochs} connections");
        assert_eq!(other.children("/q").await.unwrap().0.len(), 101);
    });
}

/// Whether its client is to, or the call itself.
#[test]
fn protected_create_does_not_fail_fast() {
    play(Config::default(), async |network| {
        let zk = connected(network).await;
        let hasty = zk.with(CallOptions::new().fail_fast());
        for create in [numbered(&hasty, "/p-"), numbered(&zk, "/p-").fail_fast()] {
            network.cut(ME);
            pass(MOMENT).await;
            let gone = Err(ReadError::Unavailable(Cause::NotConnected));
            assert_eq!(hasty.exists("/").await, gone);
            let mut created = create.protected().submit();
            assert!(timeout(Duration::from_secs(1), &mut created).await.is_err(), "it waits");
            network.heal();
            within(created).await.unwrap().owned.unwrap().delete().await.unwrap();
        }
    });
}
