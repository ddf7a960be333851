//! Asking for a lock back, taking it away, and making its path anew.

use std::time::Duration;

use zk_client::{AclList, CreateMode, Id, Perms};
use zk_locks::{
    AcquireError, Client, Contender, DoubleBarrier, ForeignNodes, Layout, Lock, Lost, Names, Queue,
    RwLock, Semaphore, zk_client,
};
use zk_proto::OpCode;
use zk_testkit::proxy::Match;
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{
    Setup, client_on, emptied, in_virtual_time, joined, on_each_release, within,
};

/// How long a place is there before it is asked for, and before it is traded: the nodes of longer waits are watched.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(3)];

async fn contender(lock: &Lock, index: usize) -> Contender {
    lock.queue().contenders().await.unwrap().remove(index)
}

/// Scenario 55.
#[test_with(on_each_release)]
async fn holder_sees_a_revocation_at_any_time(setup: Setup) {
    let path = setup.existing("revoked").await;
    let zk = setup.client().await;
    let lock = Lock::new(&zk, &path);
    let queue = Lock::new(&setup.outsider, &path).queue();

    // While it is held, with and without a task that awaits the loss.
    let guard = within(lock.acquire()).await.unwrap();
    let holder = contender(&lock, 0).await;
    let ask = async { assert!(queue.revoke(&holder).await.unwrap()) };
    let scope = guard.scope(guard.revoked());
    let (revoked, ()) = within(async { tokio::join!(scope, ask) }).await;
    assert_eq!(revoked, Ok(Ok(())));
    assert_eq!(within(guard.revoked()).await, Ok(()));

    // While it is waited for.
    let mut ticket = within(lock.enqueue()).await.unwrap();
    assert!(queue.revoke(&contender(&lock, 1).await).await.unwrap());
    within(guard.release()).await.unwrap();
    let guard = within(ticket.wait()).await.unwrap();
    assert_eq!(within(guard.revoked()).await, Ok(()));

    // When it is held no more.
    let holder = contender(&lock, 0).await;
    within(guard.release()).await.unwrap();
    assert!(!queue.revoke(&holder).await.unwrap());
    emptied(&setup.outsider, &path).await;
}

/// The place for which it was asked is traded for the permit.
#[test_with(in_virtual_time)]
async fn permit_that_was_asked_back_in_the_queue_is_revoked(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    for (number, pause) in PAUSES.into_iter().enumerate() {
        let path = format!("/permits-{number}");
        let held = within(Semaphore::new(&other, &path, 1).acquire()).await.unwrap();
        let semaphore = Semaphore::new(&zk, &path, 1);
        let waiting = tokio::spawn(async move { semaphore.acquire().await });
        joined(&other, &format!("{path}/locks"), 1).await;
        pass(pause).await;
        let queue = Queue::new(&other, &format!("{path}/locks"));
        let waits = queue.contenders().await.unwrap().remove(0);
        assert!(queue.revoke(&waits).await.unwrap());
        pass(pause).await;
        within(held.release()).await.unwrap();
        let permit = within(waiting).await.unwrap().unwrap();
        assert_eq!(within(permit.revoked()).await, Ok(()), "{pause:?}");
    }
}

/// Others that write something else into it ask for nothing.
#[test_with(in_virtual_time)]
async fn place_with_other_data_is_traded(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let held = within(Semaphore::new(&other, "/permits", 1).acquire()).await.unwrap();
    let semaphore = Semaphore::new(&zk, "/permits", 1);
    let waiting = tokio::spawn(async move { semaphore.acquire().await });
    joined(&other, "/permits/locks", 1).await;
    let name = other.children("/permits/locks").await.unwrap().0.remove(0);
    other.set(&format!("/permits/locks/{name}"), b"a note").await.unwrap();
    within(held.release()).await.unwrap();
    let permit = within(waiting).await.unwrap().unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(5), permit.revoked()).await.is_err());
    let written = within(RwLock::new(&zk, "/rw").write()).await.unwrap();
    other.set(written.path(), b"a note").await.unwrap();
    let read = within(written.downgrade()).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(5), read.revoked()).await.is_err());
}

