//! The methods of clients.
//!
//! | module | concern |
//! |---|---|
//! | `options`, `connect` | a client's options; connecting |
//! | `session` | the session: views of it, its servers, its end |
//! | `error` | any failure, and the failures of operations made of several requests |
//! | `tree` | deleting what is below a node |
//! | `retry` | retrying what is safe to retry |
//! | `supervise` | running a service under one session after the other |

mod connect;
mod error;
mod options;
mod retry;
mod session;
mod supervise;
mod tree;

pub use self::{
    error::Error,
    options::ConnectOptions,
    retry::{Retry, SafeToRetry},
    supervise::{Interruption, Supervise},
};
