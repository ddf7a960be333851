//! How many permits of a semaphore there are, which nodes take them, and in which order they are granted.

use std::time::Duration;

use zk_locks::{AcquireError, Client, Contender, Semaphore};
use zk_tests::{
    network::{Network, pass},
    test_with,
};

use crate::locks::support::{client_on, in_virtual_time, within};

/// Enough for all that follows from a change.
const A_WHILE: Duration = Duration::from_secs(3);

/// As other programs may write it: it counts as zero.
#[test_with(in_virtual_time)]
async fn negative_count_gives_no_permit(network: Network) {
    let zk = client_on(&network, "ours").await;
    zk.create("/count", &[255; 4]).await.unwrap();
    let semaphore = Semaphore::new(&zk, "/permits", 3).counted_at("/count");
    assert!(within(semaphore.try_acquire()).await.unwrap().is_none());
    let late = semaphore.acquire_timeout(A_WHILE).await;
    assert_eq!(late.map(drop), Err(AcquireError::TimedOut));
    let waiting = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire().await }
    });
    pass(A_WHILE).await;
    assert!(!waiting.is_finished());
    within(semaphore.resize(1)).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
}

/// Contenders for few permits do not pass an earlier one for many, also if it asks for more than there are.
#[test_with(in_virtual_time)]
async fn one_permit_is_granted_behind_many(network: Network) {
    let [first, second, third] = ["first", "second", "third"].map(|it| client_on(&network, it));
    let (first, second, third) = (first.await, second.await, third.await);
    let semaphore = |zk: &Client| Semaphore::new(zk, "/permits", 0).counted_at("/count");
    within(semaphore(&third).resize(3)).await.unwrap();
    for (held, wanted) in [(1, 3), (0, 5_u8)] {
        let held = within(semaphore(&third).acquire_many(held)).await.unwrap();
        let many = semaphore(&first);
        let many = tokio::spawn(async move { many.acquire_many(wanted.into()).await });
        pass(A_WHILE).await;
        let one = semaphore(&second);
        let one = tokio::spawn(async move { one.acquire().await });
        pass(A_WHILE).await;
        assert!(!many.is_finished() && !one.is_finished(), "{wanted} of 3");
        assert!(within(semaphore(&third).try_acquire()).await.unwrap().is_none());

        within(held.release()).await.unwrap();
        within(semaphore(&third).resize(wanted.into())).await.unwrap();
        pass(A_WHILE).await;
        assert!(many.is_finished() && !one.is_finished(), "{wanted} of {wanted}");
        let many = within(many).await.unwrap().unwrap();
        assert_eq!(many.len(), usize::from(wanted));
        within(many.release()).await.unwrap();
        within(within(one).await.unwrap().unwrap().release()).await.unwrap();
    }
}

#[test_with(in_virtual_time)]
async fn waiters_are_listed_in_their_order(network: Network) {
    let zk = client_on(&network, "holder").await;
    let semaphore = |zk: &Client, name: &str| {
        Semaphore::builder(zk, "/permits").description(name).build().with_permits(1)
    };
    let held = within(semaphore(&zk, "holder").acquire()).await.unwrap();
    let names = ["first", "second", "third", "fourth"];
    let mut waiting = Vec::new();
    for name in names {
        let waits = semaphore(&client_on(&network, name).await, name);
        waiting.push(tokio::spawn(async move { waits.acquire().await }));
        pass(A_WHILE).await;
    }
    let operator = semaphore(&zk, "operator");
    let described = |listed: Vec<Contender>| -> Vec<String> {
        listed.iter().map(|one| one.description().into_owned()).collect()
    };
    assert_eq!(described(within(operator.waiters()).await.unwrap()), names);
    assert_eq!(described(within(operator.holders()).await.unwrap()), ["holder"]);
    within(held.release()).await.unwrap();
    let _first = within(waiting.remove(0)).await.unwrap().unwrap();
    assert_eq!(described(within(operator.waiters()).await.unwrap()), names[1..]);
    assert_eq!(described(within(operator.holders()).await.unwrap()), names[..1]);
}

/// Whatever stands among the permits, it is none to be had.
#[test_with(in_virtual_time)]
async fn node_without_a_number_takes_a_permit(network: Network) {
    let zk = client_on(&network, "ours").await;
    let by_hand = "/permits/leases/by-hand";
    zk.create(by_hand, b"").parents().await.unwrap();
    let [one, two] = [1, 2].map(|permits| Semaphore::new(&zk, "/permits", permits));
    assert_eq!(within(one.holders()).await.unwrap(), []);
    assert!(within(one.try_acquire()).await.unwrap().is_none());
    let late = one.acquire_timeout(A_WHILE).await;
    assert_eq!(late.map(drop), Err(AcquireError::TimedOut));
    pass(A_WHILE).await;
    let permit = within(two.try_acquire()).await.unwrap().expect("there is a second one");
    assert!(within(two.try_acquire()).await.unwrap().is_none());
    assert_eq!(within(two.holders()).await.unwrap().len(), 1);
    within(permit.release()).await.unwrap();
    zk.delete(by_hand).await.unwrap();
    let permit = within(one.try_acquire()).await.unwrap().expect("it is free");
    within(permit.release()).await.unwrap();
}
