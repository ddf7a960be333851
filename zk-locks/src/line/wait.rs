//! Waiting in a queue until nobody is in front.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zk_client::{Cause, ReadError, Rejection, join, planted};

use super::{
    Line, Listing, Place, THROTTLE_PAUSE,
    place::{Wake, Watched},
};
use crate::error::AcquireError;

impl Line {
    /// Waits until nobody is in front of us whom we have to wait for. Can be dropped and called again.
    pub(crate) async fn wait(&self, place: &mut Place) -> Result<(), AcquireError> {
        loop {
            if self.look(place).await?.ahead() == 0 {
                return Ok(());
            }
            let wake = match self.arm(place).await? {
                Some(wake) => wake,
                None => place.heard().await?,
            };
            if self.is_granted_by(&wake, place) {
                tracing::trace!(path = self.path, "granted without listing");
                return Ok(());
            }
            place.listing = None;
        }
    }

    /// The queue in front of us: as it is known, or listed now.
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

    /// Whether what was heard proves that nobody is in front of us any more.
    fn is_granted_by(&self, wake: &Wake, place: &mut Place) -> bool {
        let Wake::Gone { name, was_of } = wake else { return false };
        let session = self.client.session();
        let own_is_there = place.is_undisturbed();
        let Some(listing) = &mut place.listing else { return false };
        listing.without(name, *was_of == Some(session.id()));
        listing.proves_grant(session.epoch(), own_is_there)
    }

    /// Lists the queue anew.
    async fn list(&self, place: &Place) -> Result<Listing, AcquireError> {
        loop {
            // Taken first: a listing that is sent again over a new connection must not pass for one of it.
            let epoch = self.client.session().epoch();
            match self.client.children(&self.path).await {
                Ok((names, _)) => {
                    return self.listing(names, place, epoch)?.ok_or(AcquireError::NodeDeleted);
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(AcquireError::NodeDeleted);
                }
                Err(ReadError::Unavailable(Cause::Throttled)) => sleep(THROTTLE_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) fn listing(
        &self,
        names: Vec<String>,
        place: &Place,
        epoch: u64,
    ) -> Result<Option<Listing>, AcquireError> {
        let besides = place.besides.as_deref();
        Listing::new(names, &place.entry, besides, &self.settings.filter, epoch)
    }

    /// Watches those in front of us that are to be watched, and our own node, as far as they are not yet.
    /// `Some` if one has turned out to be gone already.
    ///
    /// Watched by reading, not by asking for existence: a read of a node that is gone leaves no watch
    /// behind on the server.
    async fn arm(&self, place: &mut Place) -> Result<Option<Wake>, AcquireError> {
        let sight = if self.settings.look_ahead { super::listing::SIGHT } else { 1 };
        let nearest = place.listing.as_ref().map(Listing::nearest).unwrap_or_default();
        let nearest: Vec<String> =
            nearest.iter().take(sight).map(|entry| entry.name.clone()).collect();
        place.watched.retain(|watched| nearest.contains(&watched.name));

        let own_path = place.node.path().to_owned();
        let cork = self.client.cork();
        let ahead: Vec<_> = nearest
            .into_iter()
            .filter(|name| place.watched.iter().all(|watched| watched.name != *name))
            .map(|name| {
                let read = cork.get(&join(&self.path, &name)).watch().submit();
                (name, read)
            })
            .collect();
        let own = place.own_watch.is_none().then(|| cork.get(&own_path).watch().submit());
        drop(cork);

        let mut wake = None;
        for (name, read) in ahead {
            match read.await {
                Ok(((_, stat), watch)) => {
                    tracing::debug!(path = self.path, behind = name, "waiting");
                    let owner = stat.ephemeral_owner;
                    place.watched.push(Watched { name, owner, watch });
                }
                Err(ReadError::Rejected(Rejection::NoNode)) if planted!(WakeUpLost) => {
                    pause(self.settings.recheck).await;
                    wake = Some(Wake::LookAgain);
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    wake = Some(Wake::Gone { name, was_of: None });
                }
                Err(ReadError::Unavailable(Cause::Throttled)) => {
                    sleep(THROTTLE_PAUSE).await;
                    wake = Some(Wake::LookAgain);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(own) = own {
            place.own_watch = match own.await {
                Ok((_, watch)) => Some(watch),
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(AcquireError::NodeDeleted);
                }
                // Then a listing will have to do.
                Err(_) => None,
            };
        }
        let recheck = self.settings.recheck.map(|pause| place.jitter(pause));
        let due = recheck.and_then(|pause| Instant::now().checked_add(pause));
        place.recheck_at = place.recheck_at.or(due);
        Ok(wake)
    }
}

async fn pause(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}