/// It is asked back by the node for reading, while the upgrade waits for another reader.
#[test_with(in_virtual_time)]
async fn upgraded_lock_that_was_asked_back_is_revoked(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    for pause in PAUSES {
        let reading = within(RwLock::new(&zk, "/rw").read()).await.unwrap();
        let theirs = within(RwLock::new(&other, "/rw").read()).await.unwrap();
        pass(pause).await;
        let upgrade = tokio::spawn(reading.try_upgrade());
        joined(&other, "/rw", 3).await;
        let queue = Queue::new(&other, "/rw");
        let first = queue.contenders().await.unwrap().remove(0);
        assert!(queue.revoke(&first).await.unwrap());
        pass(pause).await;
        within(theirs.release()).await.unwrap();
        let writing = within(upgrade).await.unwrap().unwrap();
        assert_eq!(within(writing.revoked()).await, Ok(()), "{pause:?}");
        within(writing.release()).await.unwrap();
        emptied(&other, "/rw").await;
    }
}

/// The holder has not heard of it when it becomes a holder of another kind.
#[test_with(on_each_release)]
async fn conversion_of_a_lock_that_is_being_asked_back_is_revoked(setup: Setup) {
    let path = setup.existing("converted").await;
    let (zk, queue) = (setup.client().await, Queue::new(&setup.outsider, &path));
    let ask = async || {
        let holder = queue.contenders().await.unwrap().remove(0);
        assert!(queue.revoke(&holder).await.unwrap());
    };
    let written = within(RwLock::new(&zk, &path).write()).await.unwrap();
    ask().await;
    let read = within(written.downgrade()).await.unwrap();
    assert_eq!(within(read.revoked()).await, Ok(()));
    within(read.release()).await.unwrap();
    let read = within(RwLock::new(&zk, &path).read()).await.unwrap();
    ask().await;
    let written = within(read.try_upgrade()).await.unwrap();
    assert_eq!(within(written.revoked()).await, Ok(()));
}

/// It is asked to leave before the others have come.
#[test_with(in_virtual_time)]
async fn participant_that_was_asked_to_leave_is_revoked(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let [first, second] = [&zk, &other].map(|zk| DoubleBarrier::new(zk, "/double", 2));
    let first = tokio::spawn(async move { first.enter().await });
    pass(Duration::from_secs(3)).await;
    let name = other.children("/double").await.unwrap().0.remove(0);
    other.set(&format!("/double/{name}"), b"__REVOKE__").await.unwrap();
    pass(Duration::from_secs(3)).await;
    let second = within(second.enter()).await.unwrap();
    let first = within(first).await.unwrap().unwrap();
    assert_eq!(within(first.revoked()).await, Ok(()));
    drop(second);
}

#[test_with(on_each_release)]
async fn unrelated_write_is_no_revocation(setup: Setup) {
    let path = setup.existing("written").await;
    let guard = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    setup.outsider.set(guard.path(), b"something else").await.unwrap();
    setup.outsider.delete(guard.path()).await.unwrap();
    assert_eq!(within(guard.revoked()).await, Err(Lost::NodeDeleted));
}

#[test_with(on_each_release)]
async fn eviction_needs_the_observed_token(setup: Setup) {
    let path = setup.existing("evicted").await;
    let lock = Lock::new(&setup.outsider, &path);
    let queue = lock.queue();
    let guard = within(lock.acquire()).await.unwrap();
    let mut next = within(lock.enqueue()).await.unwrap();
    let seen = contender(&lock, 0).await;
    let mut another = seen.clone();
    another.token = contender(&lock, 1).await.token;
    assert!(!queue.evict(&another).await.unwrap());
    assert!(queue.evict(&seen).await.unwrap());
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
    assert!(!queue.evict(&seen).await.unwrap());
    let next = within(next.wait()).await.unwrap();
    assert!(next.token() > guard.token());
    drop(guard);
    within(next.release()).await.unwrap();
}

