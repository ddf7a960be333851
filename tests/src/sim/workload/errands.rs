//! Everything else that a client can ask for, on nodes that nobody else changes: what is there is what was written.

use std::{borrow::Cow, collections::BTreeSet};

use zk_client::{Acl, AclList, CallOptions, CreateMode, Error, ReadResult, WatchKind, WriteError};

use super::{Over, Worker, unless_over};

/// Where the nodes are.
pub(crate) const ROOT: &str = "/errands";

struct Errands {
    worker: Worker,
    /// The node above all of them.
    root: String,
    /// The names of all that there is below the root; `None` as long as that is not certain.
    there: Option<BTreeSet<String>>,
}

/// The permissions of what is read and deleted again.
fn all() -> AclList {
    AclList::from_iter([Acl::open_unsafe()])
}

pub(super) async fn work(worker: Worker) {
    // A session's own: what one before has asked for on a connection that it has left may still reach a server.
    let root = format!("{ROOT}/c{}-{}", worker.ctx.number, worker.client.session().id());
    let mut errands = Errands { worker, root, there: None };
    loop {
        let pause = errands.worker.rng.scaled(20, 20_000);
        if !errands.worker.think(pause).await || errands.step().await.is_err() {
            return;
        }
    }
}

impl Errands {
    async fn step(&mut self) -> Result<(), Over> {
        if self.there.is_none() {
            return self.begin_anew().await;
        }
        match self.worker.rng.below(10) {
            0 => self.begin_anew().await,
            1..=3 => self.come().await,
            4 => self.go().await,
            5 => self.several().await,
            6 => self.look_at_several().await,
            7 => self.permissions().await,
            8 => self.ask_the_server().await,
            _ => self.count().await,
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    fn any(&mut self) -> String {
        format!("n{}", self.worker.rng.below(6))
    }

    /// Notes whether a node is there now; no longer certain if what was written may not have been.
    fn wrote<T>(
        &mut self,
        name: &str,
        lives: bool,
        done: Result<T, WriteError>,
    ) -> Result<(), Over> {
        let is_done = done.is_ok();
        unless_over(done)?;
        match self.there.as_mut().filter(|_| is_done) {
            Some(there) if lives => drop(there.insert(name.to_owned())),
            Some(there) => drop(there.remove(name)),
            None => self.there = None,
        }
        Ok(())
    }

    /// All goes, and the root comes back.
    async fn begin_anew(&mut self) -> Result<(), Over> {
        self.there = None;
        let Self { worker: Worker { client, rng, .. }, root, .. } = self;
        // What may still happen has happened then.
        unless_over(client.resolve_in_doubt().await)?;
        let deleted: Result<usize, Error> = client.delete_recursive(root).await;
        if unless_over(deleted)?.is_none() {
            return Ok(());
        }
        let create = client.create(root, b"");
        let created = match rng.below(3) {
            0 => create.parents().await,
            1 => create.parents_below("/").await,
            _ => create.parents().containers().acl(&all()).await,
        };
        if unless_over(created)?.is_some() {
            self.there = Some(BTreeSet::new());
        }
        Ok(())
    }

    async fn come(&mut self) -> Result<(), Over> {
        let name = self.any();
        if self.there.as_ref().is_some_and(|there| there.contains(&name)) {
            return Ok(());
        }
        let path = self.path(&name);
        let client = match self.worker.rng.below(3) {
            0 => self.worker.client.patient(),
            1 => self.worker.client.with(CallOptions::new().retry_throttled()),
            _ => self.worker.client.clone(),
        };
        let mode = *self.worker.rng.pick(&[CreateMode::Persistent, CreateMode::Ephemeral]);
        let created = client.create(&path, b"data").mode(mode).acl(&all()).await;
        self.wrote(&name, true, created)
    }

    async fn go(&mut self) -> Result<(), Over> {
        let name = self.any();
        let path = self.path(&name);
        let deleted = self.worker.client.delete(&path).if_exists().await;
        self.wrote(&name, false, deleted)
    }

    /// One comes and goes, and is written in between.
    async fn several(&mut self) -> Result<(), Over> {
        let (name, other) = (self.any(), self.path("passing"));
        let path = self.path(&name);
        let client = self.worker.client.patient();
        let multi = client.multi().create_with_acl(&other, b"", CreateMode::Persistent, &all());
        let multi = multi.set_version(&other, b"more", 0).check_version(&other, 1);
        let multi = multi.delete_version(&other, 1).check(&self.root);
        let lives = self.there.as_ref().is_some_and(|there| there.contains(&name));
        let multi = if lives { multi.delete(&path) } else { multi.check_version(&self.root, 0) };
        let done = multi.as_told().await;
        match done {
            Ok(Err(refused)) => {
                self.wrong("S9", &format!("{refused} of a transaction that nothing is against"));
                self.there = None;
                Ok(())
            }
            done if lives => self.wrote(&name, false, done),
            done => unless_over(done).map(drop),
        }
    }

    /// The names, by one request and by another.
    async fn look_at_several(&self) -> Result<(), Over> {
        let client = &self.worker.client;
        let names = match unless_over(client.children(&self.root).packed().await)? {
            Some((names, _)) => names.iter().map(Cow::into_owned).collect::<BTreeSet<_>>(),
            None => return Ok(()),
        };
        self.is_all("a listing", &names);
        let both = self.worker.client.multi_read().children(&self.root).get(&self.root).await;
        if let Some(both) = unless_over(both)? {
            match &both[..] {
                [Ok(ReadResult::Children(names)), Ok(ReadResult::Data(..))] => {
                    self.is_all("several reads", &names.iter().cloned().collect());
                }
                other => self.wrong("S5", &format!("is told {other:?} of {}", self.root)),
            }
        }
        Ok(())
    }

    async fn count(&self) -> Result<(), Over> {
        let counted = unless_over(self.worker.client.descendant_count(&self.root).await)?;
        let there = self.there.as_ref().map(|there| there.len() as u32);
        if let (Some(counted), Some(there)) = (counted, there) {
            if counted != there {
                self.wrong(
                    "S5",
                    &format!("is told of {counted} nodes below {}, {there} are there", self.root),
                );
            }
        }
        let own = unless_over(self.worker.client.ephemerals(&self.root).await)?;
        let is_own = |path: &String| path.starts_with(&self.root);
        if let Some(other) = own.and_then(|own| own.into_iter().find(|path| !is_own(path))) {
            self.wrong("S5", &format!("is told of {other} below {}", self.root));
        }
        Ok(())
    }

    async fn permissions(&self) -> Result<(), Over> {
        let client = &self.worker.client;
        unless_over(client.set_acl(&self.root, &all()).await)?;
        let acl = unless_over(client.acl(&self.root).await)?;
        if let Some((acl, _)) = acl.filter(|(acl, _)| *acl != all()) {
            self.wrong("S5", &format!("is told {acl:?} of {}", self.root));
        }
        Ok(())
    }

    async fn ask_the_server(&self) -> Result<(), Over> {
        let client = &self.worker.client;
        unless_over(client.who_am_i().await)?;
        unless_over(client.config().await)?;
        let watched = unless_over(client.check_watches(&self.root, WatchKind::Any).await)?;
        if watched == Some(true) {
            self.wrong("W3", &format!("is told of a watch on {}, and there is none", self.root));
        }
        Ok(())
    }

    fn is_all(&self, what: &str, names: &BTreeSet<String>) {
        self.worker.ctx.count("own nodes checked");
        if self.there.as_ref().is_some_and(|there| there != names) {
            let there = &self.there;
            self.wrong("S5", &format!("finds {names:?} by {what} of {}, not {there:?}", self.root));
        }
    }

    fn wrong(&self, rule: &'static str, text: &str) {
        self.worker.shown_wrong(rule, text);
    }
}
