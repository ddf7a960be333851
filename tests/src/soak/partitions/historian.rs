//! A client that uses objects which many others use as well, and notes what it asks and what it is answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use zk_client::{
    Client, ConnectError, ConnectOptions, ReadError, Rejection, SessionEnd, WriteError, path::join,
};
use zk_testkit::sim::Rng;

use super::record::{Kind, Object, Recorder};
use crate::{
    faults::last,
    linear::{Answer, Ask, Node, Refusal, set_of},
};

/// Everything is below this.
const ROOT: &str = "/histories";

/// How many names a set may have.
const NAMES: u64 = 6;

/// What historians have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) servers: String,
    pub(super) session_timeout: Duration,
    pub(super) pause: Duration,
    pub(super) recorder: Recorder,
    pub(super) over: AtomicBool,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Uses one session after the other, until it is over. Fails at what must not happen.
pub(super) async fn run(shared: Arc<Shared>, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    while !shared.is_over() {
        let options = ConnectOptions::new(&shared.servers).map_err(|error| error.to_string())?;
        let options = options.session_timeout(shared.session_timeout).connect_deadline(None);
        let zk = match options.connect().await {
            Ok(zk) => zk,
            Err(ConnectError::SessionEnded(SessionEnd::Expired)) => continue,
            Err(error) => return Err(format!("connect: {error}")),
        };
        let mut historian =
            Historian { shared: shared.clone(), zk, rng: rng.fork(1), object: None, known: None };
        rng.next();
        let mut broken = None;
        while !shared.is_over() {
            last(shared.pause.mul_f64(0.5 + historian.rng.below(100) as f64 / 100.0)).await;
            match historian.step().await {
                Ok(()) => {}
                Err(Stop::Over) => break,
                Err(Stop::Broken(what)) => {
                    broken = Some(what);
                    break;
                }
            }
        }
        // Not confirmed if it is over.
        let _ = historian.zk.close().await;
        if let Some(what) = broken {
            return Err(what);
        }
    }
    Ok(())
}

/// Why a session is not used any more.
enum Stop {
    Over,
    Broken(String),
}

struct Historian {
    shared: Arc<Shared>,
    zk: Client,
    rng: Rng,
    /// What was used last, and what was seen there.
    object: Option<Object>,
    known: Option<Node>,
}

impl Historian {
    async fn step(&mut self) -> Result<(), Stop> {
        let object = self.shared.recorder.object();
        if self.object != Some(object) {
            self.prepare(object).await?;
            (self.object, self.known) = (Some(object), None);
        }
        let data = self.rng.next();
        let name = u8::try_from(self.rng.below(NAMES)).unwrap_or_default();
        let synced = self.rng.one_in(2);
        let ask = match (object.kind(), self.rng.below(16), self.known) {
            (_, 0..=5, _) => Ask::Read { synced },
            (Kind::Set, 6..=11, _) => Ask::Add(name),
            (Kind::Set, ..) => Ask::Remove(name),
            (Kind::Register, 6..=8, Some(node)) => Ask::Set(data, Some(node.version)),
            (Kind::Register, 9..=11, _) => Ask::Set(data, None),
            (Kind::Register, 12, Some(node)) => Ask::Delete(Some(node.version)),
            (Kind::Register, 13, _) => Ask::Delete(None),
            (Kind::Register, ..) => Ask::Create(data),
            (Kind::Counter, _, Some(node)) => Ask::Set(node.value + 1, Some(node.version)),
            (Kind::Counter, _, None) => Ask::Create(0),
        };
        match ask {
            Ask::Read { synced } => self.read(object, synced).await,
            ask => self.write(object, ask).await,
        }
    }

    /// What an object needs is there before it is used.
    async fn prepare(&self, object: Object) -> Result<(), Stop> {
        self.directory(ROOT).await?;
        match object.kind() {
            Kind::Set => self.directory(&path(object)).await,
            Kind::Register | Kind::Counter => Ok(()),
        }
    }

    async fn directory(&self, path: &str) -> Result<(), Stop> {
        loop {
            match self.zk.create(path, b"").or_exists().await {
                Ok(_) => return Ok(()),
                Err(error) if error.session_end().is_some() => return Err(Stop::Over),
                Err(WriteError::InDoubt { .. } | WriteError::NotApplied(_)) => {}
                Err(error) => return Err(Stop::Broken(format!("create {path}: {error}"))),
            }
        }
    }

