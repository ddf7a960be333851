//! What both ends of a queue have, and wake each other by.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use super::permits::{NeedsPermit, Permits};

#[derive(Debug)]
pub(super) struct Shared<C>(Mutex<State<C>>);

/// Nothing that is dropped while it is locked sends commands: neither commands nor wakers do.
#[derive(Debug)]
pub(super) struct State<C> {
    pub(super) commands: VecDeque<C>,
    /// The waker of a waiting driver.
    pub(super) waker: Option<Waker>,
    /// Whether all senders have been dropped.
    pub(super) abandoned: bool,
    /// Whether the driver accepts no more.
    pub(super) closed: bool,
    pub(super) permits: Permits<C>,
}

impl<C> Shared<C> {
    pub(super) fn new(requests_max: usize, bytes_max: usize) -> Self {
        Self(Mutex::new(State {
            commands: VecDeque::new(),
            waker: None,
            abandoned: false,
            closed: false,
            permits: Permits::new(requests_max, bytes_max),
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a command, and wakes a waiting driver.
pub(super) fn push<C>(state: MutexGuard<'_, State<C>>, command: C) {
    push_asleep(state, command).into_iter().for_each(Waker::wake);
}

/// Sends a command. Returns the waker of a waiting driver.
#[must_use]
pub(super) fn push_asleep<C>(mut state: MutexGuard<'_, State<C>>, command: C) -> Option<Waker> {
    state.commands.push_back(command);
    state.waker.take()
}

impl<C: NeedsPermit> State<C> {
    /// Moves on every waiting command for which there is a permit.
    pub(super) fn serve(&mut self) {
        while let Some(command) = self.permits.serve() {
            self.commands.push_back(command);
        }
    }
}

/// Sends every waiting command for which there is a permit, and wakes a waiting driver.
pub(super) fn serve<C: NeedsPermit>(mut state: MutexGuard<'_, State<C>>) {
    let before = state.commands.len();
    state.serve();
    let waker = if state.commands.len() > before { state.waker.take() } else { None };
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}
