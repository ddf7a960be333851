//! A ZooKeeper server without I/O: it is told what clients send and what time it is, and says what
//! to send back.
#![expect(missing_docs, unused_variables, reason = "an outline")]

mod config;
mod ensemble;

pub use config::Config;
pub use ensemble::{Conn, Ensemble, Member, Output};
