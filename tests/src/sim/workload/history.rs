//! A node that many read and write, so that its history can be judged as a whole.

use zk_client::{CallOptions, ReadError, Rejection, SessionId, WriteError};

use super::{Over, Worker, unless_over};
use crate::{
    history::digest,
    linear::{Answer, Ask, Node, Refusal},
};

/// Where the nodes are.
const ROOT: &str = "/history";

/// How many clients take part at most: more make a history hard to judge, and no more interesting.
pub(super) const CLIENTS_MAX: u32 = 6;

struct Historian {
    worker: Worker,
    session: SessionId,
    /// The node that was asked last, and the version seen there last.
    node: usize,
    known: Option<i32>,
}

pub(super) async fn work(worker: Worker) {
    let session = worker.client.session().id();
    let mut historian = Historian { worker, session, node: 0, known: None };
    // The first create of a session costs its connection to servers before 3.5, and may not be carried out.
    loop {
        match unless_over(historian.worker.client.create(ROOT, b"").or_exists().await) {
            Ok(Some(_)) => break,
            // Some have less time for it than it takes.
            Ok(None) if historian.worker.think(1_000).await => {}
            Ok(None) | Err(Over) => return,
        }
    }
    loop {
        let pause = historian.worker.rng.scaled(5, 15_000);
        if !historian.worker.think(pause).await || historian.step().await.is_err() {
            return;
        }
    }
}

impl Historian {
    async fn step(&mut self) -> Result<(), Over> {
        let node = self.worker.ctx.check().node_of_interest();
        if std::mem::replace(&mut self.node, node) != node {
            self.known = None;
        }
        let data = format!("{:016x}", self.worker.rng.next()).into_bytes();
        let value = digest(Some(&data));
        match (self.worker.rng.below(16), self.known) {
            (0..=3, _) => self.read(false).await,
            (4..=6, _) => self.read(true).await,
            (7..=10, Some(version)) => self.write(Ask::Set(value, Some(version)), &data).await,
            (11 | 12, _) => self.write(Ask::Set(value, None), &data).await,
            (13, Some(version)) => self.write(Ask::Delete(Some(version)), &data).await,
            _ => self.write(Ask::Create(value), &data).await,
        }
    }

    async fn read(&mut self, synced: bool) -> Result<(), Over> {
        let path = path(self.node);
        let client = &self.worker.client;
        let ask = Ask::Read { synced };
        let asked = self.worker.ctx.check().asks(self.node, self.session, ask);
        let read = if synced {
            // Both in one write: the read is behind the sync, and not behind its answer.
            // A sync that is retried when the server throttles it comes behind the read.
            let cork = client.with(CallOptions::new()).cork();
            let (sync, read) = (cork.sync(&path).submit(), cork.get(&path).submit());
            drop(cork);
            let (sync, read) = (sync.await, read.await);
            sync.and(read)
        } else {
            client.get(&path).await
        };
        let (answer, ended) = match read {
            Ok((data, stat)) => {
                let node = Node { value: digest(Some(&data)), version: stat.version };
                (Answer::Saw(Some(node)), false)
            }
            Err(ReadError::Rejected(Rejection::NoNode)) => (Answer::Saw(None), false),
            Err(error) => (Answer::Open, error.session_end().is_some()),
        };
        if let Answer::Saw(node) = answer {
            self.known = node.map(|node| node.version);
        }
        self.answered(asked, Some(answer));
        if ended { Err(Over) } else { Ok(()) }
    }

    async fn write(&mut self, ask: Ask, data: &[u8]) -> Result<(), Over> {
        let path = path(self.node);
        let client = &self.worker.client;
        let asked = self.worker.ctx.check().asks(self.node, self.session, ask);
        let written = match ask {
            Ask::Set(_, None) => {
                client.set(&path, data).await.map(|stat| Answer::Version(stat.version))
            }
            Ask::Set(_, Some(version)) => {
                let set = client.set(&path, data).version(version);
                set.await.map(|stat| Answer::Version(stat.version))
            }
            Ask::Delete(version) => {
                let delete = client.delete(&path).version(version.unwrap_or(-1));
                delete.await.map(|()| Answer::Done)
            }
            Ask::Create(_) | Ask::Read { .. } | Ask::Add(_) | Ask::Remove(_) => {
                client.create(&path, data).await.map(|_| Answer::Done)
            }
        };
        let answer = match &written {
            Ok(answer) => Some(*answer),
            Err(WriteError::Rejected(rejection)) => refusal(*rejection).map(Answer::Refused),
            Err(WriteError::NotApplied(_)) => None,
            Err(_) => Some(Answer::Open),
        };
        match (ask, answer) {
            (_, Some(Answer::Version(version))) => self.known = Some(version),
            (Ask::Create(_), Some(Answer::Done)) => self.known = Some(0),
            (Ask::Delete(_), Some(Answer::Done)) => self.known = None,
            (_, Some(Answer::Refused(Refusal::NoNode))) => self.known = None,
            _ => {}
        }
        self.answered(asked, answer);
        unless_over(written).map(drop)
    }

    fn answered(&self, asked: crate::sim::check::Asked, answer: Option<Answer>) {
        let ctx = &self.worker.ctx;
        ctx.check().answered(asked, answer);
    }
}

fn path(node: usize) -> String {
    format!("{ROOT}/n{node}")
}

/// What the node itself refuses; others refuse for reasons that have nothing to do with it.
const fn refusal(rejection: Rejection) -> Option<Refusal> {
    match rejection {
        Rejection::NoNode => Some(Refusal::NoNode),
        Rejection::NodeExists => Some(Refusal::NodeExists),
        Rejection::BadVersion => Some(Refusal::BadVersion),
        _ => None,
    }
}
