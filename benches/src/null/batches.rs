//! Requests that were encoded once, written as many at a time as were answered.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    time::Instant,
};

use bytes::BytesMut;
use zk_proto::{
    Acl, AclList, CreateFlags, ErrorCode, Str,
    request::{
        CreateRequest, DeleteRequest, GetChildrenRequest, GetDataRequest, MultiOp, MultiRequest,
        Request, SetDataRequest,
    },
};

use super::{
    NAME, NAME_ON_TOKIO,
    wire::{Counter, SharedWire, Talk, Wire, now, put},
};
use crate::{
    client::Failure,
    nodes::{listed, listed_children, node},
    report::Report,
    setup::{runtime, until, warm_up},
    task::{Task, Workload},
    window::{Tally, Until, Window, status},
};

/// Requests that are under way at the same time, twice in a row: so any number of them, from any on, is one piece.
struct Batch {
    bytes: BytesMut,
    /// Where each begins, and where the last one ends.
    begins: Vec<usize>,
    count: usize,
    /// Requests that make up an operation.
    per_operation: u64,
}

impl Batch {
    fn of(task: &Task) -> Self {
        let path = if task.workload == Workload::List { listed(task) } else { node(task) };
        let data = vec![7; task.payload];
        let per_operation = if task.workload == Workload::CreateDelete { 2 } else { 1 };
        let count = match task.workload {
            // One in ten must be the other.
            Workload::Mixed => task.in_flight.next_multiple_of(10),
            _ => task.in_flight,
        };
        let mut batch = Self { bytes: BytesMut::new(), begins: vec![0], count, per_operation };
        for number in (0..count).chain(0..count) {
            let xid = i32::try_from(number + 1).unwrap_or(i32::MAX);
            batch.put_operation(task.workload, (xid, number), &path, &data);
        }
        batch.count *= per_operation as usize;
        batch
    }

    fn put_operation(
        &mut self,
        workload: Workload,
        (xid, number): (i32, usize),
        path: &str,
        data: &[u8],
    ) {
        match workload {
            Workload::Set => self.put(xid, &set(path, data)),
            Workload::Mixed if number % 10 == 0 => self.put(xid, &set(path, data)),
            Workload::CreateDelete => {
                let path = format!("/bench-null-{number}");
                self.put(xid, &create(&path, data));
                self.put(xid, &DeleteRequest { path: Str::from(&*path), version: -1 });
            }
            Workload::Multi => {
                let paths: Vec<String> = (0..16).map(|n| format!("/bench-multi-{n}")).collect();
                let sets = paths.iter().map(|path| MultiOp::SetData(set(path, data)));
                self.put(xid, &sets.collect::<MultiRequest>());
            }
            Workload::List => {
                self.put(xid, &GetChildrenRequest { path: Str::from(path), watch: false });
            }
            _ => self.put(xid, &GetDataRequest { path: Str::from(path), watch: false }),
        }
    }

    fn put(&mut self, xid: i32, request: &impl Request) {
        put(&mut self.bytes, xid, request);
        self.begins.push(self.bytes.len());
    }

    /// So many requests, from this one on.
    fn some(&self, from: u64, count: usize) -> &[u8] {
        let from = (from % self.count as u64) as usize;
        &self.bytes[self.begins[from]..self.begins[from + count]]
    }
}

fn set<'a>(path: &'a str, data: &'a [u8]) -> SetDataRequest<'a> {
    SetDataRequest { path: Str::from(path), data: Some(data), version: -1 }
}

fn create<'a>(path: &'a str, data: &'a [u8]) -> CreateRequest<'a> {
    let (path, acl, flags) = (Str::from(path), open(), CreateFlags::PERSISTENT);
    CreateRequest { path, data: Some(data), acl, flags }
}

/// All identities may do everything.
pub(super) fn open() -> AclList {
    [Acl::open_unsafe()].into_iter().collect()
}

pub(super) fn requests(task: &Task) -> Result<Report, Failure> {
    match &task.tls {
        None => requests_on(Wire::connect(&task.server)?, task),
        Some(authority) => requests_on(Wire::connect_secured(&task.server, authority)?, task),
    }
}

fn requests_on<S: Read + Write>(mut wire: Wire<S>, task: &Task) -> Result<Report, Failure> {
    prepare(&mut wire, task)?;
    let (wire, report) = now(measure(wire, NAME, task))?;
    wire.close();
    Ok(report)
}

/// The same on the runtime that clients use.
pub(super) fn requests_on_tokio(task: &Task) -> Result<Report, Failure> {
    let mut wire = Wire::connect(&task.server)?;
    prepare(&mut wire, task)?;
    let (_, report) = runtime(task)?
        .block_on(async { measure(SharedWire::new(wire)?, NAME_ON_TOKIO, task).await })?;
    Ok(report)
}

