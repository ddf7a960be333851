//! Everything else that a client can ask for, on nodes that nobody else changes: what comes of each request is known
//! beforehand, whatever it is, unless an answer is missing.
//!
//! | module | concern |
//! |---|---|
//! | `model` | what there is, and what servers say to each change of it |
//! | `request` | what is sent for one change |
//! | `writes`, `together`, `rows`, `watched`, `reads` | requests, and what has to come of them |

mod model;
mod reads;
mod request;
mod rows;
mod together;
mod watched;
mod writes;

use std::fmt;

use zk_client::{Acl, AclList, Cause, Client, Error, ReadError, Rejection, WriteError};
use zk_proto::path::join;

use self::model::{Change, Model};
use super::{Over, Worker, unless_over};

/// Where the nodes are.
pub(crate) const ROOT: &str = "/errands";

/// The names of nodes and their children: few, so that each is met again.
const NAMES: u64 = 4;
const CHILDREN: u64 = 2;

struct Errands {
    worker: Worker,
    /// The name of the node above all of them.
    name: String,
    /// What there is; `None` as long as that is not certain.
    there: Option<Model>,
    /// Whether watches may be armed that nobody waits for.
    is_armed: bool,
    /// Whether requests wait for all that they need, however long that takes.
    is_patient: bool,
}

/// A client, and what stands in front of the paths of a model for it.
struct View {
    client: Client,
    above: String,
}

/// Lists of permissions that allow everything; the first one is the client's own.
fn lists() -> [AclList; 2] {
    let open = Acl::open_unsafe();
    [AclList::from_iter([open.clone()]), AclList::from_iter([open, Acl::world_readable()])]
}

pub(super) async fn work(worker: Worker) {
    let session = worker.client.session().id();
    // A session's own: what one before has asked for on a connection that it has left may still reach a server.
    let name = format!("c{}-{session}", worker.ctx.number);
    let mut errands = Errands { worker, name, there: None, is_armed: false, is_patient: false };
    loop {
        let pause = errands.worker.rng.scaled(20, 10_000);
        if !errands.worker.think(pause).await || errands.step().await.is_err() {
            return;
        }
    }
}

impl View {
    /// A path of the model.
    fn path(&self, path: &str) -> String {
        match (&*self.above, path) {
            ("", path) => path.to_owned(),
            (above, "/") => above.to_owned(),
            (above, path) => format!("{above}{path}"),
        }
    }

    /// What a change asks for: of the root itself, a number below it.
    fn target(&self, change: &Change) -> String {
        match change {
            Change::Create { path, .. } if path == "/" => join(&self.path("/"), ""),
            _ => self.path(change.path()),
        }
    }
}

impl Errands {
    async fn step(&mut self) -> Result<(), Over> {
        self.is_patient = false;
        if self.there.is_none() {
            return self.begin_anew().await;
        }
        match self.worker.rng.below(25) {
            0 => self.begin_anew().await,
            1..=5 => self.change().await,
            6 => self.make_sure().await,
            7 => self.make_gone().await,
            8..=9 => self.change_together().await,
            10..=11 => self.change_in_a_row().await,
            12 => self.permit().await,
            13 => self.clear().await,
            14..=15 => self.read().await,
            16..=17 => self.read_together().await,
            18 => self.count().await,
            19..=20 => self.change_watched().await,
            21 => self.read_in_vain().await,
            22 => self.read_again().await,
            23 => self.ask_too_much().await,
            _ => self.ask_the_server().await,
        }
    }

    /// One of the ways to see the nodes.
    fn view(&mut self) -> View {
        self.is_patient = self.worker.rng.one_in(2);
        let client = self.worker.client.clone();
        let client = if self.is_patient { client.patient() } else { client };
        let root = join(ROOT, &self.name);
        let chrooted = |path: &str| client.chrooted(path).expect("it is a path");
        match self.worker.rng.below(3) {
            0 => View { client: chrooted(&root), above: String::new() },
            1 => View { client: chrooted(ROOT), above: format!("/{}", self.name) },
            _ => View { client, above: root },
        }
    }

    /// A client whose requests wait for this or that, or are patient.
    fn waiting(&mut self, view: &View) -> Client {
        if self.is_patient { view.client.clone() } else { self.worker.waiting(&view.client) }
    }

    /// The path of a node that may be there.
    fn any(&mut self) -> String {
        let rng = &mut self.worker.rng;
        let name = rng.below(NAMES);
        match rng.below(5) {
            0 => "/".to_owned(),
            1 | 2 => format!("/n{name}/k{}", rng.below(CHILDREN)),
            _ => format!("/n{name}"),
        }
    }

