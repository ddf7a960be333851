//! A client that does nothing: the floor for clients, and the ceiling for servers.
//!
//! | module | concern |
//! |---|---|
//! | `wire` | bytes of requests; replies that are counted, or looked at as far as it takes |
//! | `batches` | requests that were encoded once, written as many at a time as were answered |
//! | `locks` | the fewest requests that a lock can be made of |

mod batches;
mod locks;
mod wire;

use crate::{
    client::Failure,
    report::Report,
    task::{Task, Workload},
};

/// What it is called in reports.
const NAME: &str = "null";

/// What it is called that waits in tokio, and not in the system.
const NAME_ON_TOKIO: &str = "null-tokio";

/// Measures what is possible.
///
/// # Errors
/// The server cannot be talked to, or the workload has no floor.
pub fn measure(task: &Task) -> Result<Report, Failure> {
    match task.workload {
        Workload::Connect => batches::connect(task),
        Workload::Idle => batches::idle(task),
        Workload::Lock => locks::lock(task),
        Workload::HandOff => locks::hand_off(task),
        alone if alone.is_ours_alone() => Err("there is no floor for it".into()),
        _ => batches::requests(task),
    }
}

/// Measures what is possible on the runtime that clients use: what that costs is not theirs to save.
///
/// # Errors
/// The server cannot be talked to, or the workload has no floor of that kind.
pub fn measure_on_tokio(task: &Task) -> Result<Report, Failure> {
    match task.workload {
        Workload::Lock => locks::lock_on_tokio(task),
        Workload::Get | Workload::Set => batches::requests_on_tokio(task),
        _ => Err("there is no floor for it on tokio".into()),
    }
}
