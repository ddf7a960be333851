//! The certain facts about a request.

use super::{fault::Cause, output::Outcome};

/// The certain facts about a request that will not be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It was not carried out.
    NotSent,
    /// It may or may not have been carried out.
    Unknown,
}

impl Disposition {
    pub(crate) fn outcome(self, cause: &Cause) -> Outcome {
        match self {
            Self::NotSent => Outcome::NotSent(cause.clone()),
            Self::Unknown => Outcome::Unknown(cause.clone()),
        }
    }
}