/// Its name is another's by then.
#[test_with(on_each_release)]
async fn later_node_of_the_name_is_not_asked_for_the_lock(setup: Setup) {
    let path = setup.existing("asked").await;
    let zk = &setup.outsider;
    let bare = Lock::builder(zk, &path).layout(Layout::Bare).build();
    for lock in [bare, Lock::named(zk, &path, "report").build()] {
        let first = within(lock.acquire()).await.unwrap();
        let seen = contender(&lock, 0).await;
        assert!(lock.queue().revoke(&seen).await.unwrap());
        let name = first.path().to_owned();
        within(first.release()).await.unwrap();
        zk.delete(&path).await.unwrap();
        zk.create(&path, b"").await.unwrap();
        let second = within(lock.acquire()).await.unwrap();
        assert_eq!(second.path(), name);
        assert!(!lock.queue().revoke(&seen).await.unwrap());
        assert!(!Queue::new(zk, &path).revoke(&seen).await.unwrap());
        assert_eq!(zk.exists(&name).await.unwrap().unwrap().version, 0);
        within(second.release()).await.unwrap();
        zk.delete(&path).await.unwrap();
        zk.create(&path, b"").await.unwrap();
    }
}

/// Other programs' names have no id, also where ours have one.
#[test_with(on_each_release)]
async fn later_node_of_a_foreign_name_is_left_alone(setup: Setup) {
    let zk = &setup.outsider;
    let custom = Names::new("lock-").read_write("read-", "web-").marker_first();
    for (layout, prefix) in [(Layout::HostType, "web1-W-"), (Layout::Custom(custom), "web-one-")] {
        let path = setup.existing(prefix).await;
        let foreign = format!("{path}/{prefix}");
        let join = async || {
            let node = zk.create(&foreign, b"").mode(CreateMode::EphemeralSequential);
            node.await.unwrap().path
        };
        let lock = RwLock::builder(zk, &path).layout(layout).build();
        let first = join().await;
        let seen = lock.queue().contenders().await.unwrap().remove(0);
        zk.delete(&first).await.unwrap();
        zk.delete(&path).await.unwrap();
        zk.create(&path, b"").await.unwrap();
        assert_eq!(join().await, first);
        assert!(!lock.queue().revoke(&seen).await.unwrap(), "{layout:?}");
        assert!(!lock.queue().evict(&seen).await.unwrap(), "{layout:?}");
        assert_eq!(zk.exists(&first).await.unwrap().unwrap().version, 0);
    }
}

/// Who may delete what is under the path need not be allowed to write it.
#[test_with(on_each_release)]
async fn eviction_needs_no_permission_to_write(setup: Setup) {
    let path = setup.existing("unwritable").await;
    let readable = AclList::from_iter([Id::anyone().may(Perms::READ)]);
    let lock = |zk: &Client| Lock::builder(zk, &path).layout(Layout::Bare).acl(&readable).build();
    let zk = setup.client().await;
    let guard = within(lock(&zk).acquire()).await.unwrap();
    let seen = contender(&lock(&setup.outsider), 0).await;
    assert!(lock(&setup.outsider).queue().evict(&seen).await.unwrap());
    assert_eq!(within(guard.lost()).await, Lost::NodeDeleted);
}

