//! Fixed pieces of work without a clock, a socket or a second thread, so that they take the same instructions each
//! time: what `.ci/instructions` counts, and `recorded.txt` says.
//!
//! | module | concern |
//! |---|---|
//! | `records` | what is sent and received most often, to bytes and back |
//! | `session` | the session alone; its benchmark begins with the same |
//! | `line` | a waiter's place among others |
//! | `client` | a client over a stream that answers by itself |

mod client;
mod line;
mod records;
pub mod session;

use std::fmt;

pub use self::line::{joining, lock_nodes};

/// Something that is done to be counted.
pub struct Piece {
    /// What it is called in `recorded.txt`.
    pub name: &'static str,
    /// How many times its work does it.
    pub times: u64,
    prepare: Box<dyn Fn() -> Work>,
}

/// Work for which everything is ready; done once.
pub type Work = Box<dyn FnMut()>;

impl Piece {
    fn new<W>(name: &'static str, times: usize, prepare: impl Fn() -> W + 'static) -> Self
    where
        W: FnMut() + 'static,
    {
        Self { name, times: times as u64, prepare: Box::new(move || Box::new(prepare())) }
    }

    /// Gets everything ready.
    #[must_use]
    pub fn prepare(&self) -> Work {
        (self.prepare)()
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All that is counted; with `observed`, what passes the code of those features.
#[must_use]
pub fn pieces() -> Vec<Piece> {
    if cfg!(feature = "observed") {
        return client::pieces();
    }
    let mut all = records::pieces();
    all.extend(session::pieces());
    all.push(line::piece());
    all.extend(client::pieces());
    all
}
