//! The methods of clients.
//!
//! | module | concern |
//! |---|---|
//! | `options`, `connect` | a client's options; connecting |
//! | `views` | clients of the same session with other options |
//! | `session` | the session: views of it, and its end |
//! | `nodes` | operations on nodes |
//! | `servers` | persistent watches; what servers know of the session and of themselves |
//! | `error` | any failure, and the failures of operations made of several requests |
//! | `tree` | deleting what is below a node |
//! | `retry` | retrying what is safe to retry |
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
