//! Holding something, using what it protects, and giving it back.

use std::sync::Arc;

use tokio::sync::watch;
use zk_client::Session;
use zk_locks::{CheckError, Guards, Status};
use zk_testkit::sim::{Actor, State};

use super::{ClientContext, Drawn, Worker};
use crate::sim::{
    check::{Came, Claim, Grip, Held, Kept, Loss, Share, SharedChecker},
    pass,
    recipe::Site,
};

/// Milliseconds between two looks of a holder that looks often.
const LOOK: u64 = 50;

/// Milliseconds in which work under a lock ends once it has to.
const STOPS_WITHIN: u64 = 20;

/// What is held, and how.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) site: Site,
    pub(super) share: Share,
    pub(super) came: Came,
    /// Under what grants are counted.
    pub(super) what: &'static str,
    /// Milliseconds for which it is held at most.
    pub(super) most: u64,
    /// With which settings, if these are known.
    pub(super) drawn: Option<Drawn>,
}

impl Hold {
    /// By oneself, in the order of asking, for as long as is usual.
    pub(super) fn alone(worker: &Worker, site: Site, what: &'static str) -> Self {
        let (most, drawn) = (worker.ctx.options.hold_max, worker.drawn);
        Self { site, share: Share::Alone, came: Came::InTurn, what, most, drawn }
    }
}

/// Something that counts as held, until dropped.
pub(super) struct Holding {
    checker: SharedChecker,
    pub(super) number: u64,
}

impl Holding {
    pub(super) fn begin(worker: &Worker, hold: &Hold, claim: Arc<dyn Claim>) -> Self {
        let ctx = &worker.ctx;
        let token = claim.token();
        ctx.cluster.note(Actor::Client(ctx.number), "granted", token.get() as u64);
        let number = ctx.check().granted(
            Held {
                site: hold.site,
                share: hold.share,
                came: hold.came.clone(),
                client: ctx.number,
                session: worker.client.session(),
                claim,
                drawn: hold.drawn,
            },
            hold.what,
        );
        Self { checker: ctx.checker.clone(), number }
    }
}

impl Drop for Holding {
    /// From here on no client claims to hold it.
    fn drop(&mut self) {
        let held = self.checker.lock().given_back(self.number);
        // Outside of the lock.
        drop(held);
    }
}

/// Works under something for a while. Gives it back to be given back, or to go on with.
pub(super) async fn hold<G: Grip>(worker: &mut Worker, hold: Hold, grip: G) -> Option<G> {
    let grip = Arc::new(grip);
    let token = grip.token();
    let holding = Holding::begin(worker, &hold, grip.clone());
    let Worker { ctx, rng, client, taken, .. } = worker;
    let taken = *taken;
    let (since, stalled) = (ctx.now(), ctx.stalled());
    let held_at = (!is_lost(&*grip)).then_some(since);
    let time = rng.within(0, hold.most);
    let fenced = hold.share != Share::Permit;
    if fenced {
        ctx.check().write_fenced(hold.site, hold.share, token);
    }
    let lost = match rng.below(4) {
        // A client that never asks.
        0 if time % 2 == 0 => {
            pass(time).await;
            is_lost(&*grip)
        }
        0 => {
            look_often(ctx, &client.session(), &*grip, time).await;
            is_lost(&*grip)
        }
        1 => {
            let node = grip.path().map(|path| (path.to_owned(), ctx.check().is_there(path)));
            let checked = grip.check().await;
            if let (Ok(()), Some((path, false))) = (&checked, node) {
                let text = format!("c{} is told that it holds {path}, which is gone", ctx.number);
                ctx.check().shown_wrong(ctx.number, "E1", text);
            }
            if let (Err(CheckError::Lost(why)), false) = (&checked, is_lost(&*grip)) {
                let text = format!("c{} is told {why} by a check, and holds it", ctx.number);
                ctx.check().shown_wrong(ctx.number, "E1", text);
            }
            pass(time).await;
            checked.is_err() && is_lost(&*grip)
        }
        _ => {
            let stalled = ctx.stalled();
            // Timers go by another clock than leases.
            let timeout = ctx.options.session_timeouts[ctx.number as usize];
            let stops_within = STOPS_WITHIN + ctx.check().drift(ctx.number, timeout);
            let ended = end_of_lease(ctx, client.session(), stops_within);
            let worked = grip.work(time).await;
            if let Some(since) = *ended.borrow() {
                if ctx.stalled() == stalled && ctx.now() > since + stops_within {
                    let text = format!("c{} works on without a lease since {since}", ctx.number);
                    ctx.check().shown_wrong(ctx.number, "S4", text);
                }
            }
            let lost = worked.is_err();
            if ctx.stalled() == stalled {
                ctx.check().work_ended(holding.number, ctx.number);
            }
            lost
        }
    };
    let (held, stalled) = (ctx.now() - since, ctx.stalled() - stalled);
    match grip.status() {
        // What it went on from may have been held for long.
        Status::Lost(why) => {
            let in_turn = hold.came == Came::InTurn;
            let held = taken.filter(|_| in_turn).map(|taken| ctx.now() - taken);
            let node = grip.path().filter(|_| in_turn).map(|path| (path.to_owned(), token));
            ctx.check().lost(&Loss {
                client: ctx.number,
                session: client.session(),
                why,
                drawn: hold.drawn,
                held,
                since: held_at,
                nodes: node.into_iter().collect(),
            });
        }
        _ => ctx.check().kept(ctx.number, hold.drawn, held, stalled),
    }
    if lost {
        ctx.count("guards lost while held");
        ctx.cluster.note(Actor::Client(ctx.number), "lost", token.get() as u64);
        if !is_lost(&*grip) {
            let text = format!("c{} had lost {token}, and holds it again", ctx.number);
            ctx.check().violated("S4", text);
        }
    }
    if fenced {
        ctx.check().write_fenced(hold.site, hold.share, token);
    }
    drop(holding);
    Arc::try_unwrap(grip).ok()
}

