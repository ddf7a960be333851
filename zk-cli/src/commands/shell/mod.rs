//! `zk shell`: a prompt for the commands of this program, in one session.
//!
//! | module | concern |
//! |---|---|
//! | `run` | the loop: a line, what it asks for, how that has ended |
//! | `line` | what a line asks for |
//! | `words` | a line that is being typed, up to the cursor |
//! | `place` | the node that paths are relative to |
//! | `complete` | what a word may go on with |
//! | `reader` | lines, typed or read |
//! | `history` | lines that are remembered |

mod complete;
mod history;
mod line;
mod place;
mod reader;
mod run;
mod words;

pub(crate) use self::run::run;
