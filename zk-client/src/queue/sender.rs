//! The callers' ends of a queue.

use std::{
    sync::{Arc, Weak},
    task::Waker,
};

use super::{
    permits::{NeedsPermit, Number, Permit},
    shared::{Shared, push, push_asleep, serve},
};

#[cfg(feature = "metrics")]
use crate::report::level::Level;

/// A sender of commands. The driver is informed when the last one has been dropped.
#[derive(Debug)]
pub(crate) struct CommandSender<C>(Arc<Sender<C>>);

/// A sender that the driver does not wait for.
#[derive(Debug)]
pub(crate) struct WeakCommandSender<C>(Weak<Sender<C>>);

/// Why a command is returned to its sender.
#[derive(Debug)]
pub(crate) enum SendError<C> {
    NoPermit(C),
    /// The driver has ended.
    Closed(C),
}

/// A place in the line for a permit. Dropping it withdraws the command that waits there; if that has been sent, nothing
/// happens.
#[derive(Debug)]
pub(crate) struct PermitWait<C: NeedsPermit> {
    /// Not a sender, which the driver would wait for; and there when the last one is gone, but the driver does not know yet.
    queue: Arc<Shared<C>>,
    number: Number,
}

/// The shared sender behind all `CommandSender`, dropped with the last of them.
#[derive(Debug)]
pub(crate) struct Sender<C>(Arc<Shared<C>>);

impl<C> CommandSender<C> {
    /// The first sender of a queue.
    pub(super) fn first(shared: Arc<Shared<C>>) -> Self {
        Self(Arc::new(Sender(shared)))
    }
}

impl<C> Clone for CommandSender<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Clone for WeakCommandSender<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Sender<C> {
    /// Sends a command; returns it if the driver has ended.
    pub(crate) fn send(&self, command: C) -> Result<(), C> {
        let state = self.0.lock();
        if state.closed {
            return Err(command);
        }
        push(state, command);
        Ok(())
    }

    /// As [`send`](Self::send), behind all commands that wait for a permit. It needs none itself.
    pub(crate) fn send_in_turn(&self, command: C) -> Result<(), C> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(command);
        }
        if let Some(command) = state.permits.follow(command) {
            push(state, command);
        }
        Ok(())
    }
}

impl<C: NeedsPermit> CommandSender<C> {
    /// Sends a command of `len` bytes, if a permit is available.
    pub(crate) fn submit(&self, mut command: C, len: usize) -> Result<(), SendError<C>> {
        let mut state = self.0.0.lock();
        if state.closed {
            return Err(SendError::Closed(command));
        }
        let Some(permit) = state.permits.take_now(len) else {
            return Err(SendError::NoPermit(command));
        };
        command.permit_granted(permit);
        push(state, command);
        Ok(())
    }

    /// Sends a command of `len` bytes as soon as a permit is available, behind all that wait for one. Returns its
    /// number in the line, if it waits.
    pub(crate) fn submit_in_turn(&self, mut command: C, len: usize) -> Result<Option<Number>, C> {
        let mut state = self.0.0.lock();
        if state.closed {
            return Err(command);
        }
        let Some(permit) = state.permits.take_now(len) else {
            return Ok(Some(state.permits.wait(len, command)));
        };
        command.permit_granted(permit);
        push(state, command);
        Ok(None)
    }

    /// Sends a command behind all that wait for a permit, which is granted to all now: none is needed from here on.
    pub(crate) fn send_last(&self, command: C) -> Result<(), C> {
        let mut state = self.0.0.lock();
        if state.closed {
            return Err(command);
        }
        state.permits.open();
        state.serve();
        push(state, command);
        Ok(())
    }

    /// Ties the command that waits at this place to the caller that wants it.
    pub(crate) fn permit_wait(&self, number: Number) -> PermitWait<C> {
        PermitWait { queue: self.0.0.clone(), number }
    }
}

impl<C> CommandSender<C> {
    /// Sends a command; returns it if the driver has ended.
    pub(crate) fn send(&self, command: C) -> Result<(), C> {
        self.0.send(command)
    }

    /// As [`send`](Self::send), for a caller with a lock: returns the waker of a waiting driver instead of waking it.
    pub(crate) fn send_asleep(&self, command: C) -> Result<Option<Waker>, C> {
        let state = self.0.0.lock();
        if state.closed { Err(command) } else { Ok(push_asleep(state, command)) }
    }

    /// As [`send`](Self::send), behind all commands that wait for a permit.
    pub(crate) fn send_in_turn(&self, command: C) -> Result<(), C> {
        self.0.send_in_turn(command)
    }

    /// Reports there how many commands wait for a permit. Must not use this queue.
    #[cfg(feature = "metrics")]
    pub(crate) fn report_line(&self, level: Level) {
        self.0.0.lock().permits.report_len(level);
    }

    /// Whether the driver has taken every command.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.0.lock().commands.is_empty()
    }

    /// Takes a permit for `len` bytes, if available, for a command that is sent later.
    pub(crate) fn take_permit(&self, len: usize) -> Option<Permit> {
        self.0.0.lock().permits.take_now(len)
    }

    pub(crate) fn downgrade(&self) -> WeakCommandSender<C> {
        WeakCommandSender(Arc::downgrade(&self.0))
    }

    /// Returns the shared sender, without keeping it alive.
    pub(crate) fn sender(&self) -> Weak<Sender<C>> {
        Arc::downgrade(&self.0)
    }
}

impl<C> WeakCommandSender<C> {
    /// `None` if all other senders have been dropped.
    pub(crate) fn upgrade(&self) -> Option<CommandSender<C>> {
        self.0.upgrade().map(CommandSender)
    }
}

impl<C: NeedsPermit> Drop for PermitWait<C> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let left = state.permits.leave(self.number);
        // There may be permits for those behind. With the last sender gone the driver takes the whole line, once it has taken
        // all others: one that comes to these now may come too late.
        if left.is_some() && !state.abandoned {
            serve(state);
        }
    }
}

impl<C> Drop for Sender<C> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.abandoned = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}
