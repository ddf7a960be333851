//! Nodes that come back: one client sees to one, and others delete it.

use zk_locks::{NodeState, PersistentNode};
use zk_testkit::sim::Rng;

use super::{ClientContext, Over, Phase, Worker};
use crate::sim::{
    life, pass,
    recipe::{Recipe, Site},
};

/// Where the node is.
pub(crate) const SITE: Site = Site::new(Recipe::PersistentNode, 0);

/// How often its state is looked at, in milliseconds.
const LOOK: u64 = 250;

/// Deletes it, now and then.
pub(super) async fn turn(worker: &mut Worker, site: Site) -> Result<(), Over> {
    if !worker.rng.one_in(4) {
        return Ok(());
    }
    let deleted = worker.client.delete(&site.path()).await;
    match deleted {
        Ok(()) => worker.ctx.count("persistent nodes deleted"),
        Err(error) if error.session_end().is_some() => return Err(Over),
        Err(_) => {}
    }
    Ok(())
}

/// A client that does nothing but see to a node, from the beginning to the end.
pub(crate) async fn keep(ctx: ClientContext, mut rng: Rng) {
    ctx.check().promises.keepers.insert(ctx.number);
    while *ctx.phase.borrow() < Phase::Drain {
        let options = life::options(&ctx, &mut rng, 60_000);
        let data = format!("{}", rng.next()).into_bytes();
        ctx.check().keeps(&data);
        let Ok(node) = PersistentNode::start(options, &SITE.path(), &data).await else {
            ctx.count("connects failed");
            continue;
        };
        let lifetime = rng.scaled(10_000, 400_000);
        let goes_on = see_to_it(&ctx, &mut rng, &node, lifetime).await;
        match goes_on && rng.one_in(2) {
            true => drop(node),
            false => node.close().await,
        }
        if goes_on {
            pass(rng.scaled(1, 1_000)).await;
        }
    }
    ctx.check().promises.drained.insert(ctx.number);
}

/// Has the node have other data now and then. Returns whether there is time for another one.
async fn see_to_it(
    ctx: &ClientContext,
    rng: &mut Rng,
    node: &PersistentNode,
    lifetime: u64,
) -> bool {
    let began = ctx.now();
    let mut states = node.subscribe();
    // There is something to be told of at the beginning already.
    states.mark_changed();
    let mut phase = ctx.phase.clone();
    let mut first = None;
    let mut write_at = ctx.now();
    loop {
        tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase >= Phase::Drain) => return false,
            changed = states.changed() => if changed.is_err() {
                return true;
            },
            () = pass(LOOK) => {}
        }
        if ctx.now() >= write_at {
            write_at = ctx.now() + rng.scaled(500, 20_000);
            let data = format!("{}", rng.next()).into_bytes();
            ctx.check().keeps(&data);
            node.set_data(&data);
        }
        if node.state() == NodeState::Closed {
            let text = format!("c{} is told that its node is closed", ctx.number);
            ctx.check().shown_wrong(ctx.number, "E1", text);
        }
        if let NodeState::Present { session, .. } = node.state() {
            let lives = life::lives(ctx, session);
            ctx.check().node_is_there(ctx.number, session, lives);
            ctx.count("granted: persistent nodes");
            if *first.get_or_insert(session) != session {
                first = Some(session);
                ctx.count("persistent nodes back in another session");
            }
        }
        // A client that comes back does not leave while it is watched.
        let may_leave = *phase.borrow() == Phase::Busy;
        if may_leave && ctx.now() > began + lifetime {
            return true;
        }
    }
}
