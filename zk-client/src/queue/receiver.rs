//! The driver's end of a queue.

use std::{
    collections::VecDeque,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    permits::{Amount, NeedsPermit, Permit},
    shared::{Shared, serve},
};

/// The driver's end.
#[derive(Debug)]
pub(crate) struct CommandReceiver<C: NeedsPermit> {
    pub(super) shared: Arc<Shared<C>>,
    /// Commands that the driver has taken and not yet carried out.
    taken: VecDeque<C>,
    /// Permits to be given back.
    freed: Amount,
}

impl<C: NeedsPermit> CommandReceiver<C> {
    pub(super) fn new(shared: Arc<Shared<C>>) -> Self {
        Self { shared, taken: VecDeque::new(), freed: Amount::default() }
    }

    /// Takes new commands, if all taken before have been carried out: whether [`CommandReceiver::next`] has one. Pending
    /// if there is none yet, false if there will never be.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<bool> {
        if !self.taken.is_empty() {
            return Poll::Ready(true);
        }
        let mut state = self.shared.lock();
        mem::swap(&mut state.commands, &mut self.taken);
        if !self.taken.is_empty() {
            return Poll::Ready(true);
        }
        if state.abandoned {
            return Poll::Ready(false);
        }
        if state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        drop(state);
        // Cloning and dropping a waker runs foreign code: not under the lock.
        let waker = cx.waker().clone();
        let mut state = self.shared.lock();
        let waits = state.commands.is_empty() && !state.abandoned;
        // One that does not go to sleep is not to be woken.
        let unneeded = if waits { state.waker.replace(waker) } else { Some(waker) };
        drop(state);
        drop(unneeded);
        if waits { Poll::Pending } else { self.poll(cx) }
    }

    /// Returns the oldest of the commands taken.
    pub(crate) fn next(&mut self) -> Option<C> {
        self.taken.pop_front()
    }

    /// Marks a permit as free: it is available with the next [`CommandReceiver::give_back`].
    pub(crate) fn free(&mut self, permit: Option<Permit>) {
        permit.into_iter().for_each(|permit| self.freed.add(permit));
    }

    /// Gives all freed permits back in one step, which costs as much as giving back a single one.
    pub(crate) fn give_back(&mut self) {
        let freed = mem::take(&mut self.freed);
        if !freed.is_none() {
            let mut state = self.shared.lock();
            state.permits.give_back(freed);
            serve(state);
        }
    }

    /// Whether every command sent has been carried out.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.shared.lock().commands.is_empty()
    }

    /// Takes all commands that wait for permits. No more are needed from now on.
    pub(crate) fn open(&self) -> impl Iterator<Item = C> + use<C> {
        let mut state = self.shared.lock();
        state.permits.open();
        let line: Vec<C> = std::iter::from_fn(|| state.permits.serve()).collect();
        drop(state);
        line.into_iter()
    }

    /// Closes the queue, and returns the remaining commands.
    pub(crate) fn close(&mut self) -> impl Iterator<Item = C> + use<C> {
        let mut rest = mem::take(&mut self.taken);
        let mut state = self.shared.lock();
        state.closed = true;
        rest.append(&mut state.commands);
        state.permits.open();
        rest.extend(std::iter::from_fn(|| state.permits.serve()));
        drop(state);
        rest.into_iter()
    }

    /// Releases memory while the queue is idle.
    pub(crate) fn shrink(&mut self) {
        self.taken.shrink_to_fit();
        self.shared.lock().commands.shrink_to_fit();
    }
}

/// Closes the queue and drops the commands, and with them the reply channels that callers may be waiting on.
impl<C: NeedsPermit> Drop for CommandReceiver<C> {
    fn drop(&mut self) {
        drop(self.close());
    }
}
