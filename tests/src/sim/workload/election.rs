//! Elections: campaigns, latches, proclamations, and who follows them.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zk_locks::{
    AcquireError, CheckError, Election, FencingToken, Kind, LatchState, LeaderLatch, Leadership,
    ReadError, Status,
};

use super::{
    Over, Worker, description,
    hold::{Hold, Holding, hold, release},
    take::{Takes, Waiting, attempt, name},
    unless_ended,
};
use crate::sim::{check::Latched, pass, recipe::Site};

struct Campaign(Election);

impl Takes for Campaign {
    type Taken = Leadership;

    async fn take(&self) -> Result<Leadership, AcquireError> {
        self.0.campaign(b"a candidate").await
    }

    async fn take_within(&self, time: Duration) -> Result<Leadership, AcquireError> {
        self.0.campaign_timeout(b"a candidate", time).await
    }

    async fn take_now(&self) -> Result<Option<Leadership>, AcquireError> {
        self.0.campaign_timeout(b"a candidate", Duration::ZERO).await.map(Some)
    }
}

pub(super) async fn turn(worker: &mut Worker, site: Site) -> Result<(), Over> {
    let election = worker.described(Election::builder(&worker.client, &site.path()));
    unless_ended(match worker.rng.below(8) {
        0 => follow(worker, &election).await,
        1..=4 => latch(worker, site, &election).await,
        _ => campaign(worker, site, Campaign(election)).await,
    })
    .map(drop)
}

async fn campaign(worker: &mut Worker, site: Site, campaign: Campaign) -> Result<(), AcquireError> {
    let Some(lead) = attempt(worker, site, &campaign).await? else { return Ok(()) };
    if worker.rng.one_in(2) {
        proclaim(worker, &lead).await;
    }
    let terms = Hold::alone(worker, site, "granted: leads by campaigns");
    let Some(lead) = hold(worker, terms, lead).await else { return Ok(()) };
    if matches!(lead.status(), Status::Lost(_)) {
        proclaim(worker, &lead).await;
    }
    release(worker, lead).await;
    Ok(())
}

/// Says something else than before, which is what is read then, unless the lead is lost.
async fn proclaim(worker: &mut Worker, lead: &Leadership) {
    let words = format!("{} {}", description(worker), worker.rng.next()).into_bytes();
    let is_lost = matches!(lead.status(), Status::Lost(_));
    let said = lead.proclaim(&words).await;
    worker.ctx.count(match said {
        Ok(_) => "proclamations",
        Err(CheckError::Lost(_)) => "proclamations without a lead",
        Err(_) => "proclamations not confirmed",
    });
    let read = worker.client.get(lead.path()).await.ok().map(|(read, _)| read == words);
    let fits = match said {
        // It cannot be read without a connection, nor when it is gone.
        Ok(_) => !is_lost && read.is_none_or(|is_read| is_read),
        Err(_) => !is_lost || read != Some(true),
    };
    if !fits {
        let text = format!("proclaims while lost is {is_lost}: {said:?}, reads it: {read:?}");
        worker.shown_wrong("S9", &text);
    }
}

/// Leads for a while as long as it leads, and perhaps once more if it has lost the lead meanwhile.
async fn latch(worker: &mut Worker, site: Site, election: &Election) -> Result<(), AcquireError> {
    let latch = Arc::new(election.latch(b"a latch"));
    for _ in 0..2 {
        worker.ctx.count("attempts");
        let Worker { ctx, client, drawn, .. } = &*worker;
        let asker = ctx.check().wants(ctx.number, client.session(), site, *drawn);
        let patience = worker.rng.scaled(1_000, 60_000);
        let leads = {
            let mut waiting = Waiting::new(&worker.ctx, site);
            let leads = tokio::select! {
                biased;
                leads = leads(&latch) => Some(leads),
                () = pass(patience) => None,
            };
            waiting.granted = matches!(leads, Some(Ok(_)));
            leads
        };
        if let Some(Err(error)) = &leads {
            worker.ctx.count(name(error));
            // Whatever else it meets, it stands again.
            let ends = matches!(
                error,
                AcquireError::SessionEnded(_)
                    | AcquireError::Rejected(_)
                    | AcquireError::QueueFull { .. }
                    | AcquireError::PathMissing { .. }
            );
            worker.ctx.check().refused(&asker, error);
            if !ends {
                worker.shown_wrong("E1", &format!("has a latch that has ended: {error}"));
            }
        }
        let Some(token) = leads.transpose()? else { break };
        let terms = Hold::alone(worker, site, "granted: leads by latches");
        let claim = Arc::new(Latched { latch: latch.clone(), token });
        let holding = Holding::begin(worker, &terms, claim);
        let Worker { ctx, rng, .. } = &mut *worker;
        ctx.check().write_fenced(site, terms.share, token);
        let time = rng.within(0, terms.most);
        let lost = tokio::select! {
            biased;
            () = loses(&latch, token) => true,
            () = pass(time) => false,
        };
        ctx.check().write_fenced(site, terms.share, token);
        drop(holding);
        if !lost {
            break;
        }
        ctx.count("latches that have lost the lead");
    }
    match Arc::into_inner(latch) {
        Some(latch) if worker.rng.one_in(2) => latch.resign().await,
        latch => drop(latch),
    }
    Ok(())
}

pub(super) async fn leads(latch: &LeaderLatch) -> Result<FencingToken, AcquireError> {
    let mut states = latch.subscribe();
    loop {
        let state = states.borrow_and_update().clone();
        match state {
            // By now it may have lost the lead again.
            LatchState::Leading { token } if latch.token() == Some(token) => return Ok(token),
            LatchState::Ended(error) => return Err(error),
            _ => {}
        }
        if states.changed().await.is_err() {
            return Err(AcquireError::SessionEnded(zk_locks::SessionEnd::Closed));
        }
    }
}

async fn loses(latch: &LeaderLatch, token: FencingToken) {
    let mut states = latch.subscribe();
    let others = |state: &LatchState| *state != LatchState::Leading { token };
    drop(states.wait_for(others).await);
}

/// Follows who leads for a while: each one is later than the one before.
async fn follow(worker: &mut Worker, election: &Election) -> Result<(), AcquireError> {
    let mut leaders = election.follow();
    let mut last: Option<FencingToken> = None;
    for _ in 0..4 {
        let time = Duration::from_millis(worker.rng.scaled(100, 10_000));
        match timeout(time, leaders.next()).await {
            // One that went on from writing to reading has the token of the former.
            Ok(Ok(Some(other))) if other.kind == Kind::Read => {}
            Ok(Ok(Some(leader))) => {
                worker.ctx.count("leaders told of");
                if last.is_some_and(|last| leader.token < last) {
                    let text = format!("is told of {} after {last:?}", leader.token);
                    worker.shown_wrong("S7", &text);
                }
                last = Some(leader.token);
            }
            Ok(Err(ReadError::Unavailable(zk_client::Cause::SessionEnded(end)))) => {
                return Err(AcquireError::SessionEnded(end));
            }
            Ok(Ok(None) | Err(_)) => {}
            Err(_) => break,
        }
    }
    Ok(())
}
