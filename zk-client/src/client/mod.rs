//! What users call.
//!
//! | module | concern |
//! |---|---|
//! | `options`, `connect` | what a client is told; connecting |
//! | `views` | clients of the same session that are told something else |
//! | `session` | the session: views of it, and its end |
//! | `nodes` | what can be done with nodes |
//! | `servers` | watches for good; what servers know of the session and of themselves |
//! | `error` | any failure, and those of what is made of several requests |
//! | `tree` | deleting what is below a node |
//! | `retry` | trying again what is safe to be tried again |
//! | `supervise` | running a service under one session after the other |

mod connect;
mod error;
mod nodes;
mod options;
mod retry;
mod servers;
mod session;
mod supervise;
mod tree;
mod views;

pub use self::{
    error::{CloseError, DeleteRecursiveError, Error},
    options::ConnectOptions,
    retry::{Retry, SafeToRetry},
    supervise::{Interruption, Supervise, supervise},
    tree::{DeleteRecursive, PendingDelete},
};
