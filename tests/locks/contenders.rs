//! Who is in a queue, as others see it.

use std::time::Duration;

use zk_client::path;
use zk_locks::{Lock, Queue};
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{Setup, client_on, in_virtual_time, joined, on_each_release, within};

/// Whatever is written to a node later, and whoever has left in between.
#[test_with(in_virtual_time)]
async fn contender_has_its_number_and_time_of_joining(network: Network) {
    let (zk, other) = (client_on(&network, "ours").await, client_on(&network, "theirs").await);
    let (lock, queue) = (Lock::new(&zk, "/lock"), Queue::new(&other, "/lock"));
    let held = within(lock.acquire()).await.unwrap();
    pass(Duration::from_secs(3)).await;
    let gives_up = within(lock.enqueue()).await.unwrap();
    let waits = within(lock.enqueue()).await.unwrap();
    drop(gives_up);
    joined(&other, "/lock", 2).await;
    let holder = within(queue.contenders()).await.unwrap().remove(0);
    assert!(within(queue.revoke(&holder)).await.unwrap());

    let seen = within(queue.contenders()).await.unwrap();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[0].is_revoked());
    for (contender, node) in seen.iter().zip([held.path(), waits.path().unwrap()]) {
        assert_eq!(contender.name, path::name(node));
        let digits = &node[node.len() - 10..];
        assert_eq!(contender.sequence, Some(digits.parse().unwrap()), "{node}");
        let stat = other.exists(node).await.unwrap().unwrap();
        assert_eq!((contender.since, contender.token.get()), (stat.ctime, stat.czxid.0), "{node}");
    }
    assert!(seen[1].since - seen[0].since >= 3000, "in milliseconds: {seen:?}");
}

/// Neither what a name begins with nor what it ends with is another lock's.
#[test_with(on_each_release)]
async fn locks_with_alike_names_are_different(setup: Setup) {
    let path = setup.existing("alike").await;
    let lock = |name| Lock::named(&setup.outsider, &path, name).build();
    let names = ["a", "aa", "ba", "ab"];
    let mut held = Vec::new();
    for name in names {
        held.push(within(lock(name).try_acquire()).await.unwrap().expect("it is free"));
    }
    for (name, guard) in names.into_iter().zip(&held) {
        assert!(within(lock(name).try_acquire()).await.unwrap().is_none(), "{name}");
        let queue = within(lock(name).queue().contenders()).await.unwrap();
        let nodes: Vec<&str> = queue.iter().map(|contender| contender.name.as_str()).collect();
        assert_eq!(nodes, [path::name(guard.path())], "{name}");
    }
    for guard in held {
        within(guard.release()).await.unwrap();
    }
}
