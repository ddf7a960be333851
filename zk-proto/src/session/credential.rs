//! An identity to be proved, and what has become of that.

use super::{config::Auth, fate::Fate};

/// An identity, and whoever waits for the first word on it.
#[derive(Debug)]
pub(crate) struct Credential<R> {
    pub(crate) auth: Auth,
    pub(crate) token: Option<R>,
    /// What became of it on the connections that are gone.
    pub(crate) fate: Fate,
}

impl<R> Credential<R> {
    pub(crate) const fn new(auth: Auth, token: Option<R>) -> Self {
        Self { auth, token, fate: Fate::NotSent }
    }
}
