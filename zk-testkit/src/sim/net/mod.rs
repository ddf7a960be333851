//! The network: byte streams in virtual time, and what can go wrong with them.
//!
//! It knows neither clients nor servers, sockets nor clocks: it is given the time, takes bytes at
//! one end and says when they come out at the other. What goes wrong goes wrong as with TCP: bytes are
//! late, or the connection is lost, but within a connection none is missing, doubled or out of order.
//!
//! | module | concern |
//! |---|---|
//! | `network` | what goes from one end to the other, and when it gets there |
//! | `client` | what a client does with its end |
//! | `link` | one connection: what each end has, and what is under way |
//! | `path` | what is wrong between a client and a server |
//! | `way` | what connections are called, and the ways along them |

mod client;
mod link;
mod network;
mod path;
#[cfg(test)]
mod tests;
mod way;

pub use self::{
    network::{Arrival, Net},
    path::Path,
    way::{ConnectorId, LinkId, Way},
};
