//! `proclaim`, and `check` and `release` of durable locks, whatever befalls each of their requests, and those that the
//! client makes of its own accord meanwhile.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;
use zk_locks::{
    CheckError, Client, DurableGuard, DurableLock, Election, LockObserver, Lost, ReadError,
    Rejection, Release, ReleaseError, Status, WriteError,
};
use zk_tests::{
    network::{Disposition, Network, pass},
    test_with,
};

use crate::locks::support::{client_on, in_virtual_time, within};

/// More than any operation here makes.
const REQUESTS: usize = 6;

/// Enough for servers to be reached again, or for the session to be over.
const A_MINUTE: Duration = Duration::from_secs(60);

/// Shorter than the lease of a session, longer than that, and longer than the session.
const OUTAGES: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(7), Duration::from_secs(20)];

/// What befalls a request.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    With(Disposition),
    /// It arrives, and the session ends before the answer does.
    Expiry,
}

fn troubles() -> impl Iterator<Item = Trouble> {
    use Disposition::{AnswerLost, Late, Lost, Outage, Throttled};
    let short = [AnswerLost, Lost, Throttled, Late(OUTAGES[0])];
    let all = short.into_iter().chain(OUTAGES.map(Outage));
    all.map(Trouble::With).chain([Trouble::Expiry])
}

/// Has something befall the request of `a` with this number.
fn befall(network: &Network, zk: &Client, trouble: Trouble, number: usize) {
    let (ends, session) = (network.clone(), zk.session().id());
    let mut count = 0;
    network.direct(move |name, _| {
        if name != "a" {
            return Disposition::Answered;
        }
        count += 1;
        match trouble {
            _ if count != number + 1 => Disposition::Answered,
            Trouble::With(disposition) => disposition,
            Trouble::Expiry => {
                let ends = ends.clone();
                tokio::spawn(async move { ends.expire(session) });
                Disposition::Late(Duration::from_millis(1))
            }
        }
    });
}

/// Runs a test for each request and each trouble, with a path.
async fn each(network: &Network, test: impl AsyncFn(Client, &str, Box<dyn Fn(&Client)>)) {
    for number in 0..REQUESTS {
        for (index, trouble) in troubles().enumerate() {
            network.direct(|_, _| Disposition::Answered);
            let (zk, path) = (client_on(network, "a").await, format!("/{number}-{index}"));
            println!("request {number}: {trouble:?}");
            let network = network.clone();
            test(zk, &path, Box::new(move |zk| befall(&network, zk, trouble, number))).await;
        }
    }
}

