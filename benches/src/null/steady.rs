//! Requests at a fixed rate: one thread writes each when it is due, another one counts the answers.

use std::{io, thread, time::Instant};

use bytes::BytesMut;
use zk_proto::{Str, request::GetDataRequest};

use super::{
    NAME,
    batches::make,
    wire::{Counter, READ_LEN, Wire, put},
};
use crate::{
    client::Failure,
    nodes::node,
    report::Report,
    steady::{Schedule, close},
    task::Task,
    window::{Tally, Window},
};

pub(super) fn steady(task: &Task) -> Result<Report, Failure> {
    let mut wire = Wire::connect(&task.server)?;
    let path = node(task);
    make(&mut wire, &path, &vec![7; task.payload])?;
    let mut request = BytesMut::new();
    put(&mut request, 1, &GetDataRequest { path: Str::from(&*path), watch: false });
    read(&mut wire, &request, Schedule::of_warm_up(task))?;
    let window = Window::open(task);
    let tally = read(&mut wire, &request, Schedule::of_window(task))?;
    let report = close(window, NAME, task, tally);
    wire.close();
    Ok(report)
}

fn read(wire: &mut Wire, request: &[u8], schedule: Schedule) -> io::Result<Tally> {
    let mut writing = wire.twin()?;
    let (mut tally, mut counter) = (Tally::of(0), Counter::default());
    let mut buffer = vec![0; READ_LEN];
    thread::scope(|scope| {
        let clock = scope.spawn(move || schedule.keep(|_: Instant| writing.write(request)));
        while tally.operations < schedule.count {
            let len = wire.read(&mut buffer)?;
            for _ in 0..counter.count(&buffer[..len]) {
                tally.ended(Some(schedule.at(tally.operations)));
            }
        }
        clock.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })?;
    Ok(tally)
}
