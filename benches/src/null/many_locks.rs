//! The fewest requests that many locks can be made of which nobody contends for.
//!
//! To acquire one takes a create, sequential and ephemeral, with a name as long as protected ones are, and a
//! `getChildren` of the lock's node behind it, whose answer shows that nobody is in front. To release it takes a delete,
//! which is waited for; unawaited ones go in front of the next create of the same task. As many tasks do that as asked
//! for, over as many connections. All that the answers of one read cause is one write.

use std::{collections::VecDeque, mem, time::Instant};

use bytes::BytesMut;
use tokio::task::LocalSet;
use zk_proto::{
    CreateFlags, ErrorCode, Str, Xid,
    jute::decode_prefix,
    request::{CreateRequest, CreateResponse, DeleteRequest, GetChildrenRequest, Request},
};

use super::{
    NAME, NAME_ON_TOKIO,
    batches::{make, open},
    locks::{PROTECTED, in_front_of},
    wire::{Reply, SharedWire, Talk, Wire, now, put},
};
use crate::{
    client::Failure,
    locks::{many, own},
    report::Report,
    setup::{runtime, until, warm_up},
    task::Task,
    window::{Tally, Until, Window},
};

/// What an answer is to.
enum Asked {
    Join,
    Look,
    Leave,
}

/// One of the tasks.
struct Taker {
    /// Taken in turn.
    locks: Vec<String>,
    round: usize,
    /// The node that is to be deleted.
    node: Option<String>,
    begun: Option<Instant>,
    tally: Tally,
}

/// All tasks of one connection.
struct Takers<T> {
    wire: T,
    all: Vec<Taker>,
    /// In the order of the answers, and whose they are.
    asked: VecDeque<(usize, Xid, Asked)>,
    out: BytesMut,
    xid: i32,
    unawaited: bool,
}

impl<T: Talk> Takers<T> {
    fn new(wire: T, task: &Task, session: usize) -> Result<Self, Failure> {
        let numbers = (session..task.in_flight).step_by(task.sessions.max(1));
        let all = numbers.map(|number| {
            let (locks, tally) = (own(task, number)?, Tally::of(0));
            Ok(Taker { locks, round: 0, node: None, begun: None, tally })
        });
        let (all, out) = (all.collect::<Result<_, Failure>>()?, BytesMut::new());
        Ok(Self { wire, all, asked: VecDeque::new(), out, xid: 0, unawaited: task.unawaited })
    }

    /// All take their locks until they have had enough.
    async fn take(&mut self, task: &Task, session: usize, until: Until) -> Result<Tally, Failure> {
        for place in 0..self.all.len() {
            let number = session + place * task.sessions.max(1);
            self.all[place].tally = Tally::precise(until.share(number, task.in_flight));
            self.next(place);
        }
        self.answered().await?;
        let mut tally = Tally::of(0);
        self.all.iter_mut().for_each(|it| tally.add(mem::replace(&mut it.tally, Tally::of(0))));
        Ok(tally)
    }

    /// Nodes of those that were not waited for.
    async fn leave(&mut self) -> Result<(), Failure> {
        self.unawaited = true;
        (0..self.all.len()).for_each(|place| self.put_delete(place));
        self.answered().await
    }

    /// Writes and reads until nothing is under way.
    async fn answered(&mut self) -> Result<(), Failure> {
        loop {
            if !self.out.is_empty() {
                self.wire.write(&self.out).await?;
                self.out.clear();
            }
            if self.asked.is_empty() {
                return Ok(());
            }
            let mut reply = Some(self.wire.reply().await?);
            while let Some(it) = reply {
                self.heard(&it)?;
                reply = self.wire.buffered()?;
            }
        }
    }

    fn heard(&mut self, reply: &Reply) -> Result<(), Failure> {
        let (place, xid, asked) = self.asked.pop_front().ok_or("an answer to nothing")?;
        if (reply.header.xid, reply.header.err) != (xid, ErrorCode::OK) {
            return Err(format!("{:?} instead of an answer to {xid:?}", reply.header).into());
        }
        let taker = &mut self.all[place];
        match asked {
            Asked::Join => {
                let CreateResponse { path } = decode_prefix(&reply.body())?;
                taker.node = Some(String::from(&path));
            }
            Asked::Look => {
                let node = taker.node.as_deref().unwrap_or_default();
                if in_front_of(&reply.body(), node)?.is_some() {
                    return Err("somebody else has the lock".into());
                }
                if self.unawaited {
                    self.ended(place);
                } else {
                    self.put_delete(place);
                }
            }
            Asked::Leave if self.unawaited => {}
            Asked::Leave => self.ended(place),
        }
        Ok(())
    }