async fn measure<T: Talk>(mut wire: T, name: &str, task: &Task) -> Result<(T, Report), Failure> {
    let batch = Batch::of(task);
    run(&mut wire, &batch, warm_up(task)).await?;
    let window = Window::open(task);
    let tally = run(&mut wire, &batch, until(task)).await?;
    Ok((wire, window.close(name, task, tally)))
}

/// Has the nodes there that are read and written.
fn prepare(wire: &mut Wire<impl Read + Write>, task: &Task) -> Result<(), Failure> {
    let multi = (0..16).map(|number| format!("/bench-multi-{number}"));
    for path in multi.chain([node(task)]) {
        make(wire, &path, &vec![7; task.payload])?;
    }
    match listed_children(task).last() {
        Some(last) if task.workload == Workload::List => make_listed(wire, task, &last),
        _ => Ok(()),
    }
}

/// The node that is listed, with its children up to the last one, unless they are there from the last time.
fn make_listed(wire: &mut Wire<impl Read + Write>, task: &Task, last: &str) -> Result<(), Failure> {
    let mut out = BytesMut::new();
    put(&mut out, 1, &GetDataRequest { path: Str::from(last), watch: false });
    wire.write(&out)?;
    if wire.reply()?.header.err == ErrorCode::OK {
        return Ok(());
    }
    make(wire, &listed(task), b"")?;
    listed_children(task).try_for_each(|path| make(wire, &path, b""))
}

/// A node, which may be there from the last time.
pub(super) fn make(
    wire: &mut Wire<impl Read + Write>,
    path: &str,
    data: &[u8],
) -> Result<(), Failure> {
    let mut out = BytesMut::new();
    put(&mut out, 1, &create(path, data));
    wire.write(&out)?;
    wire.reply().map(drop)
}

/// Keeps all of the batch under way.
async fn run<T: Talk>(wire: &mut T, batch: &Batch, until: Until) -> Result<Tally, Failure> {
    let mut tally = Tally::new(until);
    let left = |begun: u64| match until {
        Until::Time(end) if Instant::now() < end => u64::MAX,
        Until::Time(_) => 0,
        Until::Count(count) => count * batch.per_operation - begun,
    };
    let mut buffer = vec![0; 256 << 10];
    let mut counter = Counter::default();
    // Up to which request each write went, and when it was made.
    let mut writes = VecDeque::new();
    let (mut begun, mut ended) = (0, 0);
    loop {
        let free = batch.count as u64 - (begun - ended);
        let some = free.min(left(begun));
        if some > 0 {
            let at = Instant::now();
            wire.write(batch.some(begun, some as usize)).await?;
            begun += some;
            writes.push_back((begun, at));
        }
        if ended == begun {
            break;
        }
        let len = wire.read(&mut buffer).await?;
        ended += counter.count(&buffer[..len]);
        while let Some((_, at)) = writes.front().filter(|(up_to, _)| *up_to <= ended) {
            tally.took(Instant::elapsed(at));
            writes.pop_front();
        }
    }
    tally.operations = ended / batch.per_operation;
    Ok(tally)
}

pub(super) fn connect(task: &Task) -> Result<Report, Failure> {
    let mut first = Wire::connect(&task.server)?;
    prepare(&mut first, task)?;
    let batch = Batch::of(&Task { workload: Workload::Get, in_flight: 1, ..task.clone() });
    let run = |until| {
        let (mut tally, mut greeted) = (Tally::precise(until), Tally::precise(until));
        while let Some(begun) = tally.next() {
            let mut wire = Wire::connect(&task.server)?;
            greeted.ended(begun);
            wire.write(batch.some(0, 1))?;
            wire.reply()?;
            tally.ended(begun);
            wire.close();
        }
        Ok::<_, Failure>((tally, greeted))
    };
    run(warm_up(task))?;
    let window = Window::open(task);
    let (tally, mut greeted) = run(until(task))?;
    greeted.samples.sort_unstable();
    let middle = greeted.samples.get(greeted.samples.len() / 2);
    let greeted = middle.map(|&nanoseconds| nanoseconds as f64 / 1e3);
    Ok(window.close(NAME, task, tally).with("connected_p50_us", greeted))
}

/// Sessions that do not even send heartbeats: for as long as they last.
pub(super) fn idle(task: &Task) -> Result<Report, Failure> {
    let first = Wire::connect(&task.server)?;
    let resident = status("VmRSS:").unwrap_or_default();
    let sessions = (0..task.in_flight).map(|_| Wire::connect(&task.server));
    let sessions = sessions.collect::<Result<Vec<_>, _>>()?;
    let window = Window::open(task);
    std::thread::sleep(task.seconds);
    let grown = status("VmRSS:").unwrap_or_default().saturating_sub(resident);
    let report = window.close(NAME, task, Tally::of(sessions.len()));
    drop((first, sessions));
    Ok(report.with("resident_kib_grown", grown))
}
