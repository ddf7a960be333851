//! Arbitrates between the driver and a caller with a timeout: which of them has the request.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU8, Ordering},
};

use zk_proto::session::Place;

const OPEN: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// A request that can be withdrawn: with certainty as long as the driver has not taken it.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    state: AtomicU8,
    /// The request's place in the session.
    place: Mutex<Option<Place>>,
}

impl Ticket {
    /// Called when the driver reaches this request. Returns whether the caller still wants it.
    pub(crate) fn take(&self) -> bool {
        self.move_on(TAKEN)
    }

    /// Called when the caller gives up. Returns whether the request will certainly not be carried out.
    pub(crate) fn withdraw(&self) -> bool {
        self.move_on(WITHDRAWN)
    }

    fn move_on(&self, to: u8) -> bool {
        self.state.compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn put(&self, place: Place) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    }

    pub(crate) fn place(&self) -> Option<Place> {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
