//! The fewest requests that a sound lock can be made of: join and list in one write; watch the one in front; hear of its
//! end; list again if it was not the only one. A release is a write of its own that is waited for, or rides along with the next attempt.

use std::{cell::RefCell, rc::Rc, time::Instant};

use bytes::{Bytes, BytesMut};
use tokio::task::LocalSet;
use zk_proto::{
    CreateFlags, ErrorCode, Str, Xid,
    jute::decode_prefix,
    request::{
        CreateRequest, CreateResponse, DeleteRequest, GetChildrenRequest, GetChildrenResponse,
        GetDataRequest,
    },
};

use super::{
    NAME, NAME_ON_TOKIO,
    batches::{make, open},
    wire::{SharedWire, Talk, Wire, now, put},
};
use crate::{
    client::Failure,
    locks::LOCK,
    report::Report,
    setup::{runtime, until, warm_up},
    task::Task,
    window::{Tally, Until, Window},
};

/// As long as names of protected nodes are, which is what others' listings are made of.
pub(super) const PROTECTED: &str = "_c_00000000-0000-4000-8000-000000000000-lock-";

/// Digits of a sequence number.
const DIGITS: usize = 10;

struct Contender<T> {
    wire: T,
    /// What its nodes are called in front of their numbers.
    prefix: String,
    /// The node that is to be deleted.
    own: Option<String>,
    xid: i32,
    unawaited: bool,
}

/// A connection, after the lock's own node has been made.
fn connect(task: &Task) -> Result<Wire, Failure> {
    let mut wire = Wire::connect(&task.server)?;
    make(&mut wire, LOCK, b"")?;
    Ok(wire)
}

impl<T: Talk> Contender<T> {
    fn new(wire: T, task: &Task) -> Self {
        let prefix = format!("{LOCK}/{PROTECTED}");
        Self { wire, prefix, own: None, xid: 1, unawaited: task.unawaited }
    }

    fn next_xid(&mut self) -> i32 {
        self.xid += 1;
        self.xid
    }

    fn put_delete(&mut self, out: &mut BytesMut) -> Option<Xid> {
        let own = self.own.take()?;
        let xid = self.next_xid();
        put(out, xid, &DeleteRequest { path: Str::from(&*own), version: -1 });
        Some(Xid(xid))
    }

    async fn acquire(&mut self) -> Result<(), Failure> {
        let mut out = BytesMut::with_capacity(512);
        let deleted = self.put_delete(&mut out);
        let (joined, listed) = (self.next_xid(), self.next_xid());
        let (path, data) = (Str::from(&*self.prefix), Some(&b""[..]));
        let flags = CreateFlags::EPHEMERAL_SEQUENTIAL;
        put(&mut out, joined, &CreateRequest { path, data, acl: open(), flags });
        put(&mut out, listed, &GetChildrenRequest { path: Str::from(LOCK), watch: false });
        self.wire.write(&out).await?;
        if let Some(xid) = deleted {
            self.answer(xid).await?;
        }
        let CreateResponse { path } = decode_prefix(&self.answer(Xid(joined)).await?)?;
        let own = String::from(&path);
        let mut names = self.answer(Xid(listed)).await?;
        self.own = Some(own.clone());
        while let Some((in_front, count)) = in_front_of(&names, &own)? {
            let (watched, path) = (self.next_xid(), format!("{LOCK}/{in_front}"));
            let mut out = BytesMut::with_capacity(128);
            put(&mut out, watched, &GetDataRequest { path: Str::from(&*path), watch: true });
            self.wire.write(&out).await?;
            let reply = self.reply(Xid(watched)).await?;
            if reply == ErrorCode::OK {
                while self.wire.reply().await?.header.xid != Xid::NOTIFICATION {}
                // Of several, the nearest may have given up while another one holds the lock.
                if count == 1 {
                    return Ok(());
                }
            }
            let listed = self.next_xid();
            out.clear();
            put(&mut out, listed, &GetChildrenRequest { path: Str::from(LOCK), watch: false });
            self.wire.write(&out).await?;
            names = self.answer(Xid(listed)).await?;
        }
        Ok(())
    }

    async fn release(&mut self) -> Result<(), Failure> {
        if self.unawaited {
            return Ok(());
        }
        self.leave().await
    }

    async fn leave(&mut self) -> Result<(), Failure> {
        let mut out = BytesMut::with_capacity(128);
        if let Some(xid) = self.put_delete(&mut out) {
            self.wire.write(&out).await?;
            self.answer(xid).await?;
        }
        Ok(())
    }