    /// All goes, and the root comes back.
    async fn begin_anew(&mut self) -> Result<(), Over> {
        let known = self.there.take();
        let root = join(ROOT, &self.name);
        let Self { worker: Worker { client, rng, .. }, .. } = self;
        // What may still happen has happened then.
        if unless_over(client.resolve_in_doubt().await)?.is_none() {
            return Ok(());
        }
        let deleted: Result<usize, Error> = client.delete_recursive(&root).await;
        let Some(deleted) = unless_over(deleted)? else { return Ok(()) };
        let create = client.create(&root, b"");
        let list = rng.below(2) as usize;
        let created = match rng.below(3) {
            0 => create.parents().acl(&lists()[list]).await,
            1 => create.parents_below("/").acl(&lists()[list]).await,
            _ => create.parents().containers().acl(&lists()[list]).await,
        };
        if let Some(known) = known.filter(|known| deleted > 1 + known.below("/")) {
            self.wrong("S5", format_args!("has deleted {deleted} nodes of {known:?}"));
        }
        let made = self.settle("creating the root", &Ok(()), Some(Model::new(list)), created)?;
        if let Some(other) = made.filter(|made| made.path != root) {
            self.wrong("S5", format_args!("has created {} instead of {root}", other.path));
        }
        Ok(())
    }

    /// What became of a write that should have come to this. With what is there if it was done.
    fn settle<T>(
        &mut self,
        what: impl fmt::Display,
        expected: &Result<(), Rejection>,
        next: Option<Model>,
        got: Result<T, WriteError>,
    ) -> Result<Option<T>, Over> {
        match (got, expected) {
            (Ok(done), Ok(())) => {
                self.there = next;
                Ok(Some(done))
            }
            (Ok(_), Err(rejection)) => {
                self.surprised(format_args!("{what} was done, and {rejection}"));
                Ok(None)
            }
            // A server without a quorum may have been asked.
            (Err(WriteError::Rejected(Rejection::ReadOnly)), _) => Ok(None),
            (Err(WriteError::Rejected(told)), expected) => {
                if expected.err() != Some(told) {
                    self.surprised(format_args!("{what} is told {told}, not {expected:?}"));
                }
                Ok(None)
            }
            (Err(error), _) => {
                if !matches!(error, WriteError::NotApplied(_)) {
                    self.there = None;
                }
                self.unless_over(Err::<T, _>(error))
            }
        }
    }

    /// What became of a read.
    fn told<T>(&self, got: Result<T, ReadError>) -> Result<Option<Result<T, Rejection>>, Over> {
        match got {
            Ok(found) => Ok(Some(Ok(found))),
            Err(ReadError::Rejected(Rejection::Unimplemented)) => Ok(None),
            Err(ReadError::Rejected(rejection)) => Ok(Some(Err(rejection))),
            Err(ReadError::Unavailable(cause @ (Cause::Disconnected(_) | Cause::NotConnected))) => {
                self.wrong("L4", format_args!("a read is not sent again: {cause}"));
                Ok(None)
            }
            Err(error) => self.unless_over(Err(error)),
        }
    }

    /// What became of something that may fail, unless the session is over.
    fn unless_over<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<Option<T>, Over> {
        let outcome = outcome.map_err(Into::into);
        let cause = match &outcome {
            Err(Error::Read(ReadError::Unavailable(cause)))
            | Err(Error::Write(
                WriteError::NotApplied(cause) | WriteError::InDoubt { cause, .. },
            ))
            | Err(Error::Cause(cause)) => Some(cause),
            _ => None,
        };
        let is_impatient = matches!(
            cause,
            Some(
                Cause::NotConnected | Cause::DeadlineExceeded | Cause::QueueFull | Cause::Throttled
            )
        );
        // Requests here are valid and short, and so are their answers. With faults one may be unlucky each time.
        let ctx = &self.worker.ctx;
        let is_guilty = match cause {
            Some(Cause::CostsConnection(_)) => ctx.now() > ctx.options.well_from(),
            Some(
                Cause::InvalidPath(_)
                | Cause::InvalidArgument(_)
                | Cause::Undecodable(_)
                | Cause::Mismatch(_)
                | Cause::ReplyTooLarge { .. },
            ) => true,
            _ => false,
        };
        if is_guilty {
            self.wrong("E1", format_args!("a sound request is found guilty: {cause:?}"));
        }
        if self.is_patient && is_impatient {
            self.wrong("L4", format_args!("a patient request fails: {cause:?}"));
        }
        unless_over(outcome)
    }

    /// Whether servers may delete something of their own accord.
    fn is_mortal(&self) -> bool {
        self.there.as_ref().is_some_and(Model::is_mortal)
    }

    /// It is not as it should be, unless the servers have deleted something of their own accord.
    fn surprised(&mut self, text: fmt::Arguments<'_>) {
        let (is_mortal, there) = (self.is_mortal(), self.there.take());
        match is_mortal {
            true => self.worker.ctx.count("own nodes that may have vanished"),
            false => self.wrong("S9", format_args!("{text}; there is {there:?}")),
        }
    }

    fn wrong(&self, rule: &'static str, text: fmt::Arguments<'_>) {
        self.worker.shown_wrong(rule, &format!("in {}: {text}", self.name));
    }
}