    async fn read(&mut self, object: Object, synced: bool) -> Result<(), Stop> {
        let recorder = &self.shared.recorder;
        let asked = recorder.asks(object, self.zk.session().id(), Ask::Read { synced });
        let (path, cork) = (path(object), self.zk.cork());
        // A leader that was cut off and has not noticed would answer a `sync` (ZOOKEEPER-1675), but can write nothing. Both
        // go out in one piece: the read is behind the write, and not behind its answer.
        let write = synced.then(|| cork.set(ROOT, b"").submit());
        let seen = if object.kind() == Kind::Set {
            let names = cork.children(&path).submit();
            drop(cork);
            names.await.map(|(names, _)| set_of(mask(&names)))
        } else {
            let node = cork.get(&path).submit();
            drop(cork);
            let there = |(data, version)| Some(Node { value: number(data), version });
            match node.await {
                Ok((data, stat)) => Ok(there((&data, stat.version))),
                Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let written = match write {
            Some(write) => write.await.map(drop),
            None => Ok(()),
        };
        let answer = match (&written, &seen) {
            (Ok(()), Ok(node)) => Answer::Saw(*node),
            _ => Answer::Open,
        };
        recorder.answered(&asked, Some(answer));
        match (written, seen) {
            (Ok(()), Ok(node)) => self.known = node,
            (Err(WriteError::Rejected(error)), _) => {
                return Err(Stop::Broken(format!("set {ROOT}: {error}")));
            }
            (_, Err(ReadError::Rejected(error))) => {
                return Err(Stop::Broken(format!("read {path}: {error}")));
            }
            (Err(error), _) if error.session_end().is_some() => return Err(Stop::Over),
            (_, Err(error)) if error.session_end().is_some() => return Err(Stop::Over),
            _ => {}
        }
        Ok(())
    }

    async fn write(&mut self, object: Object, ask: Ask) -> Result<(), Stop> {
        let recorder = &self.shared.recorder;
        let asked = recorder.asks(object, self.zk.session().id(), ask);
        let (zk, path) = (&self.zk, path(object));
        let named = |name: u8| join(&path, &format!("n{name}"));
        let written = match ask {
            Ask::Read { .. } => return Ok(()),
            Ask::Create(value) => zk.create(&path, &text(value)).await.map(|_| Answer::Done),
            Ask::Set(value, wanted) => {
                let data = text(value);
                let set = zk.set(&path, &data).version(wanted.unwrap_or(-1));
                set.await.map(|stat| Answer::Version(stat.version))
            }
            Ask::Delete(wanted) => {
                zk.delete(&path).version(wanted.unwrap_or(-1)).await.map(|()| Answer::Done)
            }
            Ask::Add(name) => zk.create(&named(name), b"").await.map(|_| Answer::Done),
            Ask::Remove(name) => zk.delete(&named(name)).await.map(|()| Answer::Done),
        };
        let answer = match &written {
            Ok(answer) => Some(*answer),
            Err(WriteError::Rejected(Rejection::NoNode)) => Some(Answer::Refused(Refusal::NoNode)),
            Err(WriteError::Rejected(Rejection::NodeExists)) => {
                Some(Answer::Refused(Refusal::NodeExists))
            }
            Err(WriteError::Rejected(Rejection::BadVersion)) => {
                Some(Answer::Refused(Refusal::BadVersion))
            }
            Err(WriteError::Rejected(_) | WriteError::NotApplied(_)) => None,
            Err(_) => Some(Answer::Open),
        };
        recorder.answered(&asked, answer);
        self.known = match (ask, answer) {
            (Ask::Set(value, _), Some(Answer::Version(version))) => Some(Node { value, version }),
            (Ask::Create(value), Some(Answer::Done)) => Some(Node { value, version: 0 }),
            _ => None,
        };
        match written {
            Err(error) if error.session_end().is_some() => Err(Stop::Over),
            Err(WriteError::Rejected(error)) if answer.is_none() => {
                Err(Stop::Broken(format!("{ask:?} of {path}: {error}")))
            }
            _ => Ok(()),
        }
    }
}

fn path(object: Object) -> String {
    let kind = match object.kind() {
        Kind::Register => "register",
        Kind::Counter => "counter",
        Kind::Set => "set",
    };
    format!("{ROOT}/{kind}-{}", object.number())
}

fn text(value: u64) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// What stands in a node; what does not is seen as a number that is never written.
fn number(data: &[u8]) -> u64 {
    std::str::from_utf8(data).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

/// A bit for each name.
fn mask(names: &[String]) -> u64 {
    let bit = |name: &String| name.strip_prefix('n')?.parse::<u32>().ok().map(|name| 1 << name);
    names.iter().filter_map(bit).fold(0, |mask, bit: u64| mask | bit)
}
