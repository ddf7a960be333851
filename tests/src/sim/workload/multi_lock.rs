//! Several locks at once, beside contenders for one.

use std::sync::Arc;

use zk_locks::{Lock, MultiLock};

use super::{
    Drawn, Over, Worker,
    hold::{Hold, Holding, hold_all},
    lock::alone,
    take::attempt,
    unless_ended,
};
use crate::sim::{
    check::Part,
    recipe::{QUEUES, Recipe, Site},
};

pub(super) async fn turn(worker: &mut Worker) -> Result<(), Over> {
    let mut sites: Vec<Site> = (0..QUEUES).map(|it| Site::new(Recipe::MultiLock, it)).collect();
    worker.rng.shuffle(&mut sites);
    if worker.rng.one_in(3) {
        let lock = worker.exclusive(Lock::builder(&worker.client, &sites[0].path()));
        let terms = Hold::alone(worker, sites[0], "granted: locks beside multi-locks");
        return alone(worker, terms, &lock).await;
    }
    sites.truncate(2);
    let mut locks = Vec::new();
    let mut drawn = Vec::new();
    for site in &sites {
        worker.drawn = Some(Drawn::default());
        locks.push(worker.exclusive(Lock::builder(&worker.client, &site.path())));
        drawn.push(worker.drawn);
    }
    let lock = MultiLock::of(locks);
    worker.drawn = drawn.iter().copied().flatten().reduce(Drawn::and);
    let guards = unless_ended(attempt(worker, sites[0], &lock).await)?;
    let Some(guards) = guards.flatten() else { return Ok(()) };
    let tokens: Vec<_> = guards.iter().map(|guard| guard.token()).collect();
    if tokens.len() != sites.len() || tokens.windows(2).any(|pair| pair[0] != pair[1]) {
        let text = format!("c{} got {tokens:?} instead of all at once", worker.ctx.number);
        worker.ctx.check().violated("S3", text);
    }
    let all = Arc::new(guards);
    let terms = Hold::alone(worker, sites[0], "granted: multi-locks");
    let holding: Vec<_> = sites
        .iter()
        .enumerate()
        .map(|(index, &site)| {
            let part = Part { all: all.clone(), index };
            let drawn = drawn[index];
            Holding::begin(worker, &Hold { site, drawn, ..terms.clone() }, Arc::new(part))
        })
        .collect();
    if let Some(guards) = hold_all(worker, terms.most, all, holding).await {
        match worker.rng.one_in(5) {
            true => drop(guards),
            false => drop(guards.release().await),
        }
    }
    Ok(())
}
