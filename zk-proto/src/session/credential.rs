//! An identity to prove, and its fate.

use super::{config::Auth, disposition::Disposition};

/// An identity, and the token of the caller that waits for the first verdict on it.
#[derive(Debug)]
pub(crate) struct Credential<R> {
    pub(crate) auth: Auth,
    pub(crate) token: Option<R>,
    /// Its fate on earlier connections.
    pub(crate) disposition: Disposition,
}

impl<R> Credential<R> {
    pub(crate) const fn new(auth: Auth, token: Option<R>) -> Self {
        Self { auth, token, disposition: Disposition::NotSent }
    }
}
