//! A client that does nothing: the floor for clients, and the ceiling for servers.
//!
//! | module | concern |
//! |---|---|
//! | `wire` | bytes of requests; replies that are counted, or looked at as far as it takes |
//! | `batches` | requests that were encoded once, written as many at a time as were answered |
//! | `locks` | the fewest requests that a lock can be made of |
//! | `many_locks` | the fewest that many can be made of |
//! | `steady` | requests at a fixed rate |

mod batches;
mod locks;
mod many_locks;
mod steady;
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
        other if task.tls.is_some() && !other.is_plain_requests() => {
            Err("there is no floor for it over TLS".into())
        }
        Workload::Connect => batches::connect(task),
        Workload::Idle => batches::idle(task),
        Workload::Lock => locks::lock(task),
        Workload::HandOff => locks::hand_off(task),
        Workload::ManyLocks => many_locks::many_locks(task),
        Workload::Steady => steady::steady(task),
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
        _ if task.tls.is_some() => Err("there is no floor over TLS on tokio".into()),
        Workload::Lock => locks::lock_on_tokio(task),
        Workload::ManyLocks => many_locks::many_locks_on_tokio(task),
        Workload::Get | Workload::List | Workload::Set => batches::requests_on_tokio(task),
        _ => Err("there is no floor for it on tokio".into()),
    }
}
