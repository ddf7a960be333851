//! How long durable locks are held: renewals that are answered late, and clocks that run while timers do not.

use std::time::Duration;

use zk_locks::{DurableGuard, DurableLock, Lost, Status};
use zk_proto::OpCode;
use zk_tests::network::{Disposition, Name, Network, pass};

use crate::locks::support::in_virtual_time;

const ME: Name = "me";

const LEASE: Duration = Duration::from_secs(12);

/// So long that the next renewal would come too late, if the lease were counted from the answer.
const LATE: Duration = Duration::from_secs(7);

/// Takes a durable lock over a network that does to each request what `befalls` says.
async fn held(
    network: &Network,
    mut befalls: impl FnMut(OpCode) -> Disposition + Send + 'static,
) -> DurableGuard {
    let options = network.options(ME, "", 1).session_timeout(Duration::from_secs(20));
    let zk = options.connect().await.unwrap();
    network.direct(move |name, op| match name == ME {
        true => befalls(op),
        false => Disposition::Answered,
    });
    DurableLock::new(&zk, "/l", "me").lease(LEASE).acquire().await.unwrap()
}

/// What happens to the first requests of this kind, one after the other.
fn first_ones(
    kind: OpCode,
    befalls: impl IntoIterator<Item = Disposition>,
) -> impl FnMut(OpCode) -> Disposition {
    let mut befalls: Vec<_> = befalls.into_iter().collect();
    befalls.reverse();
    move |op| match op == kind {
        true => befalls.pop().unwrap_or(Disposition::Answered),
        false => Disposition::Answered,
    }
}

#[test]
fn grant_that_is_answered_late_is_renewed_in_time() {
    in_virtual_time(async |network| {
        let guard = held(&network, first_ones(OpCode::MULTI, [Disposition::Outage(LATE)])).await;
        pass(5 * LEASE).await;
        assert_eq!(guard.status(), Status::Held);
    });
}

#[test]
fn renewal_that_is_answered_late_brings_the_next_one_forward() {
    in_virtual_time(async |network| {
        let late = [6, 4].map(|seconds| Disposition::Late(Duration::from_secs(seconds)));
        let guard = held(&network, first_ones(OpCode::SET_DATA, late)).await;
        pass(5 * LEASE).await;
        assert_eq!(guard.status(), Status::Held);
    });
}

/// A renewal that was still to be sent when the lease ended would keep others waiting for another lease.
#[test]
fn lost_lock_is_not_renewed() {
    in_virtual_time(async |network| {
        let guard = held(&network, |_| Disposition::Answered).await;
        let data = || {
            network.look(|servers| {
                let tree = servers.tree(servers.newest()).unwrap();
                tree.get(guard.path()).unwrap().stat()
            })
        };
        network.cut(ME);
        assert_eq!(guard.lost().await, Lost::LeaseRanOut);
        let before = data();
        network.heal();
        pass(LEASE).await;
        assert_eq!(data(), before);
    });
}
