//! Changes, one by one and together, as the model says or not at all.

use std::time::Duration;

use zk_client::{CallOptions, Client, CreateMode, OpResult, Rejection};
use zk_testkit::real::Release;

use super::{
    Errands, Over, lists,
    model::{Change, Model},
};

/// Changes at once, at most.
const TOGETHER_MAX: u64 = 5;

/// Longer than any run.
const LASTING: Duration = Duration::from_secs(100_000);

impl Errands {
    fn mode(&mut self) -> CreateMode {
        let Self { worker: super::Worker { rng, ctx, .. }, .. } = self;
        let mortal = ctx.options.release >= Release::V3_5;
        match rng.below(if mortal { 9 } else { 6 }) {
            0 => CreateMode::Ephemeral,
            1 => CreateMode::EphemeralSequential,
            2 => CreateMode::PersistentSequential,
            6 => CreateMode::Container,
            7 => CreateMode::PersistentTtl(LASTING),
            8 => CreateMode::PersistentSequentialTtl(LASTING),
            _ => CreateMode::Persistent,
        }
    }

    fn data(&mut self) -> Vec<u8> {
        let rng = &mut self.worker.rng;
        let len = if rng.one_in(8) { 0 } else { rng.scaled(1, 40) };
        (0..len).map(|_| rng.below(256) as u8).collect()
    }

    /// No version, the current one, or another.
    fn version(&mut self, path: &str) -> Option<i32> {
        let node = self.there.as_ref().and_then(|there| there.node(path).ok());
        let (other, current) = node.map_or((0, 1), |node| node.versions());
        match self.worker.rng.below(4) {
            0 => Some(current),
            1 if self.worker.rng.one_in(2) => Some(other),
            _ => None,
        }
    }

    fn any_change(&mut self) -> Change {
        let path = self.any();
        match self.worker.rng.below(7) {
            0..=2 if path != "/" => {
                let mode = self.mode();
                Change::Create { path, data: self.data(), mode }
            }
            3 | 4 if path != "/" => Change::Delete { version: self.version(&path), path },
            5 => Change::Check { version: self.version(&path), path },
            _ => Change::Set { version: self.version(&path), path, data: self.data() },
        }
    }

    /// A client that waits in one of the ways there are.
    fn waiting(&mut self, client: &Client) -> Client {
        let rng = &mut self.worker.rng;
        let time = Duration::from_millis(rng.scaled(1, 5_000));
        match rng.below(8) {
            0 => client.patient(),
            1 => client.with(CallOptions::new().retry_throttled()),
            2 => client.with(CallOptions::new().timeout(time)),
            3 => client.with(CallOptions::new().fail_fast()),
            _ => client.clone(),
        }
    }

    /// What would be there after a change, and what is said of it.
    fn after(&self, change: &Change) -> Option<(Model, Result<String, Rejection>)> {
        let mut next = self.there.clone()?;
        let said = next.apply(change);
        Some((next, said))
    }

    /// One change by itself.
    pub(super) async fn change(&mut self) -> Result<(), Over> {
        let change = self.any_change();
        let view = self.view();
        let client = self.waiting(&view.client);
        let Some((next, said)) = self.after(&change) else { return Ok(()) };
        let (what, next) = (format!("{change:?}"), Some(next));
        let expected = said.as_ref().map(drop).map_err(|rejection| *rejection);
        match &change {
            Change::Create { path, data, mode } => {
                let path = view.path(path);
                let mut create = client.create(&path, data).mode(*mode);
                let lists = lists();
                if self.worker.rng.one_in(3) {
                    create = create.acl(self.worker.rng.pick(&lists));
                }
                let created = self.settle(what, &expected, next, create.await)?;
                let wanted = said.ok().map(|path| view.path(&path));
                if let Some(created) =
                    created.filter(|created| Some(&created.path) != wanted.as_ref())
                {
                    self.wrong("S9", format_args!("{} was made, not {wanted:?}", created.path));
                }
            }
            Change::Set { path, data, version } => {
                let absolute = view.path(path);
                let set = client.set(&absolute, data);
                let set = match version {
                    Some(version) => set.version(*version),
                    None => set,
                };
                if let Some(stat) = self.settle(what, &expected, next, set.await)? {
                    self.stat("a write", path, &stat);
                }
            }
            Change::Delete { path, version } => {
                let path = view.path(path);
                let delete = client.delete(&path);
                let delete = match version {
                    Some(version) => delete.version(*version),
                    None => delete,
                };
                self.settle(what, &expected, next, delete.await)?;
            }
            // There is none by itself.
            Change::Check { .. } => {}
        }
        Ok(())
    }

