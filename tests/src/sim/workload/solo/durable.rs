//! The durable lock: it is its owner's, however long the session of that lasts, as long as its lease does.

use std::time::Duration;

use zk_locks::{DurableGuard, DurableLock, Lost, Status};

use super::{Cut, Known, Solo};
use crate::sim::{check::ROUNDING, pass};

/// Names of owners, of which some are longer in bytes than in characters.
const OWNERS: [&str; 3] = ["ann", "Åsa Öberg", "名前"];

/// The name of the one who asks for what is taken.
const OTHER: &str = "bob";

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let lease = Duration::from_millis(solo.worker.rng.scaled(2_000, 60_000));
    let owner = *solo.worker.rng.pick(&OWNERS);
    let [lock, again, other] = [owner, owner, OTHER].map(|owner| {
        let builder = DurableLock::builder(&solo.worker.client, &solo.path);
        solo.set_up(builder).owned_by(owner).lease(lease)
    });
    let guard = lock.acquire().await;
    let guard = solo.had("taking", guard)?;
    let left = guard.lease_left();
    // Whoever holds it stops a tenth before others take it.
    let fits = left <= lease - lease / 10 + Duration::from_millis(ROUNDING);
    solo.expect("S4", fits, format_args!("counts on {left:?} of {lease:?}"))?;
    shows(solo, &lock, owner, lease, &guard).await?;
    for _ in 0..solo.worker.rng.below(4) {
        let wait = solo.worker.rng.scaled(1, lease.as_millis() as u64);
        pass(wait).await;
        taken(solo, &other, &guard).await?;
    }
    match solo.worker.rng.below(3) {
        0 => taken_over(solo, &again, guard).await,
        1 => given_up(solo, &other, guard).await,
        _ => {
            let before = guard.token();
            solo.released(guard.release().await)?;
            let next = other.acquire().await;
            let next = solo.had("taking", next)?;
            solo.expect("S1", next.token() > before, format_args!("{before} is not followed"))?;
            solo.released(next.release().await)
        }
    }
}

/// It is held, unless its lease has run out or the session is over.
fn holds(solo: &Solo, guard: &DurableGuard) -> Known<()> {
    match guard.status() {
        Status::Lost(Lost::LeaseRanOut) => Err(Cut::Failed),
        Status::Lost(lost) => solo.wrong("E1", format_args!("is told {lost}, and nobody took it")),
        _ => Ok(()),
    }
}

/// Others see who has it, and for how long.
async fn shows(
    solo: &Solo,
    lock: &DurableLock,
    owner: &str,
    lease: Duration,
    guard: &DurableGuard,
) -> Known<()> {
    let holder = lock.holder().await;
    holds(solo, guard)?;
    let holder = solo.read(holder)?;
    let fits = holder.as_ref().is_some_and(|it| {
        it.owner == owner && it.lease == Some(lease) && it.token == guard.token()
    });
    solo.expect("E1", fits, format_args!("{owner} has it for {lease:?}, not {holder:?}"))
}

/// Another owner does not get it.
async fn taken(solo: &Solo, other: &DurableLock, guard: &DurableGuard) -> Known<()> {
    let taken = other.try_acquire().await;
    let token = guard.token();
    match solo.had("looking at", taken)? {
        // It may have waited for the connection until the lease was over.
        Some(taken) if matches!(guard.status(), Status::Lost(Lost::LeaseRanOut)) => {
            solo.expect("S1", taken.token() > token, format_args!("{token} is not followed"))?;
            solo.released(taken.release().await)?;
            Err(Cut::Failed)
        }
        Some(taken) => {
            solo.wrong("S2", format_args!("{} is granted beside {token}", taken.token()))
        }
        None => holds(solo, guard),
    }
}

/// Its owner takes it elsewhere, of which the guard is told.
async fn taken_over(solo: &Solo, again: &DurableLock, guard: DurableGuard) -> Known<()> {
    let before = guard.token();
    let next = again.acquire().await;
    let next = solo.had("taking", next)?;
    solo.expect("S1", next.token() > before, format_args!("{before} is not followed"))?;
    solo.is_told_of_its_loss(guard.lost()).await?;
    solo.released(next.release().await)
}

/// One waits for it, and has it when it is released.
async fn given_up(solo: &Solo, other: &DurableLock, guard: DurableGuard) -> Known<()> {
    let before = guard.token();
    let wait = other.acquire();
    tokio::pin!(wait);
    let early = tokio::select! {
        biased;
        early = &mut wait => Some(early),
        () = pass(super::SOON) => None,
    };
    if let Some(early) = early {
        drop(solo.had("waiting for", early)?);
        holds(solo, &guard)?;
        return solo.wrong("S2", format_args!("does not wait"));
    }
    solo.released(guard.release().await)?;
    let next = wait.await;
    let next = solo.had("waiting for", next)?;
    solo.expect("S1", next.token() > before, format_args!("{before} is not followed"))?;
    solo.released(next.release().await)
}
