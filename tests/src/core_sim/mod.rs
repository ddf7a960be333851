//! Sessions against an ensemble, on a schedule of their own: no runtime, no sockets, microseconds.
//!
//! The session of `zk_proto` and the ensemble of `zk_testkit` are both values that are given what
//! happens and say what to do. Here the one's bytes become the other's, over the network of `zk_testkit::sim`,
//! and everything that either says is held against what has really happened.
//!
//! | module | concern |
//! |---|---|
//! | `plan`, `fault` | a run as data: the participants, and what goes wrong when |
//! | `world`, `client`, `tap` | sessions, their users, and the bytes between them and the network |
//! | `dialing` | how long a server is tried, and the search for one that takes writes |
//! | `run` | the shape of a run |
//! | `workload` | what users ask for |
//! | `change_log` | the ensemble's history, replayed |
//! | `checker`, `watching` | what one session, and one watch, must get right |
//! | `report` | what was checked and met |
//! | `soak`, `exhaustive` | many runs, by chance; all runs of a kind |
//!
//! # What is checked
//!
//! | | |
//! |---|---|
//! | S4 | no session that a server ends by itself was leased at that time; nothing comes after the end |
//! | S5 | each read shows the state of the transaction that its reply names |
//! | S7 | no session is shown an older state than before, whichever server it is on |
//! | S8 | each request has one outcome; answers come in the order of submission |
//! | S9 | *not sent* was never sent, *unknown* was; no write is carried out twice; an answered one was carried out at the transaction that the answer names |
//! | W1, W2 | no reply shows a state whose events were not delivered to the watches that wait for them |
//! | W3 | each event is the next change that concerns its watch |
//! | W4 | persistent watches hear of every change, in order, but for gaps that are reported to them |
//! | W5 | the same for the parts of a multi |
//! | L1 | after everything is healed all clients are connected, and are answered, within a bound; no attempt takes more than its share of the session's life; who can only read goes on looking for another server |
//! | L4 | closing takes no longer than it may |

mod change_log;
mod checker;
mod client;
mod dialing;
mod exhaustive;
mod fault;
mod plan;
mod report;
mod run;
mod soak;
mod tap;
mod watching;
mod workload;
mod world;

pub use self::{
    exhaustive::{Scope, exhaust},
    plan::Plan,
    report::Report,
    run::{Failure, run},
    soak::{Found, attempt, shrink, soak},
};

#[cfg(test)]
mod tests;
