//! What is certain about a request.

use super::{fault::Cause, output::Outcome};

/// What is certain about a request that will not be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was not carried out.
    NotSent,
    /// Nothing.
    Unknown,
}

impl Fate {
    pub(crate) fn outcome(self, cause: &Cause) -> Outcome {
        match self {
            Self::NotSent => Outcome::NotSent(cause.clone()),
            Self::Unknown => Outcome::Unknown(cause.clone()),
        }
    }
}