    /// Takes the lock repeatedly, without contention.
    async fn alone(&mut self, until: Until) -> Result<Tally, Failure> {
        let mut tally = Tally::precise(until);
        while let Some(begun) = tally.next() {
            self.acquire().await?;
            self.release().await?;
            tally.ended(begun);
        }
        Ok(tally)
    }

    async fn reply(&mut self, xid: Xid) -> Result<ErrorCode, Failure> {
        loop {
            let reply = self.wire.reply().await?;
            if reply.header.xid == xid {
                return Ok(reply.header.err);
            }
        }
    }

    /// What is answered to this; events in between are of nodes that are gone.
    async fn answer(&mut self, xid: Xid) -> Result<Bytes, Failure> {
        loop {
            let reply = self.wire.reply().await?;
            match reply.header.err {
                _ if reply.header.xid != xid => {}
                ErrorCode::OK => return Ok(reply.body()),
                err => return Err(err.to_string().into()),
            }
        }
    }
}

/// The nearest name in front of one's own, and how many there are.
pub(super) fn in_front_of(names: &Bytes, own: &str) -> Result<Option<(String, usize)>, Failure> {
    let GetChildrenResponse { children } = decode_prefix(names)?;
    let digits = |name: &str| name[name.len() - DIGITS..].to_owned();
    let own = digits(own);
    let in_front: Vec<_> = children.strs().filter(|name| digits(name) < own).collect();
    let nearest = in_front.iter().max_by_key(|name| digits(name));
    Ok(nearest.map(|name| (name.clone().into_owned(), in_front.len())))
}

pub(super) fn lock(task: &Task) -> Result<Report, Failure> {
    let (contender, report) = now(measure(Contender::new(connect(task)?, task), NAME, task))?;
    contender.wire.close();
    Ok(report)
}

/// The same on the runtime that clients use.
pub(super) fn lock_on_tokio(task: &Task) -> Result<Report, Failure> {
    let (_, report) = runtime(task)?.block_on(async {
        let wire = SharedWire::new(connect(task)?)?;
        measure(Contender::new(wire, task), NAME_ON_TOKIO, task).await
    })?;
    Ok(report)
}

async fn measure<T: Talk>(
    mut contender: Contender<T>,
    name: &str,
    task: &Task,
) -> Result<(Contender<T>, Report), Failure> {
    contender.alone(warm_up(task)).await?;
    let window = Window::open(task);
    let tally = contender.alone(until(task)).await?;
    let report = window.close(name, task, tally);
    // The next measurement would wait for it.
    contender.leave().await?;
    Ok((contender, report))
}

pub(super) fn hand_off(task: &Task) -> Result<Report, Failure> {
    runtime(&Task { threads: 1, ..task.clone() })?.block_on(async {
        let contenders = (0..task.in_flight)
            .map(|_| Ok(Contender::new(SharedWire::new(connect(task)?)?, task)))
            .collect::<Result<Vec<_>, Failure>>()?;
        let (_, contenders) = contend(contenders, warm_up(task)).await?;
        let window = Window::open(task);
        let (tally, _) = contend(contenders, until(task)).await?;
        Ok(window.close(NAME, task, tally))
    })
}

type Contenders = Vec<Contender<SharedWire>>;

/// All contend until they have had enough. What is timed is from the beginning of a release to the next grant; one that
/// rides along begins where the lock is held no longer.
async fn contend(contenders: Contenders, until: Until) -> Result<(Tally, Contenders), Failure> {
    let tally = Rc::new(RefCell::new((Tally::precise(until), None::<Instant>)));
    let set = LocalSet::new();
    let under_way: Vec<_> = contenders
        .into_iter()
        .map(|mut contender| {
            let tally = tally.clone();
            set.spawn_local(async move {
                loop {
                    contender.acquire().await?;
                    let goes_on = {
                        let (tally, released) = &mut *tally.borrow_mut();
                        let goes_on = tally.next().is_some();
                        let released = released.replace(Instant::now());
                        if goes_on {
                            tally.ended(released);
                        }
                        goes_on
                    };
                    if !goes_on {
                        contender.leave().await?;
                        return Ok::<_, Failure>(contender);
                    }
                    contender.release().await?;
                }
            })
        })
        .collect();
    let contenders = set
        .run_until(async {
            let mut all = Vec::new();
            for one in under_way {
                all.push(one.await??);
            }
            Ok::<_, Failure>(all)
        })
        .await?;
    let tally = Rc::into_inner(tally).ok_or("a contender is still there")?;
    Ok((tally.into_inner().0, contenders))
}