/// A node, if it is there.
async fn read(zk: &Client, path: &str) -> Option<(Vec<u8>, i64)> {
    match within(zk.get(path)).await {
        Ok((data, stat)) => Some((data.to_vec(), stat.czxid.0)),
        Err(ReadError::Rejected(Rejection::NoNode)) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test_with(in_virtual_time)]
async fn proclaim_tells_what_has_been_written(network: Network) {
    let others = client_on(&network, "b").await;
    for is_watched in [false, true] {
        let leading = async |zk: Client, path: &str, befall: Box<dyn Fn(&Client)>| {
            let path = format!("{path}-{is_watched}");
            let lead = within(Election::new(&zk, &path).campaign(b"old")).await.unwrap();
            if is_watched {
                pass(OUTAGES[0]).await;
            }
            befall(&zk);
            let said = within(lead.proclaim(b"new")).await;
            let status = lead.status();
            // Nothing is under way any more, and a session that is over has lost its nodes.
            pass(A_MINUTE).await;
            let there = read(&others, lead.path()).await;
            let text = there.as_ref().map(|(data, _)| &data[..]);
            match &said {
                Ok(stat) => {
                    assert!(!matches!(status, Status::Lost(_)));
                    assert_eq!((stat.czxid.0, stat.version), (lead.token().get(), 1));
                    assert!(text.is_none_or(|text| text == b"new"), "{there:?}");
                }
                Err(CheckError::Lost(lost)) => assert_eq!(status, Status::Lost(*lost)),
                Err(CheckError::Unavailable(WriteError::NotApplied(_))) => {
                    assert!(text.is_none_or(|text| text == b"old"), "{there:?}");
                }
                Err(CheckError::Unavailable(WriteError::InDoubt { .. })) => {}
                Err(error) => panic!("{error}"),
            }
            // It does no harm to say it again.
            match within(lead.proclaim(b"new")).await {
                Ok(_) => assert_eq!(read(&others, lead.path()).await.unwrap().0, b"new"),
                Err(CheckError::Lost(_)) => assert!(matches!(lead.status(), Status::Lost(_))),
                Err(error) => panic!("all is well: {error}"),
            }
        };
        each(&network, leading).await;
    }
}

/// How each hold has ended.
#[derive(Default)]
struct Ends(Mutex<Vec<Option<Lost>>>);

impl LockObserver for Ends {
    fn released(&self, release: &Release<'_>) {
        self.0.lock().unwrap().push(release.lost);
    }
}

/// Shorter than that of the session.
const LEASE: Duration = Duration::from_secs(4);

async fn durable(zk: &Client, path: &str) -> (DurableGuard, Arc<Ends>) {
    let ends = Arc::new(Ends::default());
    let lock = DurableLock::builder(zk, path).observer(ends.clone()).build().lease(LEASE);
    (within(lock.acquire()).await.unwrap(), ends)
}

#[test_with(in_virtual_time)]
async fn durable_check_tells_what_is_held(network: Network) {
    let others = client_on(&network, "b").await;
    each(&network, async |zk, path, befall| {
        let (guard, _) = durable(&zk, path).await;
        befall(&zk);
        let since = Instant::now();
        let said = within(guard.check()).await;
        assert!(since.elapsed() <= LEASE, "it is lost by then: {:?}", since.elapsed());
        match said {
            Ok(()) => assert!(matches!(guard.status(), Status::Held | Status::Suspect { .. })),
            Err(CheckError::Lost(lost)) => assert_eq!(guard.status(), Status::Lost(lost)),
            Err(CheckError::Unavailable(WriteError::Rejected(rejection))) => panic!("{rejection}"),
            Err(_) => {}
        }
        // No other client has taken it: the grant stays, with its number.
        let there = read(&others, guard.path()).await.expect("nobody has deleted it");
        assert_eq!(there.1, guard.token().get());
        pass(A_MINUTE).await;
        match within(guard.check()).await {
            Ok(()) => assert!(guard.lease_left() > Duration::ZERO),
            Err(CheckError::Lost(Lost::LeaseRanOut)) => assert!(guard.lease_left().is_zero()),
            Err(error) => panic!("all is well: {error}"),
        }
    })
    .await;
}

/// A release that succeeds is none of a lock that was lost, whatever the client hears meanwhile, and whenever the caller
/// looks at the outcome.
#[test_with(in_virtual_time)]
async fn durable_release_frees_or_says_so(network: Network) {
    let others = client_on(&network, "b").await;
    for looks_late in [false, true] {
        let releasing = async |zk: Client, path: &str, befall: Box<dyn Fn(&Client)>| {
            let path = format!("{path}-{looks_late}");
            let (guard, ends) = durable(&zk, &path).await;
            let node = guard.path().to_owned();
            befall(&zk);
            let released = guard.release();
            if looks_late {
                pass(LEASE / 2).await;
            }
            let said = within(released).await;
            let is_there = read(&others, &node).await.is_some();
            match &said {
                Ok(()) => assert!(!is_there, "it is said to be free"),
                // Whether it has arrived is not known then.
                Err(ReleaseError::SessionEnded(_)) => {}
                Err(error) => panic!("nobody refuses it: {error}"),
            }
            assert_eq!(*ends.0.lock().unwrap(), [None], "{said:?}");
            if said.is_ok() {
                let next = DurableLock::new(&others, &path, "another");
                let next = within(next.try_acquire()).await.unwrap().expect("it is free");
                within(next.release()).await.unwrap();
            }
        };
        each(&network, releasing).await;
    }
}
