//! Requests at a fixed rate, whatever becomes of those before. What is timed is from when each was to begin, so that a
//! stall counts for all that were to begin meanwhile, and not for one alone.

use std::{
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use crate::{
    client::{Client, Failure},
    in_flight::paced,
    nodes::node,
    report::Report,
    task::Task,
    window::{Tally, Window},
};

/// When each of so many requests is to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    begin: Instant,
    rate: f64,
    pub(crate) count: u64,
}

impl Schedule {
    /// For as long as the task warms up, from now on.
    pub(crate) fn of_warm_up(task: &Task) -> Self {
        Self::new(task, task.operations.map_or(task.rate * task.warm_up.as_secs_f64(), |_| 0.0))
    }

    /// For as long as it measures, from now on.
    pub(crate) fn of_window(task: &Task) -> Self {
        Self::new(
            task,
            task.operations.map_or(task.rate * task.seconds.as_secs_f64(), |count| count as f64),
        )
    }

    fn new(task: &Task, count: f64) -> Self {
        Self { begin: Instant::now(), rate: task.rate, count: count as u64 }
    }

    /// When one of them is to begin.
    pub(crate) fn at(&self, number: u64) -> Instant {
        self.begin + Duration::from_secs_f64(number as f64 / self.rate)
    }

    /// Waits for each, and begins it, unless that fails.
    pub(crate) fn keep<E>(&self, mut begin: impl FnMut(Instant) -> Result<(), E>) -> Result<(), E> {
        for number in 0..self.count {
            let at = self.at(number);
            let early = at.saturating_duration_since(Instant::now());
            if !early.is_zero() {
                thread::sleep(early);
            }
            begin(at)?;
        }
        Ok(())
    }
}

/// Reads a node at the rate that the task asks for.
pub(crate) async fn steady<C: Client>(task: &Task) -> Result<Report, Failure> {
    let client = C::connect(task).await?;
    let path = node(task);
    // It may be there from the last time.
    let _ = client.create(&path, &vec![7; task.payload]).await;
    read(&client, &path, Schedule::of_warm_up(task)).await?;
    let window = Window::open(task);
    let tally = read(&client, &path, Schedule::of_window(task)).await?;
    let report = close(window, C::NAME, task, tally);
    client.close().await;
    Ok(report)
}

/// A thread keeps the time: timers of the runtime are of whole milliseconds.
async fn read<C: Client>(client: &C, path: &str, schedule: Schedule) -> Result<Tally, Failure> {
    let (sender, due) = mpsc::unbounded_channel();
    // Nobody listens any more where a request has failed.
    let clock = thread::spawn(move || schedule.keep(|at| sender.send(at)));
    let (client, path) = (client.clone(), path.to_owned());
    let op = move || {
        let (client, path) = (client.clone(), path.clone());
        async move { client.get(&path).await }
    };
    let tally = paced(due, op).await;
    let _ = clock.join();
    tally
}

/// The report of such a window, with the longest of the times.
pub(crate) fn close(window: Window, name: &str, task: &Task, tally: Tally) -> Report {
    let longest = tally.samples.iter().max().map(|&nanoseconds| nanoseconds as f64 / 1e3);
    window.close(name, task, tally).with("rate", task.rate).with("longest_us", longest)
}
