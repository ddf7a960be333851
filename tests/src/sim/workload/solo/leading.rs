//! The election: who leads, who is told of it, and who comes next.

use zk_client::SessionState;
use zk_locks::{Contender, Election, FencingToken, LatchState, LeaderLatch, Status};
use zk_proto::path::join;

use super::{Cut, Known, Solo, following::Following};
use crate::sim::{pass, workload::election::leads};

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let builder = Election::builder(&solo.worker.client, &solo.path);
    let election = solo.set_up(builder);
    let mut follow = Following::new(election.follow());
    let nobody = follow.next(solo).await?;
    solo.expect("E1", nobody.is_none(), format_args!("{nobody:?} is told to lead"))?;
    let lead = election.campaign(b"the first").await;
    let lead = solo.had("campaigning in", lead)?;
    let leads_on = || !matches!(lead.status(), Status::Lost(_));
    let is_first = |told: Option<&Contender>, data: &[u8]| {
        told.is_some_and(|told| told.token.get() == lead.token().get() && told.data == data)
    };
    told(solo, &mut follow, |told| is_first(told, b"the first"), leads_on).await?;
    solo.holds(&lead)?;
    if solo.worker.rng.one_in(2) {
        let other = solo.times_out(|time| election.campaign_timeout(b"another", time)).await?;
        solo.holds(&lead)?;
        solo.expect("S2", other.is_none(), format_args!("leads beside {}", lead.token()))?;
        solo.until_left(1).await?;
    }
    let latch = election.latch(b"the second");
    pass(300).await;
    let early = latch.is_leader() || latch.token().is_some();
    solo.holds(&lead)?;
    solo.expect("S2", !early, format_args!("a latch leads beside {}", lead.token()))?;
    let proclaimed = lead.proclaim(b"other words").await;
    solo.holds(&lead)?;
    proclaimed.or(Err(Cut::Failed))?;
    told(solo, &mut follow, |told| is_first(told, b"other words"), leads_on).await?;
    solo.is_held(&lead, lead.check()).await?;
    let before = lead.token();
    solo.released(lead.resign().await)?;
    let token = leads(&latch).await;
    let token = solo.had("standing in", token)?;
    solo.expect("S1", token > before, format_args!("{token} behind {before}"))?;
    is_followed(solo, &mut follow, &latch).await?;
    if solo.worker.rng.one_in(2) {
        let again = stands_again(solo, &latch, token).await?;
        solo.expect("S1", again > token, format_args!("{again} behind {token}"))?;
        is_followed(solo, &mut follow, &latch).await?;
    }
    let node = latch.path();
    latch.resign().await;
    let state = solo.worker.client.session().state();
    let is_over = matches!(state, SessionState::Closing | SessionState::Ended(_));
    if let Some(node) = node.filter(|_| !is_over) {
        let is_gone = !solo.worker.ctx.check().is_there(&node);
        solo.expect("E1", is_gone, format_args!("has left, and {node} is there"))?;
    }
    solo.until_left(0).await?;
    told(solo, &mut follow, |told| told.is_none(), || true).await
}

/// Those who follow are told of a latch that leads, by its words and its node.
async fn is_followed(
    solo: &Solo,
    follow: &mut Following<Option<Contender>>,
    latch: &LeaderLatch,
) -> Known<()> {
    let node = latch.path();
    let is_it = |told: Option<&Contender>| {
        let is_node = |told: &Contender| {
            node.as_ref().is_some_and(|node| *node == join(&solo.path, &told.name))
        };
        told.is_some_and(|told| told.data == b"the second"[..] && is_node(told))
    };
    let token = latch.token();
    told(solo, follow, is_it, || token.is_some() && latch.token() == token).await
}

/// A latch whose node is deleted says first that it does not lead, and then that it leads with another node.
async fn stands_again(solo: &Solo, latch: &LeaderLatch, led: FencingToken) -> Known<FencingToken> {
    let mut states = latch.subscribe();
    states.mark_unchanged();
    let Some(node) = latch.path().filter(|_| latch.token() == Some(led)) else {
        return Err(Cut::Failed);
    };
    solo.worker.client.delete(&node).await.or(Err(Cut::Failed))?;
    let since = solo.worker.ctx.now();
    tokio::select! {
        biased;
        changed = states.changed() => changed.or(Err(Cut::Over))?,
        () = solo.until_overdue(since) => {
            return solo.wrong("S4", format_args!("leads on without {node}"));
        }
    }
    let state = states.borrow_and_update().clone();
    if let LatchState::Leading { token } = state {
        return solo.wrong("E1", format_args!("leads with {token} and has not lost {led} before"));
    }
    let (token, path) = (latch.token(), latch.path());
    let is_out = token.is_none_or(|token| token > led) && path.as_ref() != Some(&node);
    solo.expect("E1", is_out, format_args!("has {token:?} and {path:?} without {node}"))?;
    let token = leads(latch).await;
    solo.had("standing again in", token)
}

/// Those who follow are told of it sooner or later.
async fn told(
    solo: &Solo,
    follow: &mut Following<Option<Contender>>,
    is_it: impl Fn(Option<&Contender>) -> bool,
    is_still_so: impl Fn() -> bool,
) -> Known<()> {
    let since = solo.worker.ctx.now();
    loop {
        let next = tokio::select! {
            biased;
            next = follow.next(solo) => next?,
            () = solo.until_overdue(since) => {
                // The leader may have lost its lead meanwhile.
                return match is_still_so() {
                    true => solo.wrong("L2", format_args!("is not told who leads")),
                    false => Err(Cut::Failed),
                };
            }
        };
        if is_it(next.as_ref()) {
            return Ok(());
        }
    }
}
