//! Changes together, as the model says or not at all.

use zk_client::{OpResult, Rejection, Stat};
use zk_testkit::real::Release;

use super::{Errands, Over, lists, model::Change};

/// Changes at once, at most.
const TOGETHER_MAX: u64 = 5;

impl Errands {
    /// Several changes, all or none.
    pub(super) async fn change_together(&mut self) -> Result<(), Over> {
        let count = self.worker.rng.below(TOGETHER_MAX);
        let mut changes: Vec<Change> = (0..count).map(|_| self.any_change()).collect();
        for change in &mut changes {
            // Each is a request of its own.
            if let Change::Create { above, .. } = change {
                *above = None;
            }
        }
        let view = self.view();
        let client = self.waiting(&view);
        let Some(mut next) = self.there.clone() else { return Ok(()) };
        let said = next.apply_all(&changes);
        let paths: Vec<String> = changes.iter().map(|change| view.target(change)).collect();
        let lists = lists();
        let mut multi = client.multi();
        for (change, path) in changes.iter().zip(&paths) {
            multi = match change {
                Change::Create { data, mode, list: 0, .. } => multi.create(path, data, *mode),
                Change::Create { data, mode, list, .. } => {
                    multi.create_with_acl(path, data, *mode, &lists[*list])
                }
                Change::Set { data, version: Some(version), .. } => {
                    multi.set_version(path, data, *version)
                }
                Change::Set { data, .. } => multi.set(path, data),
                Change::Delete { version: Some(version), .. } => {
                    multi.delete_version(path, *version)
                }
                Change::Delete { .. } => multi.delete(path),
                Change::Check { version: Some(version), .. } => multi.check_version(path, *version),
                Change::Check { .. } => multi.check(path),
            };
        }
        if self.worker.rng.one_in(3) {
            multi = multi.as_told();
            self.is_patient = false;
        }
        let (what, unchanged) = (format!("{changes:?} together"), self.there.clone());
        match (multi.await, said) {
            (Ok(Ok(results)), Ok(said)) => {
                let said: Vec<String> = said.iter().map(|path| view.path(path)).collect();
                self.there = Some(next);
                let with_stat = self.worker.ctx.options.release >= Release::V3_9;
                if !is_of(&results, &changes, &said, with_stat) {
                    self.wrong("S9", format_args!("{what} is told {results:?}"));
                }
                Ok(())
            }
            (Ok(Err(told)), Err(expected)) if told == expected => Ok(()),
            // A server without a quorum refuses as a whole, or the first of them.
            (Ok(Err(told)), _) if told.rejection == Rejection::ReadOnly => Ok(()),
            (Ok(told), said) => {
                self.surprised(format_args!("{what} is told {told:?}, not {said:?}"));
                Ok(())
            }
            (Err(error), _) => self.settle(what, &Ok(()), unchanged, Err::<(), _>(error)).map(drop),
        }
    }
}

/// Whether these are the results of those changes, at these paths; with the metadata of what was created, if servers tell it.
fn is_of(results: &[OpResult], changes: &[Change], paths: &[String], with_stat: bool) -> bool {
    let has = |stat: &Stat, data: &[u8]| usize::try_from(stat.data_length) == Ok(data.len());
    let fits = |((result, change), wanted): ((&OpResult, &Change), &String)| match (result, change)
    {
        (OpResult::Created { path, stat }, Change::Create { data, .. }) => {
            path == wanted && stat.as_ref().map_or(!with_stat, |stat| has(stat, data))
        }
        (OpResult::Set(stat), Change::Set { data, .. }) => has(stat, data),
        (OpResult::Deleted, Change::Delete { .. }) => true,
        (OpResult::Checked, Change::Check { .. }) => true,
        _ => false,
    };
    results.len() == changes.len() && results.iter().zip(changes).zip(paths).all(fits)
}