pub(super) fn is_lost(claim: &impl Claim) -> bool {
    matches!(claim.status(), Status::Lost(_))
}

/// Holds something for so long, and asks for its state again and again.
pub(super) async fn look_often(
    ctx: &ClientContext,
    session: &Session,
    claim: &impl Claim,
    time: u64,
) {
    let (until, mut kept, mut stalled) = (ctx.now() + time, Kept::default(), ctx.stalled());
    while ctx.now() < until {
        pass(LOOK.min(until - ctx.now())).await;
        if ctx.stalled() != stalled {
            (kept, stalled) = (Kept::default(), ctx.stalled());
        } else if ctx.check().looks_at(&mut kept, ctx.number, session, claim) {
            return;
        }
    }
}

/// When a session cannot be relied on any more, unless a connection proves within so many milliseconds that it has lived
/// on. Looked at by a task of its own: a look in that of the work would wake the work.
fn end_of_lease(
    ctx: &ClientContext,
    session: Session,
    stops_within: u64,
) -> watch::Receiver<Option<u64>> {
    let (ended, when) = watch::channel(None);
    let of = ctx.clone();
    ctx.tasks.spawn(State::process(ctx.number), async move {
        let over = async {
            loop {
                while !session.lease_left().is_zero() {
                    pass((session.lease_left().as_millis() as u64).clamp(1, 1_000)).await;
                }
                let since = of.now();
                pass(stops_within).await;
                if session.lease_left().is_zero() {
                    return since;
                }
            }
        };
        tokio::select! {
            biased;
            () = ended.closed() => {}
            since = over => drop(ended.send(Some(since))),
        }
    });
    when
}

/// Works under something for a while, and gives it back.
pub(super) async fn hold_and_release<G: Grip>(worker: &mut Worker, terms: Hold, grip: G) {
    if let Some(grip) = hold(worker, terms, grip).await {
        release(worker, grip).await;
    }
}

/// Works under several at once for so many milliseconds at most. Releases them, unless another task still has
/// a part of them.
pub(super) async fn hold_all(
    worker: &mut Worker,
    most: u64,
    all: Arc<Guards>,
    holding: Vec<Holding>,
) -> Option<Guards> {
    let time = worker.rng.within(0, most);
    let Worker { ctx, client, drawn, .. } = worker;
    let (since, stalled) = (ctx.now(), ctx.stalled());
    let held_at = matches!(all.status(), Status::Held | Status::Suspect { .. }).then_some(since);
    let kept = all.scope(pass(time)).await;
    let (held, stalled) = (ctx.now() - since, ctx.stalled() - stalled);
    match kept {
        Err(why) => {
            ctx.count("guards lost while held");
            ctx.check().lost(&Loss {
                client: ctx.number,
                session: client.session(),
                why,
                drawn: *drawn,
                held: Some(held),
                since: held_at,
                nodes: all.iter().map(|one| (one.path().to_owned(), one.token())).collect(),
            });
        }
        Ok(()) => ctx.check().kept(ctx.number, *drawn, held, stalled),
    }
    drop(holding);
    Arc::into_inner(all)
}

/// Gives something back in one of the ways there are.
pub(super) async fn release<G: Grip>(worker: &mut Worker, grip: G) {
    let Worker { ctx, rng, drawn, .. } = worker;
    ctx.cluster.note(Actor::Client(ctx.number), "releases", grip.token().get() as u64);
    ctx.check().releases(grip.token());
    // A cohort keeps its node.
    let node = drawn.and(grip.path().map(|path| (path.to_owned(), grip.token())));
    match rng.below(10) {
        0 => drop(grip),
        1 => drop(grip.release()),
        _ => {
            let released = grip.release().await;
            if let (Ok(()), Some((path, token))) = (&released, node) {
                ctx.check().released(ctx.number, &path, token);
            }
            ctx.count(if released.is_ok() { "releases" } else { "releases not confirmed" });
        }
    }
}
