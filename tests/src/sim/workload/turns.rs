//! One use of a recipe after the other, each time somewhere else.

use super::{
    Drawn, Over, Worker, barrier, cohort_lock, election, group, lock, multi_lock, persistent_node,
    rw_lock, semaphore,
};
use crate::sim::recipe::{Recipe, Site};

pub(super) async fn work(mut worker: Worker) {
    let think_max = worker.ctx.options.think_max;
    let sites = worker.ctx.options.sites();
    loop {
        let pause = worker.rng.within(0, think_max);
        if !worker.think(pause).await {
            return;
        }
        let site = *worker.rng.pick(&sites);
        if worker.ctx.number == 0 && worker.rng.one_in(10) && site.recipe == Recipe::Lock {
            // It does not stand in the queue, and so blocks no contender.
            drop(worker.client.create(&format!("{}/notes", site.path()), b"").await);
        }
        if turn(&mut worker, site).await.is_err() {
            return;
        }
    }
}

async fn turn(worker: &mut Worker, site: Site) -> Result<(), Over> {
    worker.drawn = Some(Drawn::default());
    match site.recipe {
        Recipe::Lock if worker.ctx.options.shares_paths => match worker.rng.below(8) {
            0 => lock::herd_lock(worker, site).await,
            1 | 2 => rw_lock::turn(worker, site).await,
            3 => Box::pin(cohort_lock::turn(worker, site)).await,
            4 => election::turn(worker, site).await,
            _ => lock::lock(worker, site).await,
        },
        Recipe::Lock => lock::lock(worker, site).await,
        Recipe::HerdLock => lock::herd_lock(worker, site).await,
        Recipe::SimpleLock => lock::simple_lock(worker, site).await,
        Recipe::SemaphoreMutex => lock::semaphore_mutex(worker, site).await,
        Recipe::RwLock => rw_lock::turn(worker, site).await,
        Recipe::Semaphore | Recipe::CountedSemaphore => semaphore::turn(worker, site).await,
        Recipe::MultiLock => multi_lock::turn(worker).await,
        Recipe::CohortLock => Box::pin(cohort_lock::turn(worker, site)).await,
        Recipe::Election => election::turn(worker, site).await,
        Recipe::Barrier => barrier::barrier(worker, site).await,
        Recipe::DoubleBarrier => barrier::double_barrier(worker, site).await,
        Recipe::Group => group::turn(worker, site).await,
        Recipe::PersistentNode => persistent_node::turn(worker, site).await,
    }
}
