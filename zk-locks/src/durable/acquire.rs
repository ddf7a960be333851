//! Waiting for the lock.

use std::{
    ops::ControlFlow::{self, Break, Continue},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::{
    DurableGuard, DurableLock,
    lock::Ends,
    take::{Changed, Look, Outcome, Seen},
};
use crate::{
    error::AcquireError,
    layout::Role,
    wait_queue::{Pace, Position},
};

impl DurableLock {
    /// Waits for the lock, behind all earlier contenders; not behind its own owner.
    ///
    /// Dropping the future gives up at any point; an owner that has the lock keeps it. If the process dies or the session ends while the grant is being
    /// made, the grant may stay: its owner gets it with the next attempt, others when its lease is over.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<DurableGuard, AcquireError> {
        self.queue.check_name(Role::Lock)?;
        let ends = self.live.ends();
        let look = match self.take_own(None).await? {
            Break(guard) => return Ok(guard),
            Continue((_, look)) => look,
        };
        let position = self.queue.join(Role::Lock, Pace::MayWait).await?;
        self.wait(position, look, ends).await
    }

    /// As [`acquire`](Self::acquire), for at most this long.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when the time is over, at once; the place in the queue is removed in the background.
    pub async fn acquire_timeout(&self, time: Duration) -> Result<DurableGuard, AcquireError> {
        timeout(time, self.acquire()).await.unwrap_or(Err(AcquireError::TimedOut))
    }

    /// Takes the lock if it is free and has no waiters, or if its owner has it already. A lease that is over does not
    /// make it free: only a waiter can take it then.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn try_acquire(&self) -> Result<Option<DurableGuard>, AcquireError> {
        self.queue.check_name(Role::Lock)?;
        let mut position = None;
        loop {
            let look = self.look().await?;
            if !self.is_ours(&look) {
                if !look.grants.is_empty() {
                    return Ok(None);
                }
                if position.is_none() {
                    position = self.first_position().await?;
                }
                if position.is_none() {
                    return Ok(None);
                }
            }
            match self.take(position.take(), &look, false).await? {
                Outcome::Granted(guard) => return Ok(Some(*guard)),
                Outcome::Changed(back) => position = back.map(|position| *position),
            }
        }
    }

    /// Joins the queue, if no contender is ahead.
    async fn first_position(&self) -> Result<Option<Position>, AcquireError> {
        if self.queue.is_busy(Role::Lock).await? {
            return Ok(None);
        }
        let mut position = self.queue.join(Role::Lock, Pace::AtOnce).await?;
        Ok(self.queue.is_first(&mut position).await?.then_some(position))
    }

    /// Waits in the queue, and then for the end of the present grant.
    async fn wait(
        &self,
        position: Position,
        first: Look,
        mut ends: Ends,
    ) -> Result<DurableGuard, AcquireError> {
        let mut position = match self.wait_for_others(position, &mut ends).await? {
            Break(guard) => return Ok(guard),
            Continue(position) => position,
        };
        let mut look = first;
        let mut watch: Option<Changed> = None;
        let mut seen = Seen::default();
        loop {
            seen.note(&look);
            let breaks = seen.is_over(&look);
            if look.grants.is_empty() || self.is_ours(&look) || breaks {
                position = match self.trade(position, &look, breaks).await? {
                    Break(guard) => return Ok(guard),
                    Continue(position) => position,
                };
                watch = None;
            }
            let next = match &mut watch {
                Some(watch) => tokio::select! {
                    biased;
                    heard = watch => heard.map(|()| Next::Watch).map_err(AcquireError::SessionEnded),
                    () = ends.next() => Ok(Next::Look),
                    () = sleep(seen.pause(&look)) => Ok(Next::Look),
                    stayed = self.queue.stay(&mut position) => stayed.map(|()| Next::Wait),
                },
                // The first look is stale by now.
                None => Ok(Next::Watch),
            };
            match next? {
                Next::Watch => {
                    let (next, changed) = self.look_and_watch().await?;
                    (look, watch) = (next, Some(changed));
                }
                Next::Look => look = self.look().await?,
                Next::Wait => {
                    position = match self.wait_for_others(position, &mut ends).await? {
                        Break(guard) => return Ok(guard),
                        Continue(position) => position,
                    }
                }
            }
        }
    }

    /// Waits until no contender is ahead, or a grant of our owner's comes free: it is had past all of them.
    async fn wait_for_others(
        &self,
        mut position: Position,
        ends: &mut Ends,
    ) -> Result<ControlFlow<DurableGuard, Position>, AcquireError> {
        loop {
            tokio::select! {
                biased;
                first = self.queue.wait(&mut position) => {
                    first?;
                    return Ok(Continue(position));
                }
                () = ends.next() => {}
            }
            // Rare, and large.
            position = match Box::pin(self.take_own(Some(position))).await? {
                Break(guard) => return Ok(Break(guard)),
                Continue((place, _)) => place.ok_or(AcquireError::NodeDeleted)?,
            };
        }
    }

    /// Takes the lock if it is our owner's, past all waiters; otherwise returns the place, if there was one, and what was seen.
    async fn take_own(
        &self,
        mut position: Option<Position>,
    ) -> Result<ControlFlow<DurableGuard, (Option<Position>, Look)>, AcquireError> {
        loop {
            let look = self.look().await?;
            if !self.is_ours(&look) {
                return Ok(Continue((position, look)));
            }
            match self.take(position, &look, false).await? {
                Outcome::Granted(guard) => return Ok(Break(*guard)),
                // Other than what makes it ours may have changed.
                Outcome::Changed(back) => position = back.map(|position| *position),
            }
        }
    }

    /// Tries to trade a place in the queue for the lock.
    async fn trade(
        &self,
        position: Position,
        look: &Look,
        breaks: bool,
    ) -> Result<ControlFlow<DurableGuard, Position>, AcquireError> {
        match self.take(Some(position), look, breaks).await? {
            Outcome::Granted(guard) => Ok(Break(*guard)),
            Outcome::Changed(Some(position)) => Ok(Continue(*position)),
            Outcome::Changed(None) => Err(AcquireError::NodeDeleted),
        }
    }
}

/// What the first waiter does next.
enum Next {
    /// Looks again, and watches.
    Watch,
    /// Looks again.
    Look,
    /// Sees whether it is still the first.
    Wait,
}
