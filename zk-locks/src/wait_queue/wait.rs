//! Waiting in a queue until no contender is ahead.

use std::time::Duration;

use tokio::time::Instant;
use zk_client::{Cause, Client, OwnedNode, ReadError, Rejection, path::join};

use super::{
    Listing, Position, WaitQueue,
    listing::SIGHT,
    position::{Arming, Wake, Watched},
};
use crate::{contender::REVOKE, error::AcquireError, quorum, together};

impl WaitQueue {
    /// Waits until the lock is granted. Can be dropped and called again.
    pub(crate) async fn wait(&self, position: &mut Position) -> Result<(), AcquireError> {
        loop {
            match self.settings.herd {
                true => {
                    self.wait_in_herd(position).await?;
                    self.confirm_own_node(position).await?;
                }
                false => self.wait_for_the_nearest(position).await?,
            }
            if self.wait_out_lock_delay(position).await? {
                return Ok(());
            }
        }
    }

    /// Waits until no contender that we have to wait for is ahead. Can be dropped and called again.
    async fn wait_for_the_nearest(&self, position: &mut Position) -> Result<(), AcquireError> {
        loop {
            if self.is_at_the_head(position).await? {
                return Ok(());
            }
            let wake = match self.arm(position).await? {
                Some(wake) => wake,
                None => self.heard(position).await?,
            };
            if matches!(wake, Wake::WatchOwn) {
                continue;
            }
            if self.is_granted_by(&wake, position) {
                tracing::trace!(path = self.path, "granted without listing");
                return Ok(());
            }
            position.forget();
        }
    }

    /// Stays at the head of the queue while the grant depends on something else: waits until the queue is to be looked at
    /// again, as after an event of our own node. Can be dropped and called again.
    ///
    /// Our own node is watched from the second on for which that lasts, as in any other wait: a short one costs nothing.
    pub(crate) async fn stay(&self, position: &mut Position) -> Result<(), AcquireError> {
        loop {
            // No node is ahead that could have turned out to be gone.
            self.arm(position).await?;
            if !matches!(position.heard().await?, Wake::WatchOwn) {
                position.forget();
                return Ok(());
            }
        }
    }

    /// Waits for the next event of the watched nodes. A waiter behind a node of its own session that has no owner any
    /// more, and that servers refuse to delete, would get none.
    async fn heard(&self, position: &mut Position) -> Result<Wake, AcquireError> {
        let session = self.client.session().id();
        let of_us = position.watched.iter().filter(|watched| watched.owner == session);
        let of_us = of_us.map(|watched| join(&self.path, &watched.name)).collect();
        self.unless_orphaned(of_us, position.heard()).await?
    }

    /// Waits for something behind these nodes. Ends with an error if servers refuse to delete one that is of our session and
    /// has no owner any more: it stays as long as the session.
    pub(crate) async fn unless_orphaned<T>(
        &self,
        paths: Vec<String>,
        wait: impl Future<Output = T>,
    ) -> Result<T, AcquireError> {
        tokio::select! {
            biased;
            done = wait => Ok(done),
            orphan = self.orphan_of(paths) => Err(orphan),
        }
    }

    async fn orphan_of(&self, paths: Vec<String>) -> AcquireError {
        together::first(paths.iter().map(async |path| {
            let rejection = self.client.orphaned(path).await;
            AcquireError::Orphan { path: path.clone(), rejection }
        }))
        .await
    }

    /// Whether no contender is ahead, and none is after the delay behind a holder that has not released the lock itself.
    pub(crate) async fn is_first(&self, position: &mut Position) -> Result<bool, AcquireError> {
        Ok(self.is_at_the_head(position).await? && self.wait_out_lock_delay(position).await?)
    }

    /// Whether the lock is granted already.
    pub(crate) async fn may_begin(&self, position: &mut Position) -> Result<bool, AcquireError> {
        tokio::select! {
            biased;
            // What a member without a quorum shows grants nothing, and a try does not wait for another one.
            () = quorum::lost(&self.client) => Ok(false),
            begun = self.may_begin_now(position) => begun,
        }
    }

    async fn may_begin_now(&self, position: &mut Position) -> Result<bool, AcquireError> {
        position.forget_if_old();
        // Those ahead may have left: without a wait no event of theirs has been looked at.
        if position.ahead().is_some_and(|ahead| ahead > 0) {
            position.forget();
        }
        if !self.is_at_the_head(position).await? {
            // To be listed anew the next time.
            position.forget();
            return Ok(false);
        }
        self.has_begun(position).await
    }

    /// Whether no contender that we have to wait for is ahead, by a listing that shows our own node.
    pub(super) async fn is_at_the_head(
        &self,
        position: &mut Position,
    ) -> Result<bool, AcquireError> {
        if self.look(position).await?.ahead() > 0 {
            return Ok(false);
        }
        self.confirm_own_node(position).await?;
        Ok(true)
    }