/// The path is made anew while the eviction is under way, and the next contender's node has the name and the version of
/// the one that was to go.
#[test_with(on_each_release)]
async fn eviction_spares_a_later_node_of_the_name(setup: Setup) {
    let path = setup.existing("reused").await;
    let (proxy, zk) = setup.proxied().await;
    let locks = |zk: &Client| {
        let bare = Lock::builder(zk, &path).layout(Layout::Bare).description("who").build();
        [bare, Lock::named(zk, &path, "report").description("who").build()]
    };
    let known = locks(&zk).map(|lock| lock.queue());
    // Who knows nothing but the path.
    let unknown = [Queue::new(&zk, &path), Queue::new(&zk, &path)];
    let ours = locks(&setup.outsider);
    for (lock, theirs) in ours.iter().zip(known).chain(ours.iter().zip(unknown)) {
        for last in [OpCode::SET_DATA, OpCode::DELETE] {
            let first = within(lock.acquire()).await.unwrap();
            let (seen, queue) = (theirs.contenders().await.unwrap().remove(0), theirs.clone());
            assert_eq!(seen.description(), "who", "without the id");
            let held = proxy.on(Match::request(last).once()).hold();
            let evicting = tokio::spawn(async move { queue.evict(&seen).await });
            within(held.fired()).await;
            let name = first.path().to_owned();
            within(first.release()).await.unwrap();
            setup.outsider.delete(&path).await.unwrap();
            setup.outsider.create(&path, b"").await.unwrap();
            let second = within(lock.acquire()).await.unwrap();
            assert_eq!(second.path(), name);
            held.release();
            assert_eq!(within(evicting).await.unwrap(), Ok(false));
            assert_eq!(within(second.check()).await, Ok(()));
            let seen = theirs.contenders().await.unwrap().remove(0);
            assert!(theirs.evict(&seen).await.unwrap());
            assert_eq!(within(second.lost()).await, Lost::NodeDeleted);
            drop(second);
            emptied(&setup.outsider, &path).await;
            setup.outsider.delete(&path).await.unwrap();
            setup.outsider.create(&path, b"").await.unwrap();
        }
    }
}

/// Scenario 45, as far as it ends well.
#[test_with(on_each_release)]
async fn exhausted_path_is_recreated_when_empty(setup: Setup) {
    let path = setup.existing("exhausted").await;
    let lock = Lock::builder(&setup.outsider, &path).rotate_at(2).build();
    let before = setup.outsider.exists(&path).await.unwrap().unwrap();
    let first = within(lock.acquire()).await.unwrap();
    let mut second = within(lock.enqueue()).await.unwrap();
    let rotating = {
        let lock = lock.clone();
        tokio::spawn(async move { lock.acquire().await })
    };
    // It has come, and left again.
    while setup.outsider.exists(&path).await.unwrap().unwrap().cversion < 4 {
        tokio::task::yield_now().await;
    }
    let old = first.token();
    within(first.release()).await.unwrap();
    let second = within(second.wait()).await.unwrap();
    assert!(!rotating.is_finished());
    within(second.release()).await.unwrap();
    let third = within(rotating).await.unwrap().unwrap();
    assert!(third.path().ends_with("-0000000000"), "{}", third.path());
    assert!(third.token() > old);
    let after = setup.outsider.exists(&path).await.unwrap().unwrap();
    assert!(after.czxid > before.czxid);
    within(third.release()).await.unwrap();
}

/// A path whose numbers have run out from the beginning is made anew, and used as it is.
#[test_with(on_each_release)]
async fn path_without_numbers_is_recreated_once(setup: Setup) {
    let path = setup.existing("no-numbers").await;
    let before = setup.outsider.exists(&path).await.unwrap().unwrap();
    let lock = Lock::builder(&setup.outsider, &path).rotate_at(0).build();
    let guard = within(lock.acquire()).await.unwrap();
    assert!(guard.path().ends_with("-0000000000"), "{}", guard.path());
    let after = setup.outsider.exists(&path).await.unwrap().unwrap();
    assert!(after.czxid > before.czxid);
    within(guard.release()).await.unwrap();
}

/// Who may use a lock, and what is said there, is not for those to change who use it.
#[test_with(on_each_release)]
async fn renewed_path_has_the_data_and_permissions_of_the_old_one(setup: Setup) {
    let path = setup.existing("own").await;
    let zk = &setup.outsider;
    let perms = Perms::READ | Perms::CREATE | Perms::DELETE | Perms::ADMIN;
    let acl: AclList = [Id::anyone().may(perms)].into_iter().collect();
    zk.set(&path, b"of the team").await.unwrap();
    zk.set_acl(&path, &acl).await.unwrap();
    let before = zk.exists(&path).await.unwrap().unwrap();
    let guard = within(Lock::builder(zk, &path).rotate_at(0).build().acquire()).await.unwrap();
    let (data, after) = zk.get(&path).await.unwrap();
    assert!(after.czxid > before.czxid);
    assert_eq!((&*data, zk.acl(&path).await.unwrap().0), (&b"of the team"[..], acl));
    within(guard.release()).await.unwrap();
}

