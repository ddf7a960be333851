//! A task that writes its own nodes and shared counters, and reads.

use std::{future::IntoFuture, time::Instant};

use zk_client::{ReadError, WriteError};

use super::{
    change::{Change, Made},
    layout,
    model::Model,
    session::Seat,
    shared::{Phase, Shared, Stop, count},
};

/// So many nodes of one kind, and the next of them go.
const NODES_MAX: usize = 6;

/// A task that writes and reads.
#[derive(Debug)]
pub(super) struct Writer {
    model: Model,
    /// The write whose outcome is not known yet.
    open: Option<Change>,
    turn: usize,
}

impl Writer {
    pub(super) fn new(number: usize, shared: &Shared) -> Self {
        let model = Model::new(number, shared.first.registers[number]);
        Self { model, open: None, turn: number }
    }

    /// Takes turns until it is time to end, or the session is over. The session before this one has gone.
    pub(super) async fn run(&mut self, seat: &Seat) -> Result<(), Stop> {
        if let Some(change) = self.open.clone() {
            self.settle(seat, change).await?;
            seat.shared.count(count::DOUBT_LATER);
        }
        let mut pace = seat.shared.pace();
        while seat.shared.phase() == Phase::Running {
            pace.tick().await;
            self.turn += 1;
            self.take_turn(seat).await?;
        }
        Ok(())
    }

    /// There will be no more turns.
    pub(super) fn finish(self, shared: &Shared) {
        shared.deposit(self.model);
    }

    async fn take_turn(&mut self, seat: &Seat) -> Result<(), Stop> {
        match self.turn % 12 {
            0 | 4 => self.set(seat, true).await,
            8 => self.set(seat, false).await,
            1 => self.read_own(seat).await,
            5 => self.list_own(seat).await,
            9 => self.read_other(seat).await,
            2 | 6 => self.come_or_go(seat, "n").await,
            3 => self.come_or_go(seat, "q-").await,
            _ => self.count_or_forget(seat).await,
        }
    }

    async fn set(&mut self, seat: &Seat, says_version: bool) -> Result<(), Stop> {
        let data = self.model.unique().into_bytes();
        self.write(seat, Change::Set { data, says_version }).await
    }

    /// Creates a node, or deletes the oldest one if there are enough.
    async fn come_or_go(&mut self, seat: &Seat, prefix: &str) -> Result<(), Stop> {
        let mut there = self.model.nodes_named(prefix);
        let data = self.model.unique();
        let change = if there.len() >= NODES_MAX {
            Change::Delete { paths: vec![there.swap_remove(0)] }
        } else if prefix == "n" {
            let path = format!("{}/n{data}", layout::directory(self.model.writer));
            Change::Create { path, data: data.into_bytes() }
        } else {
            Change::Sequential { data: data.into_bytes() }
        };
        self.write(seat, change).await
    }

    /// Raises a counter, or deletes the entries below all of them if there are enough.
    async fn count_or_forget(&mut self, seat: &Seat) -> Result<(), Stop> {
        let entries = self.model.entries();
        if entries.len() >= NODES_MAX {
            return self.write(seat, Change::Delete { paths: entries }).await;
        }
        let counter = self.turn % layout::COUNTERS;
        let path = layout::counter(counter);
        let (_, stat) = read(seat, seat.zk.get(&path)).await?;
        let data = self.model.unique();
        let entry = format!("{path}/{data}");
        let (version, data) = (stat.version, data.into_bytes());
        self.write(seat, Change::Count { counter, version, entry, data }).await
    }

    async fn write(&mut self, seat: &Seat, change: Change) -> Result<(), Stop> {
        let begun = Instant::now();
        match change.make(&seat.zk, &self.model).await {
            Ok(Made::Done(done)) => {
                seat.shared.wrote(change.kind(), begun.elapsed());
                self.model.apply(change, done).map_err(Stop::Broken)
            }
            Ok(Made::Conflict) => {
                seat.shared.count(count::CONFLICT);
                Ok(())
            }
            Err(WriteError::InDoubt { .. }) => {
                seat.shared.count(count::DOUBT);
                self.open = Some(change.clone());
                self.settle(seat, change).await
            }
            Err(WriteError::NotApplied(_)) => {
                // A client without a session hears of it next time.
                seat.shared.count(count::NOT_APPLIED);
                Ok(())
            }
            Err(error) => {
                let what = format!("{change:?}");
                Err(Stop::by(error.session_end(), &what, &error))
            }
        }
    }

    /// Finds out what became of a write.
    async fn settle(&mut self, seat: &Seat, change: Change) -> Result<(), Stop> {
        seat.zk.resolve_in_doubt().await?;
        let found = change.find(&seat.zk, &self.model).await?;
        self.open = None;
        let Some(done) = found else {
            seat.shared.count(count::DOUBT_NOT_APPLIED);
            return Ok(());
        };
        seat.shared.count(count::DOUBT_APPLIED);
        self.model.apply(change, done).map_err(Stop::Broken)
    }

    /// No other client writes it: it must be as it was written last.
    async fn read_own(&self, seat: &Seat) -> Result<(), Stop> {
        let path = layout::register(self.model.writer);
        let (data, stat) = read(seat, seat.zk.get(&path)).await?;
        let Model { register, data: written, .. } = &self.model;
        if data != *written || Some(&stat.mzxid) != register.last() {
            let expected = (written, self.model.version());
            let what = format!("{path}: {data:?}, {stat:?} instead of {expected:?}");
            return Err(Stop::Broken(what));
        }
        Ok(())
    }

    /// The same for the names in its directory.
    async fn list_own(&self, seat: &Seat) -> Result<(), Stop> {
        let path = layout::directory(self.model.writer);
        let (mut names, _) = read(seat, seat.zk.children(&path)).await?;
        names.sort_unstable();
        let expected = self.model.names();
        if names == expected {
            return Ok(());
        }
        Err(Stop::Broken(format!("{path}: {names:?} instead of {expected:?}")))
    }

    /// What this session has seen of another's register must not go back.
    async fn read_other(&self, seat: &Seat) -> Result<(), Stop> {
        let other = self.turn % seat.registers.len();
        let before = seat.newest_of(other);
        let path = layout::register(other);
        let (_, stat) = read(seat, seat.zk.get(&path)).await?;
        seat.has_seen(other, stat.mzxid);
        if stat.mzxid < before {
            let what = format!("{path}: {} after {before} in one session", stat.mzxid);
            return Err(Stop::Broken(what));
        }
        Ok(())
    }
}

async fn read<T>(
    seat: &Seat,
    request: impl IntoFuture<Output = Result<T, ReadError>>,
) -> Result<T, Stop> {
    let begun = Instant::now();
    let answer = request.into_future().await?;
    seat.shared.read(begun.elapsed());
    Ok(answer)
}
