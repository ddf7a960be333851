//! Everything that a recipe creates has the access control list that it was given.

use std::time::Duration;

use zk_locks::{
    Acl, AclList, Barrier, Client, CohortLock, DoubleBarrier, DurableLock, Election, Group, Lock,
    NodeState, PersistentNode, RwLock, Semaphore, SimpleLock,
};
use zk_tests::test_with;

use crate::locks::support::{Setup, on_each_release, within};

/// Looks at what is there, from here down.
async fn all_have(zk: &Client, top: &str, wanted: &AclList) -> usize {
    let (mut paths, mut count) = (vec![top.to_owned()], 0);
    while let Some(path) = paths.pop() {
        let (acl, _) = zk.acl(&path).await.unwrap();
        assert_eq!(&acl, wanted, "{path}");
        let (names, _) = zk.children(&path).await.unwrap();
        paths.extend(names.iter().map(|name| format!("{path}/{name}")));
        count += 1;
    }
    count
}

#[test_with(on_each_release)]
async fn nodes_of_recipes_have_their_list(setup: Setup) {
    let zk = setup.client().await;
    zk.add_auth("digest", "ann:secret").await.unwrap();
    let acl = AclList::from_iter([Acl::creator_all()]);
    let probe = setup.path("probe");
    zk.create(&probe, b"").acl(&acl).await.unwrap();
    let (shown, _) = zk.acl(&probe).await.unwrap();
    // What is missing above it, too.
    let top = |name: &str| setup.path(name);
    let path = |name: &str| format!("{}/deep", setup.path(name));

    let lock = Lock::builder(&zk, &path("lock")).acl(&acl).lock_delay(Duration::from_millis(1));
    let guard = within(lock.build().acquire()).await.unwrap();
    assert_eq!(all_have(&zk, &top("lock"), &shown).await, 4, "the record, too");
    within(guard.release()).await.unwrap();
    assert_eq!(all_have(&zk, &top("lock"), &shown).await, 3);

    let _read = within(RwLock::builder(&zk, &path("rw")).acl(&acl).build().read()).await.unwrap();
    assert_eq!(all_have(&zk, &top("rw"), &shown).await, 3);
    let cohort = CohortLock::builder(&zk, &path("cohort")).acl(&acl).build();
    let _cohort = within(cohort.acquire()).await.unwrap();
    assert_eq!(all_have(&zk, &top("cohort"), &shown).await, 3);
    let simple = SimpleLock::builder(&zk, &path("simple")).acl(&acl).build();
    let _simple = within(simple.acquire()).await.unwrap();
    assert_eq!(all_have(&zk, &top("simple"), &shown).await, 2);
    let durable = DurableLock::builder(&zk, &path("durable")).acl(&acl).build();
    let _durable = within(durable.acquire()).await.unwrap();
    assert_eq!(all_have(&zk, &top("durable"), &shown).await, 5, "queue, grants, and one of these");

    let semaphore = Semaphore::builder(&zk, &path("permits")).acl(&acl).build();
    let semaphore = semaphore.counted_at(&top("number"));
    semaphore.resize(2).await.unwrap();
    let _permit = within(semaphore.acquire()).await.unwrap();
    assert_eq!(all_have(&zk, &top("permits"), &shown).await, 5, "queue, permits, one of these");
    all_have(&zk, &top("number"), &shown).await;
    let double = DoubleBarrier::builder(&zk, &path("double")).acl(&acl).build();
    let _double = within(double.of(1).enter()).await.unwrap();
    assert_eq!(all_have(&zk, &top("double"), &shown).await, 4, "the sign, too");
    let barrier = Barrier::builder(&zk, &path("barrier")).acl(&acl).build();
    assert!(within(barrier.set()).await.unwrap());
    all_have(&zk, &top("barrier"), &shown).await;
    let election = Election::builder(&zk, &path("election")).acl(&acl).build();
    let leads = within(election.campaign(b"one")).await.unwrap();
    leads.proclaim(b"two").await.unwrap();
    assert_eq!(all_have(&zk, &top("election"), &shown).await, 3);
    let _member =
        within(Group::builder(&zk, &path("group")).acl(&acl).build().join(b"one")).await.unwrap();
    assert_eq!(all_have(&zk, &top("group"), &shown).await, 3);
}

/// Of a client whose list that is; also when it comes back, and with it what is missing above.
#[test_with(on_each_release)]
async fn node_that_comes_back_has_its_list(setup: Setup) {
    let acl = AclList::from_iter([Acl::creator_all()]);
    let options = setup.options().auth("digest", "ann:secret").default_acl(&acl);
    let zk = options.clone().connect().await.unwrap();
    let probe = setup.path("probe");
    zk.create(&probe, b"").await.unwrap();
    let (shown, _) = zk.acl(&probe).await.unwrap();
    let top = setup.path("top");
    let deep = format!("{top}/deep");
    let path = format!("{deep}/node");
    let node = within(PersistentNode::start(options, &path, b"")).await.unwrap();
    within(node.present()).await;
    assert_eq!(all_have(&zk, &top, &shown).await, 3);
    let mut states = node.subscribe();
    for gone in [&[&path][..], &[&path, &deep, &top]] {
        let NodeState::Present { created: before, .. } = node.state() else {
            panic!("{node:?} was there");
        };
        let multi = gone.iter().fold(zk.multi(), |multi, path| multi.delete(path));
        multi.await.unwrap().unwrap();
        let is_back = |state: &NodeState| match state {
            NodeState::Present { created, .. } => *created != before,
            _ => false,
        };
        drop(within(states.wait_for(is_back)).await.unwrap());
        assert_eq!(all_have(&zk, &top, &shown).await, 3);
    }
    within(node.close()).await;
}
