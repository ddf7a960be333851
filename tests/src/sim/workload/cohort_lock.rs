//! The cohort lock: several tasks of each client at once, beside clients that want the same lock for
//! themselves.

use std::time::Duration;

use zk_locks::{CohortLock, Lock};

use super::{Over, Worker, hold::Hold, lock::alone};
use crate::sim::{check::SECTIONS, recipe::Site};

/// The cohort of a session. Time is not what ends a turn, so that sections can be counted.
pub(super) fn cohort(worker: &mut Worker, site: Site) -> CohortLock {
    let cohort = CohortLock::builder(&worker.client, &site.path());
    let cohort = cohort.max_sections(SECTIONS).max_stay(Duration::from_secs(3_600));
    worker.described(match worker.ctx.number % 3 {
        0 => cohort,
        1 => cohort.linger(Duration::from_millis(500)),
        _ => cohort.fail_on_loss(),
    })
}

pub(super) async fn turn(worker: &mut Worker, site: Site) -> Result<(), Over> {
    if worker.ctx.number % 4 == 3 {
        let lock = worker.exclusive(Lock::builder(&worker.client, &site.path()));
        let terms = Hold::alone(worker, site, "granted: locks beside cohorts");
        return alone(worker, terms, &lock).await;
    }
    let lock = worker.cohort(site);
    // It may have been made long ago.
    worker.drawn = None;
    let mut tasks = [1, 2, 3, 4].map(|task| worker.another(task));
    let terms = Hold::alone(worker, site, "granted: cohort locks");
    let [one, two, three, four] = tasks.each_mut().map(|task| section(task, &terms, &lock));
    let (one, two, three, four) = tokio::join!(biased; one, two, three, four);
    one.and(two).and(three).and(four)
}

/// Twice in a row, a little later than the others.
async fn section(worker: &mut Worker, terms: &Hold, lock: &CohortLock) -> Result<(), Over> {
    for _ in 0..2 {
        let pause = worker.rng.scaled(1, 50);
        if !worker.think(pause).await {
            return Ok(());
        }
        alone(worker, terms.clone(), lock).await?;
    }
    Ok(())
}
