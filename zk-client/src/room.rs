//! Room for requests: so many, and so many bytes. Whoever finds none waits behind all who came before.

use std::{future::Future, pin::Pin, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// What is left for requests of one session.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    bytes_max: u32,
}

/// A request's share; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    _request: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

/// Waiting for a share. Dropping it gives up the place.
pub(crate) type Waiting = Pin<Box<dyn Future<Output = Option<Share>> + Send + Sync>>;

impl Room {
    pub(crate) fn new(requests_max: usize, bytes_max: usize) -> Self {
        let bytes_max = u32::try_from(bytes_max.clamp(1, Semaphore::MAX_PERMITS));
        let bytes_max = bytes_max.unwrap_or(u32::MAX);
        Self {
            requests: Arc::new(Semaphore::new(requests_max.clamp(1, Semaphore::MAX_PERMITS))),
            bytes: Arc::new(Semaphore::new(bytes_max as usize)),
            bytes_max,
        }
    }

    /// A request that is longer than everything there is room for gets all of it.
    fn cost(&self, len: usize) -> u32 {
        u32::try_from(len).unwrap_or(u32::MAX).min(self.bytes_max)
    }

    /// A share for a request of `len` bytes, if there is room and nobody waits for it.
    pub(crate) fn take_now(&self, len: usize) -> Option<Share> {
        let request = self.requests.clone().try_acquire_owned();
        let bytes = self.bytes.clone().try_acquire_many_owned(self.cost(len));
        debug_assert!(!matches!(bytes, Err(TryAcquireError::Closed)), "nobody closes it");
        Some(Share { _request: request.ok()?, _bytes: bytes.ok()? })
    }

    /// A share for a request of `len` bytes, as soon as there is room.
    pub(crate) fn take(&self, len: usize) -> Waiting {
        let (requests, bytes) = (self.requests.clone(), self.bytes.clone());
        let cost = self.cost(len);
        Box::pin(async move {
            let request = requests.acquire_owned().await.ok()?;
            let bytes = bytes.acquire_many_owned(cost).await.ok()?;
            Some(Share { _request: request, _bytes: bytes })
        })
    }
}