    /// A node is there then, whether it was before or not.
    pub(super) async fn make_sure(&mut self) -> Result<(), Over> {
        let (path, data, view) = (self.any(), self.data(), self.view());
        let change = Change::Create { path, data, mode: CreateMode::Persistent };
        let Some((next, said)) = self.after(&change) else { return Ok(()) };
        let Change::Create { path, data, .. } = &change else { return Ok(()) };
        let existed = said == Err(Rejection::NodeExists) || path == "/";
        let epoch = view.client.session().epoch();
        let created = view.client.create(&view.path(path), data).or_exists().await;
        let (expected, next) = match existed {
            true => (Ok(()), self.there.clone()),
            false => (said.map(drop), Some(next)),
        };
        let created = self.settle(format!("{change:?} or exists"), &expected, next, created)?;
        // Over another connection it may have met itself.
        let is_told =
            |told: bool| told == existed || told && view.client.session().epoch() != epoch;
        if created.is_some_and(|created| !is_told(created.existed)) {
            self.wrong("S9", format_args!("{change:?} existed: {}", !existed));
        }
        Ok(())
    }

    /// A node is gone then, whether it was there before or not.
    pub(super) async fn make_gone(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        if path == "/" {
            return Ok(());
        }
        let change = Change::Delete { path, version: None };
        let Some((next, said)) = self.after(&change) else { return Ok(()) };
        let Change::Delete { path, .. } = &change else { return Ok(()) };
        let existed = said != Err(Rejection::NoNode);
        let expected = if existed { said.map(drop) } else { Ok(()) };
        let epoch = view.client.session().epoch();
        let deleted = view.client.delete(&view.path(path)).if_exists().await;
        let deleted =
            self.settle(format!("{change:?} if exists"), &expected, Some(next), deleted)?;
        let is_told =
            |told: bool| told == existed || !told && view.client.session().epoch() != epoch;
        if deleted.is_some_and(|told| !is_told(told)) {
            self.wrong("S9", format_args!("{change:?} existed: {}", !existed));
        }
        Ok(())
    }

