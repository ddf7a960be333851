//! A path that is made anew before its numbers end.

use zk_client::{Acl, AclList, Id, Perms};
use zk_locks::{Guard, Lock};
use zk_proto::path::parse_sequence;

use super::{Cut, Known, Solo};
use crate::sim::pass;

/// The largest number from which on paths are made anew.
const LIMIT_MAX: u64 = 5;

/// Longest time for which the last number is held, in milliseconds: less than attempts wait for an empty path.
const HELD: u64 = 5_000;

/// Of a user who is not there.
const HASH: &str = "qJ7HQqzpyLxCuC/lYhQGu1yzMK0=";

/// Attempts until one has the last number.
const ATTEMPTS: usize = 20;

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let limit = solo.worker.rng.within(1, LIMIT_MAX) as i32;
    let others = AclList::from_iter([Acl::open_unsafe(), Id::digest("ann", HASH).may(Perms::READ)]);
    let open = AclList::from_iter([Acl::open_unsafe()]);
    // What was made by hand stays as it is; what attempts make themselves may be gone in the end.
    let (data, list, stays): (&[u8], _, _) = match solo.worker.rng.below(3) {
        0 => (b"by hand", &open, true),
        1 => (b"", &others, true),
        _ => (b"", &open, false),
    };
    let made = solo.worker.client.create(&solo.path, data).parents().acl(list).await;
    made.or(Err(Cut::Failed))?;
    let builder = Lock::builder(&solo.worker.client, &solo.path).acl(&open);
    let lock = solo.set_up(builder.rotate_at(limit));
    let mut last: Option<Guard> = None;
    for _ in 0..ATTEMPTS {
        if let Some(last) = last.take() {
            solo.released(last.release().await)?;
        }
        let guard = attempt(solo, &lock, limit).await?;
        if number(&guard) == Some(limit - 1) {
            last = Some(guard);
            break;
        }
        solo.released(guard.release().await)?;
    }
    if let Some(last) = last {
        behind(solo, &lock, limit, last).await?;
    }
    if !stays {
        return Ok(());
    }
    let (shown, acl) = {
        let client = &solo.worker.client;
        (client.get(&solo.path).await, client.acl(&solo.path).await)
    };
    let ((shown, _), (acl, _)) = (solo.read(shown)?, solo.read(acl)?);
    let fits = *shown == *data && acl.iter().eq(list.iter());
    solo.expect("X4", fits, format_args!("had {data:?} and {list:?}, has {shown:?} and {acl:?}"))
}

fn number(guard: &Guard) -> Option<i32> {
    let digits = guard.path().len().checked_sub(10)?;
    parse_sequence(guard.path().get(digits..)?)
}

/// There is no other contender, so its number is small.
async fn attempt(solo: &mut Solo, lock: &Lock, limit: i32) -> Known<Guard> {
    let epoch = solo.worker.client.session().epoch();
    let guard = solo.free(lock).await?;
    // A member that is behind may show those that have gone.
    if solo.worker.client.session().epoch() == epoch {
        is_small(solo, &guard, limit)?;
    }
    Ok(guard)
}

fn is_small(solo: &Solo, guard: &Guard, limit: i32) -> Known<()> {
    let fits = number(guard).is_some_and(|number| number < limit);
    solo.expect("S3", fits, format_args!("has {}, with a limit of {limit}", guard.path()))
}

/// One that comes while the last number is in use leaves, and waits for another path.
async fn behind(solo: &mut Solo, lock: &Lock, limit: i32, last: Guard) -> Known<()> {
    let connection =
        |solo: &Solo| (solo.worker.client.session().epoch(), solo.worker.ctx.stalled());
    let before_it = connection(solo);
    let wait = lock.acquire();
    tokio::pin!(wait);
    solo.still_waits("S2", wait.as_mut(), &[&last]).await?;
    if solo.worker.rng.one_in(2) {
        let early = tokio::select! {
            biased;
            early = &mut wait => Some(early),
            () = pass(solo.worker.rng.within(1, HELD)) => None,
        };
        solo.holds(&last)?;
        if let Some(early) = early {
            drop(solo.had("waiting for", early)?);
            return solo.wrong("S2", format_args!("does not wait"));
        }
    }
    let before = last.token();
    solo.released(last.release().await)?;
    let guard = wait.await;
    let guard = solo.had("waiting for", guard)?;
    solo.expect("S1", guard.token() > before, format_args!("{before} is not followed"))?;
    // A process that stands still misses the time for it.
    if connection(solo) == before_it {
        is_small(solo, &guard, limit)?;
    }
    solo.worker.ctx.count("paths made anew");
    solo.released(guard.release().await)
}
