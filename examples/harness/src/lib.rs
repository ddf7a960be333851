//! What the tests of the services share. Linux only: processes are stopped by signals, and end with the test that started them.
//!
//! | module | concern |
//! |---|---|
//! | `program` | a service's process: what it says, stopping and killing it |
//! | `postgres` | a PostgreSQL server of the test's own |
//! | `http` | one request to a service |
//! | `chance` | random choices, again from the same seed |
//! | `patience` | bounds for every wait |

mod chance;
mod http;
mod patience;
mod postgres;
mod program;

pub use self::{
    chance::Chance,
    http::get,
    patience::{until, within},
    postgres::Postgres,
    program::Program,
};