    /// Several changes, all or none.
    pub(super) async fn change_together(&mut self) -> Result<(), Over> {
        let count = self.worker.rng.below(TOGETHER_MAX);
        let changes: Vec<Change> = (0..count).map(|_| self.any_change()).collect();
        let view = self.view();
        let client = self.waiting(&view.client);
        let Some(mut next) = self.there.clone() else { return Ok(()) };
        let said = next.apply_all(&changes);
        let paths: Vec<String> = changes.iter().map(|change| view.path(change.path())).collect();
        let [acl, _] = lists();
        let mut multi = client.multi();
        for (change, path) in changes.iter().zip(&paths) {
            multi = match change {
                Change::Create { data, mode, .. } if self.worker.rng.one_in(2) => {
                    multi.create_with_acl(path, data, *mode, &acl)
                }
                Change::Create { data, mode, .. } => multi.create(path, data, *mode),
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
        }
        let (what, unchanged) = (format!("{changes:?} together"), self.there.clone());
        match (multi.await, said) {
            (Ok(Ok(results)), Ok(said)) => {
                let said: Vec<String> = said.iter().map(|path| view.path(path)).collect();
                self.there = Some(next);
                if !is_of(&results, &changes, &said) {
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

    /// Several changes one behind the other, without waiting for each.
    pub(super) async fn change_in_a_row(&mut self) -> Result<(), Over> {
        // Before, creates may be sent again behind what was submitted later.
        if self.worker.ctx.options.release < Release::V3_5 {
            return self.change().await;
        }
        let view = self.view();
        let sets: Vec<(String, Vec<u8>)> = (0..4).map(|_| (self.any(), self.data())).collect();
        let corked = self.worker.rng.one_in(2).then(|| view.client.cork());
        let client = corked.as_deref().unwrap_or(&view.client);
        let pending: Vec<_> =
            sets.iter().map(|(path, data)| client.set(&view.path(path), data).submit()).collect();
        drop(corked);
        for ((path, data), pending) in sets.into_iter().zip(pending) {
            let got = pending.await;
            let change = Change::Set { path: path.clone(), data, version: None };
            let Some((next, said)) = self.after(&change) else { continue };
            let expected = said.map(drop);
            if let Some(stat) = self.settle(format!("{change:?}"), &expected, Some(next), got)? {
                self.stat("a write", &path, &stat);
            }
        }
        Ok(())
    }

    /// Another list of permissions, which is read back.
    pub(super) async fn permit(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        let Some(mut next) = self.there.clone() else { return Ok(()) };
        let current = next.node(&path).map_or(0, |node| node.aversion());
        let version = match self.worker.rng.below(3) {
            0 => Some(current),
            1 => Some(current + 1),
            _ => None,
        };
        let expected = next.permit(&path, version);
        let list = self.worker.rng.pick(&lists()).clone();
        let absolute = view.path(&path);
        let set = view.client.set_acl(&absolute, &list);
        let set = match version {
            Some(version) => set.version(version),
            None => set,
        };
        let what = format!("permissions of {path} at {version:?}");
        let Some(stat) = self.settle(what, &expected, Some(next), set.await)? else {
            return Ok(());
        };
        self.stat("permissions", &path, &stat);
        let read = self.told(view.client.acl(&absolute).await)?;
        if let Some(read) = read.filter(|read| read.as_ref().map(|(acl, _)| acl) != Ok(&list)) {
            self.surprised(format_args!("permissions of {path} are {read:?}, not {list:?}"));
        }
        Ok(())
    }

    /// A node and all below it go.
    pub(super) async fn clear(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        if path == "/" {
            return Ok(());
        }
        let Some(mut next) = self.there.take() else { return Ok(()) };
        let there = next.clear(&path);
        let epoch = view.client.session().epoch();
        let deleted = view.client.delete_recursive(&view.path(&path)).await;
        let Some(deleted) = super::unless_over(deleted)? else { return Ok(()) };
        // Over another connection it may have met itself; and what is mortal is gone now, or does not matter.
        let may_be_less = next.is_mortal() || view.client.session().epoch() != epoch;
        if deleted != there && !(deleted < there && may_be_less) {
            self.wrong("S9", format_args!("has deleted {deleted} instead of {there} at {path}"));
        }
        self.there = Some(next);
        Ok(())
    }
}

/// Whether these are the results of those changes, at these paths.
fn is_of(results: &[OpResult], changes: &[Change], paths: &[String]) -> bool {
    let fits = |((result, change), wanted): ((&OpResult, &Change), &String)| match (result, change)
    {
        (OpResult::Created { path, .. }, Change::Create { .. }) => path == wanted,
        (OpResult::Set(stat), Change::Set { data, .. }) => {
            usize::try_from(stat.data_length) == Ok(data.len())
        }
        (OpResult::Deleted, Change::Delete { .. }) => true,
        (OpResult::Checked, Change::Check { .. }) => true,
        _ => false,
    };
    results.len() == changes.len() && results.iter().zip(changes).zip(paths).all(fits)
}
