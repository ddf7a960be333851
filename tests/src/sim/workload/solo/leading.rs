//! The election: who leads, who is told of it, and who comes next.

use zk_client::SessionState;
use zk_locks::{Contender, Election};

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
    let is_first = |told: Option<&Contender>, data: &[u8]| {
        told.is_some_and(|told| told.token.get() == lead.token().get() && told.data == data)
    };
    told(solo, &mut follow, |told| is_first(told, b"the first")).await?;
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
    told(solo, &mut follow, |told| is_first(told, b"other words")).await?;
    solo.is_held(&lead, lead.check()).await?;
    let before = lead.token();
    solo.released(lead.resign().await)?;
    let token = leads(&latch).await;
    let token = solo.had("standing in", token)?;
    solo.expect("S1", token > before, format_args!("{token} behind {before}"))?;
    let node = latch.path();
    told(solo, &mut follow, |told| {
        let is_node = |told: &Contender| node.as_ref().is_some_and(|it| it.ends_with(&told.name));
        told.is_some_and(|told| told.data == b"the second"[..] && is_node(told))
    })
    .await?;
    latch.resign().await;
    let state = solo.worker.client.session().state();
    let is_over = matches!(state, SessionState::Closing | SessionState::Ended(_));
    if let Some(node) = node.filter(|_| !is_over) {
        let is_gone = !solo.worker.ctx.check().is_there(&node);
        solo.expect("E1", is_gone, format_args!("has left, and {node} is there"))?;
    }
    solo.until_left(0).await?;
    told(solo, &mut follow, |told| told.is_none()).await
}

/// Those who follow are told of it sooner or later.
async fn told(
    solo: &Solo,
    follow: &mut Following<Option<Contender>>,
    is_it: impl Fn(Option<&Contender>) -> bool,
) -> Known<()> {
    let ctx = &solo.worker.ctx;
    let since = ctx.now();
    loop {
        let next = tokio::select! {
            biased;
            next = follow.next(solo) => next?,
            () = pass(1_000) => {
                // The leader may have lost its lead meanwhile.
                if ctx.check().is_overdue(ctx.number, since) {
                    return Err(Cut::Failed);
                }
                continue;
            }
        };
        if is_it(next.as_ref()) {
            return Ok(());
        }
    }
}
