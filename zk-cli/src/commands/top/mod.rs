//! `zk top`: a live screen of an ensemble, its locks and its tree.
//!
//! | module | concern |
//! |---|---|
//! | `run` | the loop: updates and keys in, frames out |
//! | `once` | one frame as text |
//! | `state` | what is shown, and what becomes of it: no I/O |
//! | `members`, `board`, `tree`, `cursor` | the parts of that |
//! | `keys` | which key asks for what |
//! | `draw` | the state as cells of a terminal |
//! | `screen` | the terminal: taken, and given back on every way out |
//! | `poll` | what servers are asked, and when |
//! | `search` | where locks are, and who has them |

mod board;
mod cursor;
mod draw;
mod keys;
mod members;
mod once;
mod poll;
mod run;
mod screen;
mod search;
mod state;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use self::run::run;