/// Those who may not change a list see no hashes in it, and cannot write it back: such a path is used as it is.
#[test_with(on_each_release)]
async fn list_without_its_hashes_is_not_written_back(setup: Setup) {
    let (admin, zk) = (&setup.outsider, setup.client().await);
    zk.add_auth("digest", "ann:secret").await.unwrap();
    let perms = Perms::READ | Perms::WRITE | Perms::CREATE | Perms::DELETE;
    let ann = Id::digest("ann", "7RJfAeIvrl4zdj6sS2fXrQHDvHM=");
    let other = Id::digest("other", "qJ7HQqzpyLxCuC/lYhQGu1yzMK0=");
    let own: AclList = [ann.clone().may(perms)].into_iter().collect();
    let open: AclList = [Id::anyone().may(Perms::ALL)].into_iter().collect();
    let mixed: AclList = [other.may(Perms::ALL), Id::anyone().may(perms)].into_iter().collect();
    for (name, acl, ours, is_renewed) in [
        ("own", &own, &own, true),
        ("own-to-all", &own, &open, false),
        ("mixed", &mixed, &own, false),
    ] {
        let path = setup.existing(name).await;
        admin.set_acl(&path, acl).await.unwrap();
        let (_, before) = zk.acl(&path).await.unwrap();
        let lock = Lock::builder(&zk, &path).acl(ours).rotate_at(0).build();
        for _ in 0..2 {
            let guard = within(lock.acquire()).await.unwrap();
            within(guard.release()).await.unwrap();
        }
        let (_, after) = zk.acl(&path).await.unwrap();
        assert_eq!(after.czxid > before.czxid, is_renewed, "{name}");
    }
}

/// Scenario 44.
#[test_with(on_each_release)]
async fn foreign_nodes_are_handled_as_configured(setup: Setup) {
    let path = setup.existing("strangers").await;
    let zk = &setup.outsider;
    let member = format!("{path}/member-");
    let member = zk.create(&member, b"").mode(CreateMode::EphemeralSequential).await.unwrap();
    zk.create(&format!("{path}/meta"), b"").await.unwrap();
    let lock = |strangers| Lock::builder(zk, &path).foreign_nodes(strangers).build();

    let refused = lock(ForeignNodes::Refuse).acquire().await;
    assert!(matches!(refused, Err(AcquireError::Stranger { .. })), "{refused:?}");
    joined(zk, &path, 2).await;

    assert!(lock(ForeignNodes::Wait).try_acquire().await.unwrap().is_none());
    let guard = within(lock(ForeignNodes::Ignore).acquire()).await.unwrap();
    within(guard.release()).await.unwrap();
    zk.delete(&member.path).await.unwrap();
    let guard = within(lock(ForeignNodes::Wait).acquire()).await.unwrap();
    within(guard.release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn named_locks_share_only_a_path(setup: Setup) {
    let path = setup.existing("shared").await;
    let lock = |name| Lock::named(&setup.outsider, &path, name).build();
    let report = within(lock("report").acquire()).await.unwrap();
    let backup = within(lock("backup").acquire()).await.unwrap();
    assert!(lock("report").try_acquire().await.unwrap().is_none());
    // As others call them.
    let theirs = format!("{path}/restore_lock_");
    let mode = CreateMode::EphemeralSequential;
    let theirs = setup.outsider.create(&theirs, b"").mode(mode).await.unwrap();
    assert!(lock("restore").try_acquire().await.unwrap().is_none());
    setup.outsider.delete(&theirs.path).await.unwrap();
    let restore = within(lock("restore").acquire()).await.unwrap();
    assert_eq!(lock("report").queue().contenders().await.unwrap().len(), 1);
    for guard in [report, backup, restore] {
        within(guard.release()).await.unwrap();
    }
}
