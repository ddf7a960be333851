//! Errors that answer the one question that matters: was the request applied?
//!
//! | module | concern |
//! |---|---|
//! | `call` | errors of failed requests |
//! | `multi` | why a transaction was not carried out |
//! | `cause` | reasons: refusals, missing replies, ends of sessions |
//! | `connect` | why no session could be established |
//! | `verdict` | an outcome as a caller's error |

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
