//! Waiting in a queue until no contender is ahead.

use std::time::Duration;

use tokio::time::Instant;
use zk_client::{OwnedNode, ReadError, Rejection, path::join};

use super::{
    Line, Listing, Place,
    listing::SIGHT,
    place::{Arming, Wake, Watched},
};
use crate::{contender::REVOKE, error::AcquireError, together};

impl Line {
    /// Waits until the lock is granted. Can be dropped and called again.
    pub(crate) async fn wait(&self, place: &mut Place) -> Result<(), AcquireError> {
        match self.settings.herd {
            true => self.wait_in_herd(place).await?,
            false => self.wait_for_the_nearest(place).await?,
        }
        self.sit_out(place).await
    }

    /// Waits until no contender that we have to wait for is ahead. Can be dropped and called again.
    async fn wait_for_the_nearest(&self, place: &mut Place) -> Result<(), AcquireError> {
        loop {
            if self.look(place).await?.ahead() == 0 {
                return Ok(());
            }
            let wake = match self.arm(place).await? {
                Some(wake) => wake,
                None => self.heard(place).await?,
            };
            if matches!(wake, Wake::WatchOwn) {
                continue;
            }
            if self.is_granted_by(&wake, place) {
                tracing::trace!(path = self.path, "granted without listing");
                return Ok(());
            }
            place.forget();
        }
    }

    /// Waits for the next event of the watched nodes. A waiter behind a node of its own session that has no owner any
    /// more, and that servers refuse to delete, would get none.
    async fn heard(&self, place: &mut Place) -> Result<Wake, AcquireError> {
        let session = self.client.session().id();
        let of_us = place.watched.iter().filter(|watched| watched.owner == session);
        let of_us: Vec<_> = of_us.map(|watched| join(&self.path, &watched.name)).collect();
        if of_us.is_empty() {
            return place.heard().await;
        }
        let orphaned = together::first(of_us.iter().map(async |path| {
            let rejection = self.client.orphaned(path).await;
            AcquireError::Orphan { path: path.clone(), rejection }
        }));
        tokio::select! {
            biased;
            wake = place.heard() => wake,
            orphan = orphaned => Err(orphan),
        }
    }

    /// Whether the lock is granted already.
    pub(crate) async fn may_begin(&self, place: &mut Place) -> Result<bool, AcquireError> {
        if self.look(place).await?.ahead() > 0 {
            // To be listed anew the next time.
            place.forget();
            return Ok(false);
        }
        self.has_begun(place).await
    }

    /// The queue ahead of us: the known state, or a new listing.
    pub(crate) async fn look<'a>(&self, place: &'a mut Place) -> Result<&'a Listing, AcquireError> {
        let listing = match place.listing.take() {
            Some(listing) => listing,
            None => {
                let listing = self.list(place).await?;
                place.recheck_at = None;
                listing
            }
        };
        Ok(place.listing.insert(listing))
    }

    /// Whether this event proves that no contender is ahead of us any more.
    fn is_granted_by(&self, wake: &Wake, place: &mut Place) -> bool {
        let Wake::Gone { name, was_of } = wake else { return false };
        let session = self.client.session();
        let own_is_there = place.is_undisturbed();
        let Some(listing) = &mut place.listing else { return false };
        listing.without(name, *was_of == Some(session.id()));
        listing.proves_grant(session.epoch(), own_is_there)
    }

    /// Lists the queue anew.
    async fn list(&self, place: &mut Place) -> Result<Listing, AcquireError> {
        let (epoch, names) = place.looking.get_or_insert_with(|| {
            // Taken first: a listing repeated over a new connection must not pass for one of that connection.
            (self.client.session().epoch(), self.client.children(&self.path).packed().submit())
        });
        let (epoch, names) = (*epoch, names.await);
        place.looking = None;
        match names {
            Ok((names, _)) => {
                let listing = self.listing(names.iter(), place, epoch)?;
                listing.ok_or(AcquireError::NodeDeleted)
            }
            Err(ReadError::Rejected(Rejection::NoNode)) => Err(AcquireError::NodeDeleted),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn listing<N: AsRef<str> + Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
        place: &Place,
        epoch: u64,
    ) -> Result<Option<Listing>, AcquireError> {
        let besides = place.besides.as_deref();
        let by = (&self.settings.filter, self.settings.downgrades);
        Listing::new(names, &place.entry, besides, by, epoch)
    }

    /// Arms the missing watches on the nodes ahead of us, and in time on our own. `Some` if one of them has turned out
    /// to be gone already.
    ///
    /// Watches by reading, not by `exists`: a read of a node that is gone leaves no watch behind on the server.
    async fn arm(&self, place: &mut Place) -> Result<Option<Wake>, AcquireError> {
        if place.arming.is_none() {
            place.arming = Some(self.ask(place));
        }
        let Some(arming) = &mut place.arming else { return Ok(None) };
        while let Some((_, read)) = arming.ahead.first_mut() {
            let read = read.await;
            let (name, _) = arming.ahead.remove(0);
            match read {
                Ok(((_, stat), watch)) => {
                    tracing::debug!(path = self.path, behind = name, "waiting");
                    let owner = stat.ephemeral_owner;
                    place.watched.push(Watched { name, owner, watch });
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
            place.own_watch = match own {
                Ok(((data, _), watch)) => {
                    place.revoked |= data == REVOKE;
                    Some(watch)
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(AcquireError::NodeDeleted);
                }
                // A listing will have to do, or another attempt.
                Err(_) => {
                    place.own_at = None;
                    None
                }
            };
        }
        let recheck = self.settings.recheck.map(|pause| jitter(&place.node, pause));
        let due = recheck.and_then(|pause| Instant::now().checked_add(pause));
        place.recheck_at = place.recheck_at.or(due);
        Ok(place.arming.take().and_then(|arming| arming.wake))
    }

    /// Submits the reads that [`arm`](Line::arm) waits for.
    fn ask(&self, place: &mut Place) -> Arming {
        let sight = if self.settings.look_ahead { SIGHT } else { 1 };
        let nearest = place.listing.as_ref().map(Listing::nearest).unwrap_or_default();
        let nearest: Vec<String> =
            nearest.iter().take(sight).map(|entry| entry.name.clone()).collect();
        place.watched.retain(|watched| nearest.contains(&watched.name));

        let cork = self.client.cork();
        let ahead = nearest
            .into_iter()
            .filter(|name| place.watched.iter().all(|watched| watched.name != *name))
            .map(|name| {
                let read = cork.get(&join(&self.path, &name)).watch().submit();
                (name, read)
            })
            .collect();
        let own = place.wants_own_watch(sight);
        let own = own.then(|| cork.get(place.node.path()).watch().submit());
        Arming { ahead, own, wake: None }
    }
}

/// A part of a pause, two thirds of it at least, that differs from waiter to waiter.
pub(super) fn jitter(node: &OwnedNode, pause: Duration) -> Duration {
    let sixteenths = u32::try_from(node.stat().czxid.0.rem_euclid(16)).unwrap_or_default();
    pause - pause / 48 * sixteenths
}