    /// Makes sure that the node of our name on a listing was ours. Only names without an id can be another contender's: if
    /// the path was deleted, its numbers have begun anew. With ids it is no request.
    ///
    /// A read behind the listing: no other node was made by our transaction, so one that is there now was there then, and
    /// its path with all numbers since. The event that [proves](Listing::proves_grant) a grant needs no such read, as the
    /// watch on our own node was armed by one.
    async fn confirm_own_node(&self, position: &mut Position) -> Result<(), AcquireError> {
        let is_confirmed = |listing: &Listing| listing.is_confirmed;
        if self.settings.filter.has_ids() || position.listing.as_ref().is_some_and(is_confirmed) {
            return Ok(());
        }
        let Position { confirming, node, .. } = position;
        let (_, found) = self.asked(confirming, |zk| zk.exists(node.path()).submit()).await;
        match found? {
            Some(stat) if position.is_own_node(&stat) => {
                position.listing.iter_mut().for_each(|listing| listing.is_confirmed = true);
                Ok(())
            }
            _ => Err(AcquireError::NodeDeleted),
        }
    }

    /// The queue ahead of us: the known state, or a new listing.
    pub(crate) async fn look<'a>(
        &self,
        position: &'a mut Position,
    ) -> Result<&'a Listing, AcquireError> {
        let listing = match position.listing.take() {
            Some(listing) => listing,
            None => {
                let listing = self.list(position).await?;
                (position.recheck_at, position.confirming) = (None, None);
                listing
            }
        };
        Ok(position.listing.insert(listing))
    }

    /// Whether this event proves that no contender is ahead of us any more.
    fn is_granted_by(&self, wake: &Wake, position: &mut Position) -> bool {
        let Wake::Gone { name, was_of } = wake else { return false };
        let session = self.client.session();
        let own_is_there = position.is_undisturbed();
        let Some(listing) = &mut position.listing else { return false };
        listing.without(name, *was_of == Some(session.id()));
        listing.proves_grant(session.epoch(), own_is_there)
    }

    /// Lists the queue anew.
    async fn list(&self, position: &mut Position) -> Result<Listing, AcquireError> {
        let list = |client: &Client| client.children(&self.path).packed().submit();
        let (epoch, names) = self.asked(&mut position.looking, list).await;
        match names {
            Ok((names, _)) => {
                let listing = self.listing(names.iter(), position, epoch)?;
                listing.ok_or(AcquireError::NodeDeleted)
            }
            Err(ReadError::Rejected(Rejection::NoNode)) => Err(AcquireError::NodeDeleted),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn listing<N: AsRef<str> + Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
        position: &Position,
        epoch: u64,
    ) -> Result<Option<Listing>, AcquireError> {
        let besides = position.besides.as_deref();
        let by = (&self.settings.filter, self.settings.downgrades);
        Listing::new(names, &position.entry, besides, by, epoch)
    }

    /// Arms the missing watches on the nodes ahead of us, and in time on our own. `Some` if one of them has turned out
    /// to be gone already.
    ///
    /// Watches by reading, not by `exists`: a read of a node that is gone leaves no watch behind on the server.
    async fn arm(&self, position: &mut Position) -> Result<Option<Wake>, AcquireError> {
        if position.arming.is_none() {
            position.arming = Some(self.ask(position));
        }
        let Some(arming) = &mut position.arming else { return Ok(None) };
        while let Some((_, read)) = arming.ahead.first_mut() {
            let read = read.await;
            let (name, _) = arming.ahead.remove(0);
            match read {
                Ok(((_, stat), watch)) => {
                    tracing::debug!(path = self.path, behind = name, "waiting");
                    let owner = stat.ephemeral_owner;
                    position.watched.push(Watched { name, owner, watch });
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    arming.wake = Some(Wake::Gone { name, was_of: None });
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(own) = &mut arming.own {
            let own = own.await;
            arming.own = None;
            position.own_watch = match own {
                Ok(((data, stat), watch)) if position.is_own_node(&stat) => {
                    position.revoked |= data == REVOKE;
                    Some(watch)
                }
                Ok(_) | Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(AcquireError::NodeDeleted);
                }
                Err(ReadError::Unavailable(Cause::SessionEnded(end))) => {
                    return Err(AcquireError::SessionEnded(end));
                }
                // A listing will have to do, or another attempt.
                Err(_) => {
                    position.own_at = None;
                    None
                }
            };
        }
        let recheck = self.settings.recheck.map(|pause| jitter(&position.node, pause));
        let due = recheck.and_then(|pause| Instant::now().checked_add(pause));
        position.recheck_at = position.recheck_at.or(due);
        Ok(position.arming.take().and_then(|arming| arming.wake))
    }

    /// Submits the reads that [`arm`](WaitQueue::arm) waits for.
    fn ask(&self, position: &mut Position) -> Arming {
        let sight = if self.settings.look_ahead { SIGHT } else { 1 };
        let nearest = position.listing.as_ref().map(Listing::nearest).unwrap_or_default();
        let nearest: Vec<String> =
            nearest.iter().take(sight).map(|entry| entry.name.clone()).collect();
        position.watched.retain(|watched| nearest.contains(&watched.name));

        let cork = self.client.cork();
        let ahead = nearest
            .into_iter()
            .filter(|name| position.watched.iter().all(|watched| watched.name != *name))
            .map(|name| {
                let read = cork.get(&join(&self.path, &name)).watch().submit();
                (name, read)
            })
            .collect();
        let own = position.wants_own_watch(sight);
        let own = own.then(|| cork.get(position.node.path()).watch().submit());
        Arming { ahead, own, wake: None }
    }
}

/// A part of a pause, two thirds of it at least, that differs from waiter to waiter.
pub(super) fn jitter(node: &OwnedNode, pause: Duration) -> Duration {
    let sixteenths = u32::try_from(node.stat().czxid.0.rem_euclid(16)).unwrap_or_default();
    pause - pause / 48 * sixteenths
}
