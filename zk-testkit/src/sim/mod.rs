//! The ensemble and a network that breaks on purpose, in virtual time, for clients that are real.
//!
//! Everything here runs inside one future on a paused tokio runtime of one thread: [`Tasks`] chooses who
//! goes on, [`Cluster`] carries bytes between clients and an [`Ensemble`](crate::server::Ensemble),
//! [`SimConnect`] and [`sim_clock`] are what a client is given instead of sockets and a clock. All chance
//! comes from one seed, so that a run can be had again, event by event.

mod cluster;
mod faults;
mod forge;
mod frames;
mod incident;
mod links;
mod net;
mod observer;
mod state;
mod stream;
mod tasks;
mod trace;

pub use crate::rng::Rng;

pub use self::{
    cluster::{Cluster, Pump},
    faults::{Fault, Fired, Incident, Schedule, Stage, Target},
    net::{Arrival, ConnectorId, LinkId, Net, Path, Way},
    observer::{Observer, Seen},
    state::{Setup, State},
    stream::{SimConnect, SimStream, servers, sim_clock},
    tasks::{Process, Tasks},
    trace::{Actor, Event, Trace},
};
