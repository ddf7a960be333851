//! Measuring ZooKeeper clients, all by the same rule.
//!
//! | module | concern |
//! |---|---|
//! | `task` | what is to be measured: the command line that every client's program has |
//! | `client` | what a client must be able to do to be measured |
//! | `setup` | what every workload begins with |
//! | `nodes` | what is read and listed |
//! | `drive` | the workloads, over any such client |
//! | `locks` | those workloads that are about locks |
//! | `steady` | requests at a fixed rate |
//! | `in_flight` | so many requests on their way at all times |
//! | `window` | the time that counts: operations, processor, allocations, memory |
//! | `report` | what comes out: a line of JSON |
//! | `seen` | what the server says that it has seen |
//! | `serve` | servers to measure against, in processes of their own |
//! | `tls` | certificates, and connections that they secure |
//! | `instant` | a server that answers at once, from memory |
//! | `null` | a client that does nothing: the floor |
//! | `ours` | our client, and workloads that only it has |

mod client;
mod drive;
mod in_flight;
mod instant;
mod locks;
mod nodes;
mod null;
mod ours;
mod report;
mod seen;
mod serve;
mod setup;
mod steady;
mod task;
mod tls;
mod window;

pub use self::{
    client::{Client, Failure},
    drive::{end, measure, program},
    null::{measure as measure_null, measure_on_tokio as measure_null_on_tokio},
    ours::measure as measure_ours,
    report::{Report, print},
    serve::{ServeOptions, serve},
    task::{Style, Task, Workload},
};
