//! Who relies on the session's lease.

use std::sync::Arc;

use crate::carry::known::Known;

/// Has the session's lease [confirmed](crate::ConnectOptions::lease) for as long as this value exists: see
/// [`Client::keep_lease`](crate::Client::keep_lease). Does not keep the session alive.
#[derive(Debug)]
#[must_use = "dropping it is not to rely on the session any more"]
pub struct LeaseKeeper(Arc<Known>);

impl LeaseKeeper {
    /// Also returns whether it is the first one: then the driver has to look.
    pub(crate) fn new(known: &Arc<Known>) -> (Self, bool) {
        let is_first = known.lease.keep();
        (Self(known.clone()), is_first)
    }

    pub(super) const fn known(&self) -> &Arc<Known> {
        &self.0
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.0.lease.let_go();
    }
}
