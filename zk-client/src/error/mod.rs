//! Errors that answer the one question that matters: was the request applied?
//!
//! | module | concern |
//! |---|---|
//! | `call` | errors of failed requests |
//! | `multi` | why a transaction was not carried out |
//! | `cause` | reasons: refusals, missing replies, ends of sessions |
//! | `link` | why a connection could not be made, or was lost |
//! | `connect` | why no session could be established |
//! | `verdict` | an outcome as a caller's error |

mod call;
mod cause;
mod connect;
mod link;
mod multi;
mod verdict;

pub use self::{
    call::{ReadError, WriteError},
    cause::{Cause, Rejection, SessionEnd},
    connect::ConnectError,
    link::{LinkError, SaslFault, TlsFault},
    multi::MultiError,
};
pub(crate) use self::{
    multi::{failed, failure},
    verdict::{CallError, Verdict},
};
