//! From the head of the queue to a grant.
//!
//! A grant is made by one transaction, which fails unless everything is still as it was seen: no other grant was made
//! (each writes the node above), the grants it replaces are there in the version that was seen, the place in the queue
//! is there. Its node has a unique name: after a lost reply it is looked up by that, and its renewal or deletion never
//! meets another grant.

use std::time::Duration;

use tokio::{sync::oneshot, time::Instant};
use zk_client::{
    Cause, Client, CreateMode, MultiError, OpResult, ReadError, Rejection, SessionEnd, Stat, Watch,
    WriteError, Zxid,
    path::{join, name},
};

use super::{
    DurableGuard, DurableLock,
    doubt::until_answered,
    record::Record,
    tenure::{RECHECK, Terms},
};
use crate::{error::AcquireError, token::FencingToken, wait_queue::Position};

/// The session ended before the outcome was known.
const GONE: AcquireError = AcquireError::SessionEnded(SessionEnd::Closed);

/// How often a waiter looks in each lease.
const LOOKS: u32 = 4;

/// The present state of the lock.
#[derive(Debug)]
pub(super) struct Look {
    /// The version of the node above the grants, which counts them.
    version: i32,
    /// When that node was made: one that is made anew counts from the beginning.
    made: Zxid,
    pub(super) grants: Vec<Grant>,
}

/// A grant, as it was read.
#[derive(Debug)]
pub(super) struct Grant {
    path: String,
    version: i32,
    record: Option<Record>,
}

/// The outcome of an attempt to take the lock.
pub(super) enum Outcome {
    Granted(Box<DurableGuard>),
    /// The state had changed; the place in the queue is still there, if there was one.
    Changed(Option<Box<Position>>),
}

/// An outcome under way to the caller. A grant that no caller receives is released, by a client that outlasts the others,
/// unless it replaces one that its owner had before.
struct Offer {
    outcome: Option<Result<Outcome, AcquireError>>,
    client: Client,
    keeps: bool,
}

impl Offer {
    fn accept(mut self) -> Result<Outcome, AcquireError> {
        self.outcome.take().unwrap_or(Err(GONE))
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let Some(Ok(Outcome::Granted(guard))) = self.outcome.take() else { return };
        if self.keeps {
            return;
        }
        let client = self.client.clone();
        // If this release fails, the lease frees the lock.
        self.client.spawn(async move { drop(guard.release_with(client).await) });
    }
}

/// Since when each grant has been unchanged, by our own clock, which may stand still but not run fast.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<(String, i32, Instant)>);

impl Seen {
    /// Records what was just read. Called after the answer: the state is at least that old.
    pub(super) fn note(&mut self, look: &Look) {
        let is =
            |grant: &Grant, path: &str, version| grant.path == path && grant.version == version;
        self.0.retain(|(path, version, _)| look.grants.iter().any(|it| is(it, path, *version)));
        for grant in &look.grants {
            if !self.0.iter().any(|(path, version, _)| is(grant, path, *version)) {
                self.0.push((grant.path.clone(), grant.version, Instant::now()));
            }
        }
    }

    /// Whether all grants have been silent for longer than their leases.
    pub(super) fn is_over(&self, look: &Look) -> bool {
        !look.grants.is_empty()
            && look.grants.iter().all(|grant| {
                let since = self
                    .0
                    .iter()
                    .find(|(path, version, _)| *path == grant.path && *version == grant.version);
                let lease = grant.record.as_ref().and_then(|record| record.lease);
                since.zip(lease).is_some_and(|((.., since), lease)| {
                    since.elapsed() >= lease.saturating_add(lease / 10)
                })
            })
    }

    /// How long to wait before the next look.
    pub(super) fn pause(&self, look: &Look) -> Duration {
        let leases = look.grants.iter().filter_map(|grant| grant.record.as_ref()?.lease);
        leases.map(|lease| lease / LOOKS).min().unwrap_or(RECHECK).max(Duration::from_millis(1))
    }
}

