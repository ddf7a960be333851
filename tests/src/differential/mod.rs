//! Whether the in-process server behaves as real ones do.
//!
//! A [`Sequence`] of steps is [made up](generate()) from a seed, with a liking for edges. It is
//! [played](play()) through a raw connection on servers of any kind ([`Wire`]), and what they did is
//! written down in a form (`record`) in which only what clients cannot rely on has been levelled:
//! transaction numbers become ranks, session ids names, and lists without order are sorted. What is
//! left must be the same, line by line.
//!
//! | module | concern |
//! |---|---|
//! | `step` | steps, as data that prints |
//! | `encode` | steps as bytes |
//! | `generate` | sequences that look for trouble |
//! | `wire` | what a sequence is played on: TCP, or an ensemble in this process |
//! | `play` | one sequence on one server |
//! | `record`, `reply` | what a server did, and how it is levelled |
//! | `batch` | many sequences on one server |
//! | `shrink` | the few steps of many that make the difference |
//! | `setup` | settings that both sides share |
//! | `golden` | what real servers did, kept |

mod batch;
mod encode;
mod generate;
mod golden;
mod play;
mod record;
mod reply;
mod setup;
mod shrink;
mod step;
mod wire;

pub use batch::{Batch, Difference, roots};
pub use generate::{generate, generate_mortal};
pub use golden::Golden;
pub use play::{play, play_among_others};
pub use record::Record;
pub use setup::Setup;
pub use shrink::shrink;
pub use step::Sequence;
pub use wire::{Incoming, Memory, Tcp, Wire};
