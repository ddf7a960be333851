//! Changes, one by one, as the model says or not at all.

use std::time::Duration;

use zk_client::{Cause, CreateMode, Error, ReadError, Rejection, WriteError};
use zk_proto::path::join;
use zk_testkit::real::Release;

use super::{
    Errands, Over, ROOT, View, lists,
    model::{Change, Model, is_sequential},
    request::{Done, Sent, wanted},
};

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

    /// What missing parents are to be, if they are to be made.
    fn above(&mut self) -> Option<CreateMode> {
        let Self { worker: super::Worker { rng, ctx, .. }, .. } = self;
        match rng.below(4) {
            0 => Some(CreateMode::Persistent),
            1 if ctx.options.release >= Release::V3_5 => Some(CreateMode::Container),
            _ => None,
        }
    }

    /// A list of permissions; more often than not the client's own.
    fn list(&mut self) -> usize {
        usize::from(self.worker.rng.one_in(3))
    }

    pub(super) fn data(&mut self) -> Vec<u8> {
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

    pub(super) fn any_change(&mut self) -> Change {
        let path = self.any();
        match self.worker.rng.below(7) {
            0..=2 => {
                let (mode, data, above) = (self.mode(), self.data(), self.above());
                let path = match is_sequential(mode) && self.worker.rng.one_in(4) {
                    // Its name is the number that servers give it.
                    true => join(&path, ""),
                    false if path == "/" => join(&path, "n0"),
                    false => path,
                };
                Change::Create { path, data, mode, list: self.list(), above }
            }
            3 | 4 if path != "/" => Change::Delete { version: self.version(&path), path },
            5 => Change::Check { version: self.version(&path), path },
            _ => Change::Set { version: self.version(&path), path, data: self.data() },
        }
    }

    /// What would be there after a change, and what is said of it.
    pub(super) fn after(&self, change: &Change) -> Option<(Model, Result<String, Rejection>)> {
        let mut next = self.there.clone()?;
        let said = next.apply(change);
        Some((next, said))
    }

    /// One change by itself.
    pub(super) async fn change(&mut self) -> Result<(), Over> {
        let change = self.any_change();
        let view = self.view();
        let client = self.waiting(&view);
        let path = view.target(&change);
        let Some(request) = Sent::of(&client, &path, &change) else { return Ok(()) };
        let answer = request.answered().await;
        let is_certain = self.judge(&view, &change, answer)?;
        self.parents_may_stay(&view, &change, is_certain).await
    }

    /// A change was answered so, and all that were submitted before have been judged. Returns whether it was made, and
    /// nothing else.
    pub(super) fn judge(
        &mut self,
        view: &View,
        change: &Change,
        answer: Result<Done, WriteError>,
    ) -> Result<bool, Over> {
        let Some((next, said)) = self.after(change) else { return Ok(false) };
        let is_mortal = self.is_mortal();
        let expected = said.as_ref().map(drop).map_err(|rejection| *rejection);
        let done = self.settle(format!("{change:?}"), &expected, Some(next), answer)?;
        let is_certain = done.is_some() && !is_mortal;
        match (done, change) {
            (Some(Done::Set(stat)), Change::Set { path, .. }) => self.stat("a write", path, &stat),
            // Numbers begin anew below a parent that has vanished and was made again.
            (Some(Done::Created(created)), _) if !is_mortal => {
                let wanted = said.ok().map(|path| view.path(&path));
                if Some(&created.path) != wanted.as_ref() {
                    self.wrong("S9", format_args!("{} was made, not {wanted:?}", created.path));
                }
            }
            _ => {}
        }
        Ok(is_certain)
    }

    /// A create that failed has not made the node, but may have made parents; one that did not, again.
    async fn parents_may_stay(
        &mut self,
        view: &View,
        change: &Change,
        is_certain: bool,
    ) -> Result<(), Over> {
        let Change::Create { path, mode, above: Some(_), .. } = change else { return Ok(()) };
        // The last one that is told of is forgotten already.
        let Some(there) = self.there.take_if(|_| !is_certain) else { return Ok(()) };
        if there.node(path).is_ok() || is_sequential(*mode) {
            return Ok(());
        }
        let found = view.client.exists(&view.path(path)).await;
        if let Some(Ok(Some(stat))) = self.told(found)? {
            self.wrong("S9", format_args!("{change:?} failed, and there is {stat:?}"));
        }
        Ok(())
    }

    /// A node is there then, whether it was before or not.
    pub(super) async fn make_sure(&mut self) -> Result<(), Over> {
        let (path, data, view) = (self.any(), self.data(), self.view());
        let (mode, list, above) = (CreateMode::Persistent, self.list(), self.above());
        let change = Change::Create { path, data, mode, list, above };
        let Some((next, said)) = self.after(&change) else { return Ok(()) };
        let Change::Create { path, data, .. } = &change else { return Ok(()) };
        let existed = said == Err(Rejection::NodeExists) || path == "/";
        let (epoch, is_mortal) = (view.client.session().epoch(), self.is_mortal());
        let path = view.path(path);
        let create = view.client.create(&path, data).or_exists();
        let created = wanted(create, list, above).await;
        let (expected, next) = match existed {
            true => (Ok(()), self.there.clone()),
            false => (said.map(drop), Some(next)),
        };
        let created = self.settle(format!("{change:?} or exists"), &expected, next, created)?;
        let is_certain = created.is_some() && !is_mortal;
        self.parents_may_stay(&view, &change, is_certain).await?;
        // Over another connection it may have met itself.
        let is_told = |told: bool| {
            told == existed || told && view.client.session().epoch() != epoch || !told && is_mortal
        };
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
        let (epoch, is_mortal) = (view.client.session().epoch(), self.is_mortal());
        let deleted = view.client.delete(&view.path(path)).if_exists().await;
        let deleted =
            self.settle(format!("{change:?} if exists"), &expected, Some(next), deleted)?;
        let is_told = |told: bool| {
            told == existed || !told && (view.client.session().epoch() != epoch || is_mortal)
        };
        if deleted.is_some_and(|told| !is_told(told)) {
            self.wrong("S9", format_args!("{change:?} existed: {}", !existed));
        }
        Ok(())
    }

    /// A request that is longer than servers take. A write costs a connection; a read is sent again, until it is found out
    /// that it is the one which does.
    pub(super) async fn ask_too_much(&mut self) -> Result<(), Over> {
        let (ctx, rng) = (&self.worker.ctx, &mut self.worker.rng);
        let (taken, sent) = (ctx.options.request_len_max, ctx.options.sends_at_most(ctx.number));
        if sent <= taken {
            return Ok(());
        }
        let len = rng.within(taken as u64, 4 * taken as u64) as usize;
        ctx.count("requests that are too long for servers");
        let asked = if rng.one_in(2) {
            let view = self.view();
            let set = view.client.set(&view.path("/"), &vec![0; len]).await;
            set.map(drop).map_err(Error::from)
        } else {
            let path = join(ROOT, &"x".repeat(len));
            self.worker.client.exists(&path).await.map(drop).map_err(Error::from)
        };
        match asked {
            Err(Error::Read(ReadError::Unavailable(Cause::CostsConnection(_)))) => {
                self.worker.ctx.count("requests that cost their connections");
            }
            Ok(())
            | Err(Error::Write(WriteError::Rejected(_)) | Error::Read(ReadError::Rejected(_))) => {
                self.wrong("S9", format_args!("{len} bytes are taken: {asked:?}"));
            }
            Err(error) => {
                self.unless_over(Err::<(), _>(error))?;
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
        let list = self.list();
        let expected = next.permit(&path, version, list);
        let absolute = view.path(&path);
        let lists = lists();
        let set = view.client.set_acl(&absolute, &lists[list]);
        let set = match version {
            Some(version) => set.version(version),
            None => set,
        };
        let what = format!("permissions of {path} at {version:?}");
        let Some(stat) = self.settle(what, &expected, Some(next), set.await)? else {
            return Ok(());
        };
        self.stat("permissions", &path, &stat);
        self.read_permissions(&view, &path).await
    }

    /// A node and all below it go.
    pub(super) async fn clear(&mut self) -> Result<(), Over> {
        let (path, view) = (self.any(), self.view());
        if path == "/" {
            return Ok(());
        }
        let Some(mut next) = self.there.take() else { return Ok(()) };
        let is_mortal = next.is_mortal() || next.has_containers(&path);
        let there = next.clear(&path);
        let epoch = view.client.session().epoch();
        let deleted = view.client.delete_recursive(&view.path(&path)).await;
        let Some(deleted) = self.unless_over(deleted)? else { return Ok(()) };
        // Over another connection it may have met itself; and what is mortal is gone now, or does not matter.
        let may_be_less = is_mortal || view.client.session().epoch() != epoch;
        if deleted != there && !(deleted < there && may_be_less) {
            self.wrong("S9", format_args!("has deleted {deleted} instead of {there} at {path}"));
        }
        self.there = Some(next);
        Ok(())
    }
}
