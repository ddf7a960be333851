//! How often which fault has hit a client in which state.

use std::collections::BTreeMap;

use super::Fault;

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doing {
    /// It has no connection.
    Handshake,
    /// It is connected, and nothing more.
    Idle,
    /// It waits for a lock.
    Waiting,
    /// It holds one.
    Holding,
    /// It is giving one back.
    Releasing,
    /// It is ending its session.
    Closing,
}

impl Doing {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Handshake, Self::Idle, Self::Waiting, Self::Holding, Self::Releasing, Self::Closing];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Holding => "holding",
            Self::Releasing => "releasing",
            Self::Closing => "closing",
        }
    }
}

/// What each client is doing; a client can do several things at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Stages(Vec<[u32; 6]>);

impl Stages {
    pub(super) fn new(clients: usize) -> Self {
        let mut stages = vec![[0; 6]; clients];
        for stage in &mut stages {
            stage[Doing::Handshake as usize] = 1;
        }
        Self(stages)
    }

    pub(super) fn enter(&mut self, client: u32, doing: Doing) {
        self.0[client as usize][doing as usize] += 1;
    }

    pub(super) fn leave(&mut self, client: u32, doing: Doing) {
        let count = &mut self.0[client as usize][doing as usize];
        *count = count.saturating_sub(1);
    }

    pub(super) fn connected(&mut self, client: u32, connected: bool) {
        self.0[client as usize][Doing::Handshake as usize] = u32::from(!connected);
    }

    fn of(&self, client: u32) -> impl Iterator<Item = Doing> + '_ {
        let stage = &self.0[client as usize];
        let busy = Doing::ALL.into_iter().filter(|doing| stage[*doing as usize] > 0);
        let idle = stage.iter().all(|count| *count == 0).then_some(Doing::Idle);
        busy.chain(idle)
    }
}

/// How often which fault has hit a client in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fired(pub BTreeMap<Fault, [u64; 6]>);

impl Fired {
    pub(super) fn hit(&mut self, class: Fault, client: u32, stages: &Stages) {
        let cells = self.0.entry(class).or_default();
        for doing in stages.of(client) {
            cells[doing as usize] += 1;
        }
    }

    /// Adds what happened in another run.
    pub fn add(&mut self, other: &Self) {
        for (class, cells) in &other.0 {
            let sums = self.0.entry(*class).or_default();
            for (sum, count) in sums.iter_mut().zip(cells) {
                *sum += count;
            }
        }
    }

    /// How often a class has hit a client.
    #[must_use]
    pub fn total(&self, class: Fault) -> u64 {
        self.0.get(&class).map_or(0, |cells| cells.iter().sum())
    }
}
