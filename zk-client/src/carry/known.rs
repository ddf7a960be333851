//! What the driver knows, for any task to read.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    carry::{
        capabilities::Capabilities,
        lease::Lease,
        published::{Board, Published},
        unconfirmed::Unconfirmed,
    },
    error::LinkError,
};

/// What the driver knows of its session and servers, for any task to read. In one piece: a channel, or an allocation,
/// for each of them made a kilobyte of an idle session.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) board: Board,
    pub(crate) lease: Lease,
    pub(crate) sweeps: Unconfirmed,
    pub(crate) capabilities: Capabilities,
    last_failure: Mutex<Option<Box<Failure>>>,
}

/// A connection attempt that has failed: server and reason.
pub(crate) type Failure = (Arc<str>, LinkError);

impl Known {
    pub(crate) fn new(first: Published) -> Self {
        Self {
            board: Board::new(first),
            lease: Lease::default(),
            sweeps: Unconfirmed::default(),
            capabilities: Capabilities::default(),
            last_failure: Mutex::new(None),
        }
    }

    /// Keeps the last connection attempt that failed.
    pub(crate) fn failed(&self, failure: Failure) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(failure));
    }

    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).take().map(|it| *it)
    }
}
