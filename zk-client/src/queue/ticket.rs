//! What a caller and the driver agree by who of them has a request, when the caller does not wait for ever.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU8, Ordering},
};

use zk_proto::session::Place;

const OPEN: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// A request that can be withdrawn: certainly, as long as the driver has not taken it.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    state: AtomicU8,
    /// Where the session has it.
    place: Mutex<Option<Place>>,
}

impl Ticket {
    /// The driver has got as far as this request. Returns whether anybody still wants it.
    pub(crate) fn take(&self) -> bool {
        self.move_on(TAKEN)
    }

    /// The caller gives it up. Returns whether nobody will ever carry it out.
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
