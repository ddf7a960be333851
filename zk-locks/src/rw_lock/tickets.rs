//! Places in the queue of a read/write lock, kept between waits.

use std::{ops::Deref, sync::Arc};

use super::{ReadGuard, WriteGuard};
use crate::{error::AcquireError, line::Line, ticket::Ticket};

/// A reader's place in the queue of a read/write lock: see [`RwLock::enqueue_read`](crate::RwLock::enqueue_read). It
/// dereferences to [`Ticket`]. Dropping it leaves the queue.
#[derive(Debug)]
#[must_use = "dropping it leaves the queue"]
pub struct ReadTicket {
    ticket: Ticket,
    line: Arc<Line>,
}

/// A writer's place in the queue of a read/write lock: see [`RwLock::enqueue_write`](crate::RwLock::enqueue_write). It
/// dereferences to [`Ticket`]. Dropping it leaves the queue.
#[derive(Debug)]
#[must_use = "dropping it leaves the queue"]
pub struct WriteTicket {
    ticket: Ticket,
    line: Arc<Line>,
}

impl Deref for ReadTicket {
    type Target = Ticket;
    fn deref(&self) -> &Ticket {
        &self.ticket
    }
}

impl Deref for WriteTicket {
    type Target = Ticket;
    fn deref(&self) -> &Ticket {
        &self.ticket
    }
}

impl ReadTicket {
    pub(super) fn new(ticket: Ticket, line: &Arc<Line>) -> Self {
        Self { ticket, line: line.clone() }
    }

    /// Waits until the lock is granted: see [`Ticket::wait`]. The future can be dropped and recreated at will.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub async fn wait(&mut self) -> Result<ReadGuard, AcquireError> {
        let guard = self.ticket.wait().await?;
        Ok(ReadGuard::new(guard, &self.line))
    }

    /// Returns the lock, if it is granted already: see [`Ticket::try_wait`].
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub async fn try_wait(&mut self) -> Result<Option<ReadGuard>, AcquireError> {
        let guard = self.ticket.try_wait().await?;
        Ok(guard.map(|guard| ReadGuard::new(guard, &self.line)))
    }
}

impl WriteTicket {
    pub(super) fn new(ticket: Ticket, line: &Arc<Line>) -> Self {
        Self { ticket, line: line.clone() }
    }

    /// Waits until the lock is granted: see [`Ticket::wait`]. The future can be dropped and recreated at will.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub async fn wait(&mut self) -> Result<WriteGuard, AcquireError> {
        let guard = self.ticket.wait().await?;
        Ok(WriteGuard::new(guard, &self.line))
    }

    /// Returns the lock, if it is granted already: see [`Ticket::try_wait`].
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub async fn try_wait(&mut self) -> Result<Option<WriteGuard>, AcquireError> {
        let guard = self.ticket.try_wait().await?;
        Ok(guard.map(|guard| WriteGuard::new(guard, &self.line)))
    }
}
