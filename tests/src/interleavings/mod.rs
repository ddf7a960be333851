//! Every order in which the requests of a few contenders for a lock can reach a server, with every schedule of a few
//! faults: the recipes' real code, small and complete.
//!
//! A run is a sequence of [`Step`]s: the server takes the next request of one client, a holder releases, or something goes
//! wrong. The search is depth-first. Code cannot be copied in the middle of a run, so each alternative is
//! replayed from the start, until it meets a state that has been there before.
//!
//! | module | concern |
//! |---|---|
//! | `scenario` | who contends for what |
//! | `contender` | one contender: an acquire, a hold, a release |
//! | `link` | one client's connection, frame by frame |
//! | `world` | the server and the clients, moved by one step at a time |
//! | `names` | names for nodes that do not depend on chance |
//! | `state` | when two states are the same |
//! | `judge` | what must hold |
//! | `search` | all runs |
//!
//! # What makes it finite
//!
//! * Frames of the server arrive before the next step, one by one. Clients share nothing but the server, and each takes what
//!   it is told in the order in which it is said: later arrival changes nothing but what is lost with a connection, and
//!   that is a choice of its own ([`Step::Lose`]). Grants come as early as they can that way, and nodes go as late as they
//!   can, so that two grants which may overlap in any order do so here.
//! * What a client does depends on what it has been told. Two states are the same if the server holds the same nodes,
//!   in the same order, and the same watches, and if each client has been told the same. So orders of requests that
//!   commute meet again after the last of them. Not told apart is what the recipes do not look at: numbers of
//!   transactions, names behind one's own in a list, what a waiter was told before the last list that it is asleep by, what
//!   anybody was told before a grant, and everything of a client that is done.
//!
//! # What is left out
//!
//! * Time: sessions, leases and rechecks do not run out, and steps take a millisecond. Expiry is a fault. Pauses before
//!   something is tried again end when nothing else can happen ([`Step::Wait`]).
//! * Several frames in one read of a client, and frames of one answer of which only the first ones arrive.
//! * Connections that come back while the server still knows the old one; members that lag.
//! * The path is there from the beginning, and each contender asks for the lock once.

mod contender;
mod judge;
mod link;
mod names;
mod scenario;
mod search;
mod state;
mod step;
#[cfg(test)]
mod tests;
mod world;

pub use self::{
    names::Label,
    scenario::Scenario,
    search::{Counts, Found, explore},
    step::Step,
};
