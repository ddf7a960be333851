//! Errors that answer the one question that matters: was it applied?
//!
//! | module | concern |
//! |---|---|
//! | `call` | what comes of a request that has failed |
//! | `multi` | why a transaction was not carried out |
//! | `cause` | reasons: refusals, why there is no answer, how sessions end |
//! | `connect` | why there is no session |
//! | `verdict` | what an outcome is to a caller |

mod call;
mod cause;
mod connect;
mod multi;
mod verdict;

pub use self::{
    call::{InDoubt, ReadError, WriteError},
    cause::{Cause, Rejection, SessionEnd},
    connect::{ConnectError, ServersError},
    multi::MultiError,
};
pub(crate) use self::{
    multi::{failed, failure},
    verdict::{CallError, Verdict},
};
