//! What tests of ZooKeeper clients need: [real servers](real), alone or as an ensemble, and a
//! [proxy] in front of them that knows the protocol.
//!
//! ```no_run
//! # async fn example() -> Result<(), zk_testkit::real::Error> {
//! use zk_testkit::real::{Server, Wanted};
//!
//! let server = Server::start(Wanted::Any).await?;
//! println!("{}", server.four_letter("srvr").await?);
//! # Ok(())
//! # }
//! ```

#[cfg(unix)]
mod port;
#[cfg(unix)]
pub mod proxy;
#[cfg(unix)]
pub mod real;
pub mod server;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(unix)]
mod test_server;

#[cfg(unix)]
pub use test_server::TestServer;
