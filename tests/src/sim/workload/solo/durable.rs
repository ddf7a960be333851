//! The durable lock: it stays its owner's as long as its lease lasts, whatever becomes of the session.

use std::time::Duration;

use zk_locks::{AcquireError, DurableGuard, DurableLock, FencingToken, Lost, Status};

use super::{Cut, Known, Solo};
use crate::sim::{check::ROUNDING, pass};

/// Names of owners, of which some are longer in bytes than in characters.
const OWNERS: [&str; 3] = ["ann", "Åsa Öberg", "名前"];

/// The owner that asks for what is taken.
const OTHER: &str = "bob";

/// What is held, and since when, with the time for which the process had stood still by then.
struct Held {
    guard: DurableGuard,
    since: u64,
    stalled: u64,
}

/// The longest wait between two looks: three of them are over when clients are to have finished.
const WAIT_MAX: u64 = 8_000;

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    // Some are over within the waits below.
    let longest = if solo.worker.rng.one_in(2) { 2 * WAIT_MAX } else { 60_000 };
    let lease = Duration::from_millis(solo.worker.rng.scaled(2_000, longest));
    let owner = *solo.worker.rng.pick(&OWNERS);
    let [lock, again, other] = [owner, owner, OTHER].map(|owner| {
        let builder = DurableLock::builder(&solo.worker.client, &solo.path);
        solo.set_up(builder).owned_by(owner).lease(lease)
    });
    let stalled = solo.worker.ctx.stalled();
    let guard = lock.acquire().await;
    let guard = solo.had("taking", guard)?;
    let held = Held { guard, since: solo.worker.ctx.now(), stalled };
    let left = held.guard.lease_left();
    // The holder stops a tenth of the lease before others may take the lock.
    let fits = left <= lease - lease / 10 + Duration::from_millis(ROUNDING);
    solo.expect("S4", fits, format_args!("counts on {left:?} of {lease:?}"))?;
    shows(solo, &lock, owner, lease, &held).await?;
    let longest = WAIT_MAX.min(lease.as_millis() as u64);
    for _ in 0..solo.worker.rng.below(4) {
        pass(solo.worker.rng.scaled(1, longest)).await;
        taken(solo, &other, &held).await?;
    }
    match solo.worker.rng.below(3) {
        0 => taken_over(solo, &again, held).await?,
        1 => given_up(solo, &other, held).await?,
        _ => {
            let before = held.guard.token();
            released(solo, held.guard).await?;
            let next = other.acquire().await;
            follows(solo, before, next).await?;
        }
    }
    let holder = lock.holder().await;
    let holder = solo.read(holder)?;
    solo.expect("X3", holder.is_none(), format_args!("all is released, and held by {holder:?}"))
}

/// It is held, unless its lease has run out: it is renewed as long as there are no faults.
fn holds(solo: &Solo, held: &Held) -> Known<()> {
    let ctx = &solo.worker.ctx;
    match held.guard.status() {
        Status::Lost(Lost::LeaseRanOut) => {
            let sound = held.since > ctx.options.well_from()
                && ctx.stalled() == held.stalled
                && !ctx.check().was_throttled(ctx.number);
            solo.expect("L4", !sound, format_args!("is not renewed, and nothing is wrong"))?;
            Err(Cut::Failed)
        }
        Status::Lost(lost) => solo.wrong("E1", format_args!("is told {lost}, and was not taken")),
        _ => Ok(()),
    }
}

/// It is given back, of which observers hear at once.
async fn released(solo: &Solo, guard: DurableGuard) -> Known<()> {
    let (path, token) = (guard.path().to_owned(), guard.token());
    let release = guard.release();
    let is_told = !solo.tally.knows(&path, token);
    let released = release.await;
    solo.expect("E1", is_told, format_args!("observers hear of a release behind its answer"))?;
    solo.worker.ctx.count("releases of durable locks");
    solo.released(released)
}

/// The next one has a later token, and gives it back.
async fn follows(
    solo: &Solo,
    before: FencingToken,
    next: Result<DurableGuard, AcquireError>,
) -> Known<()> {
    let next = solo.had("taking", next)?;
    solo.expect("S1", next.token() > before, format_args!("{before} is not followed"))?;
    released(solo, next).await
}

/// Others see who has it, and for how long.
async fn shows(
    solo: &Solo,
    lock: &DurableLock,
    owner: &str,
    lease: Duration,
    held: &Held,
) -> Known<()> {
    let holder = lock.holder().await;
    holds(solo, held)?;
    let holder = solo.read(holder)?;
    let fits = holder.as_ref().is_some_and(|it| {
        it.owner == owner && it.lease == Some(lease) && it.token == held.guard.token()
    });
    solo.expect("E1", fits, format_args!("{owner} has it for {lease:?}, not {holder:?}"))
}

/// Another owner does not get it at a first look, even when the lease is over.
async fn taken(solo: &Solo, other: &DurableLock, held: &Held) -> Known<()> {
    let taken = other.try_acquire().await;
    match solo.had("looking at", taken)? {
        Some(taken) => {
            let (taken, token) = (taken.token(), held.guard.token());
            solo.wrong("S2", format_args!("{taken} is granted beside {token}"))
        }
        None => holds(solo, held),
    }
}

/// Its owner takes it elsewhere, of which the guard is told.
async fn taken_over(solo: &Solo, again: &DurableLock, held: Held) -> Known<()> {
    let (before, session) = (held.guard.token(), solo.worker.client.session());
    let next = again.acquire().await;
    let next = solo.had("taking", next)?;
    tokio::select! {
        biased;
        told = solo.is_told_of_its_loss(held.guard.lost()) => told?,
        // Then it is not told before its lease is over.
        _ = session.ended() => return Err(Cut::Over),
    }
    follows(solo, before, Ok(next)).await
}

/// A contender waits for it, and has it when it is released.
async fn given_up(solo: &Solo, other: &DurableLock, held: Held) -> Known<()> {
    let before = held.guard.token();
    let wait = other.acquire();
    tokio::pin!(wait);
    let early = tokio::select! {
        biased;
        early = &mut wait => Some(early),
        () = pass(super::SOON) => None,
    };
    if let Some(early) = early {
        drop(solo.had("waiting for", early)?);
        holds(solo, &held)?;
        return solo.wrong("S2", format_args!("does not wait"));
    }
    released(solo, held.guard).await?;
    let next = wait.await;
    follows(solo, before, next).await
}