impl DurableLock {
    /// Whether our owner holds the lock, through no guard of ours that is alive, and no attempt that is about to have one.
    pub(super) fn is_ours(&self, look: &Look) -> bool {
        !look.grants.is_empty()
            && look.grants.iter().all(|grant| {
                let owner = grant.record.as_ref().map(|record| &*record.owner);
                owner == Some(&*self.owner) && !self.live.has(name(&grant.path))
            })
    }

    /// Reads the grants; creates their parent if it is missing.
    pub(super) async fn look(&self) -> Result<Look, AcquireError> {
        loop {
            match self.client().children(&self.grants).await {
                Ok((names, stat)) => return self.read(names, &stat).await,
                Err(ReadError::Rejected(Rejection::NoNode)) => self.prepare().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// As `look`, with a watch for the next grant that is made or deleted. It does not report renewals.
    pub(super) async fn look_and_watch(&self) -> Result<(Look, Changed), AcquireError> {
        loop {
            match self.client().children(&self.grants).watch().await {
                Ok(((names, stat), watch)) => {
                    let look = self.read(names, &stat).await?;
                    return Ok((look, changed(watch)));
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => self.prepare().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn prepare(&self) -> Result<(), AcquireError> {
        self.queue.ensure(&self.grants, b"", CreateMode::Persistent).await.map(drop)
    }

    async fn read(&self, names: Vec<String>, above: &Stat) -> Result<Look, AcquireError> {
        let mut grants = Vec::with_capacity(names.len());
        for name in names {
            let path = join(&self.grants, &name);
            match self.client().get(&path).await {
                Ok((data, stat)) => {
                    let record = Record::decode(&data);
                    grants.push(Grant { path, version: stat.version, record });
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Look { version: above.version, made: above.czxid, grants })
    }

    /// Tries to make a grant in place of those that were seen, and trades the place in the queue for it.
    ///
    /// Runs in a task of its own, so that a grant is cleaned up if the caller stops waiting.
    pub(super) async fn take(
        &self,
        position: Option<Position>,
        look: &Look,
        breaks: bool,
    ) -> Result<Outcome, AcquireError> {
        let replaces: Vec<(String, i32)> =
            look.grants.iter().map(|grant| (grant.path.clone(), grant.version)).collect();
        if breaks {
            let owners = look.grants.iter().filter_map(|grant| Some(&grant.record.as_ref()?.owner));
            let owners: Vec<&String> = owners.collect();
            tracing::warn!(
                path = &*self.grants,
                ?owners,
                "taking a durable lock whose lease is over"
            );
        }
        let (told, outcome) = oneshot::channel();
        let take = Take {
            lock: self.clone(),
            client: self.client().for_cleanup(),
            position,
            version: look.version,
            made: look.made,
            replaces,
            breaks,
            keeps: self.is_ours(look),
        };
        self.queue.client.spawn(take.run(told));
        outcome.await.map_or(Err(GONE), Offer::accept)
    }
}

/// Resolves at the next change.
pub(super) type Changed = std::pin::Pin<Box<dyn Future<Output = Result<(), SessionEnd>> + Send>>;

fn changed(watch: Watch) -> Changed {
    Box::pin(async move { watch.await.map(drop) })
}

/// A transaction that makes a grant.
struct Take {
    lock: DurableLock,
    client: Client,
    position: Option<Position>,
    /// The version of the node above the grants, as it was seen.
    version: i32,
    /// When that node was made.
    made: Zxid,
    replaces: Vec<(String, i32)>,
    /// Whether the replaced grants are another owner's, and must not have been renewed meanwhile.
    breaks: bool,
    /// Whether they are our own owner's, who keeps the lock in any case.
    keeps: bool,
}

/// The known outcome of a transaction.
enum Made {
    /// The grant is there, made by this transaction.
    Yes(Zxid),
    No,
    PlaceLost,
}

impl Take {
    async fn run(self, told: oneshot::Sender<Offer>) {
        let (client, keeps) = (self.client.clone(), self.keeps);
        let outcome = Some(self.outcome().await);
        // The caller may have gone, or go before it looks.
        drop(told.send(Offer { outcome, client, keeps }));
    }

    async fn outcome(mut self) -> Result<Outcome, AcquireError> {
        let Self { lock, client, .. } = &self;
        let id = client.unique_id()?;
        let path = join(&lock.grants, &id);
        let record = Record {
            owner: lock.owner.to_string(),
            lease: lock.lease,
            description: lock.queue.settings.description.clone(),
        };
        let data = record.encode();
        // Before it can be seen: another attempt of this owner would take it for one that nobody holds.
        let mut live = lock.live.begin(&id);
        let sent = client.clock()();
        match self.made(&path, &id, &data).await? {
            Made::Yes(zxid) => {
                let lock = self.lock;
                let waited = self.position.map(|position| position.granted().3.end());
                let terms = Terms { path, data, lease: record.lease, sent };
                let token = FencingToken::new(zxid);
                let guard = DurableGuard::new(&lock, live, token, terms, waited);
                Ok(Outcome::Granted(Box::new(guard)))
            }
            Made::No => {
                live.is_gone();
                Ok(Outcome::Changed(self.position.take().map(Box::new)))
            }
            Made::PlaceLost => {
                live.is_gone();
                Err(AcquireError::NodeDeleted)
            }
        }
    }

    async fn made(&self, path: &str, id: &str, data: &[u8]) -> Result<Made, AcquireError> {
        let Self { lock, client, position, .. } = self;
        let settings = &lock.queue.settings;
        let mut multi = client.multi().set_version(&lock.grants, id.as_bytes(), self.version);
        for (replaced, version) in &self.replaces {
            multi = match self.breaks {
                true => multi.delete_version(replaced, *version),
                false => multi.delete(replaced),
            };
        }
        multi = multi.create_with_acl(path, data, CreateMode::Persistent, &settings.acl);
        // A name without an id can be another contender's by now.
        let place = position.as_ref().filter(|_| settings.filter.has_ids());
        if let Some(position) = place {
            multi = multi.delete(position.node.path());
        }
        match multi.await {
            Ok(Ok(results)) => {
                let above = results.iter().find_map(|result| match result {
                    OpResult::Set(stat) => Some(*stat),
                    _ => None,
                });
                match above {
                    Some(stat) if stat.czxid == self.made => Ok(Made::Yes(stat.mzxid)),
                    Some(_) => self.undone(path).await,
                    None => self.found(path).await,
                }
            }
            Ok(Err(MultiError { index, rejection })) => match rejection {
                Rejection::NoNode if index == self.replaces.len() + 2 => Ok(Made::PlaceLost),
                Rejection::NoNode | Rejection::BadVersion => Ok(Made::No),
                rejection => Err(AcquireError::Rejected(rejection)),
            },
            Err(WriteError::InDoubt { cause, .. }) if !matches!(cause, Cause::SessionEnded(_)) => {
                until_answered(|| client.resolve_in_doubt()).await?;
                self.found(path).await
            }
            Err(WriteError::NotApplied(Cause::Disconnected(_))) => Ok(Made::No),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the grant is there. Conclusive only when nothing is in flight any more.
    async fn found(&self, path: &str) -> Result<Made, AcquireError> {
        let Some(grant) = until_answered(|| self.client.exists(path)).await? else {
            return Ok(Made::No);
        };
        let above = until_answered(|| self.client.exists(&self.lock.grants)).await?;
        match above {
            Some(above) if above.czxid == self.made => Ok(Made::Yes(grant.czxid)),
            _ => self.undone(path).await,
        }
    }

    /// Takes a grant back that was made below another node of the same name, which had come to the same version: other grants
    /// may be there.
    async fn undone(&self, path: &str) -> Result<Made, AcquireError> {
        until_answered(|| self.client.delete(path).if_exists()).await?;
        // The place went with the transaction.
        Ok(if self.position.is_some() { Made::PlaceLost } else { Made::No })
    }
}