    fn ended(&mut self, place: usize) {
        let taker = &mut self.all[place];
        taker.tally.ended(taker.begun);
        self.next(place);
    }

    /// The next acquisition, if there is to be one.
    fn next(&mut self, place: usize) {
        let Some(begun) = self.all[place].tally.next() else { return };
        self.put_delete(place);
        let taker = &mut self.all[place];
        taker.begun = begun;
        let lock = taker.locks[taker.round % taker.locks.len()].clone();
        taker.round += 1;
        let node = format!("{lock}/{PROTECTED}");
        let (path, data) = (Str::from(&*node), Some(&b""[..]));
        let flags = CreateFlags::EPHEMERAL_SEQUENTIAL;
        self.put(place, Asked::Join, &CreateRequest { path, data, acl: open(), flags });
        let path = Str::from(&*lock);
        self.put(place, Asked::Look, &GetChildrenRequest { path, watch: false });
    }

    fn put_delete(&mut self, place: usize) {
        if let Some(node) = self.all[place].node.take() {
            let path = Str::from(&*node);
            self.put(place, Asked::Leave, &DeleteRequest { path, version: -1 });
        }
    }

    fn put(&mut self, place: usize, asked: Asked, request: &impl Request) {
        self.xid = self.xid.checked_add(1).unwrap_or(1);
        put(&mut self.out, self.xid, request);
        self.asked.push_back((place, Xid(self.xid), asked));
    }
}

/// One connection waits in the system; several have to be waited for at the same time.
pub(super) fn many_locks(task: &Task) -> Result<Report, Failure> {
    if task.sessions > 1 {
        return on_tokio(task, NAME);
    }
    let mut takers = Takers::new(connect(task)?, task, 0)?;
    now(takers.take(task, 0, warm_up(task)))?;
    let window = Window::open(task);
    let tally = now(takers.take(task, 0, until(task)))?;
    let report = window.close(NAME, task, tally);
    now(takers.leave())?;
    takers.wire.close();
    Ok(report)
}

/// The same on the runtime that clients use.
pub(super) fn many_locks_on_tokio(task: &Task) -> Result<Report, Failure> {
    on_tokio(task, NAME_ON_TOKIO)
}

/// A connection, after the nodes of all locks have been made.
fn connect(task: &Task) -> Result<Wire, Failure> {
    let mut wire = Wire::connect(&task.server)?;
    many(task).try_for_each(|node| make(&mut wire, &node, b""))?;
    Ok(wire)
}

fn on_tokio(task: &Task, name: &str) -> Result<Report, Failure> {
    runtime(&Task { threads: 1, ..task.clone() })?.block_on(async {
        let mut all = vec![Takers::new(SharedWire::new(connect(task)?)?, task, 0)?];
        for session in 1..task.sessions {
            let wire = SharedWire::new(Wire::connect(&task.server)?)?;
            all.push(Takers::new(wire, task, session)?);
        }
        let (_, all) = take_all(all, task, warm_up(task)).await?;
        let window = Window::open(task);
        let (tally, all) = take_all(all, task, until(task)).await?;
        let report = window.close(name, task, tally);
        for mut takers in all {
            takers.leave().await?;
        }
        Ok(report)
    })
}

type All = Vec<Takers<SharedWire>>;

async fn take_all(all: All, task: &Task, until: Until) -> Result<(Tally, All), Failure> {
    let set = LocalSet::new();
    let under_way: Vec<_> = all
        .into_iter()
        .enumerate()
        .map(|(session, mut takers)| {
            let task = task.clone();
            set.spawn_local(async move {
                let tally = takers.take(&task, session, until).await?;
                Ok::<_, Failure>((tally, takers))
            })
        })
        .collect();
    set.run_until(async {
        let (mut sum, mut all) = (Tally::of(0), Vec::new());
        for one in under_way {
            let (tally, takers) = one.await??;
            sum.add(tally);
            all.push(takers);
        }
        Ok((sum, all))
    })
    .await
}
