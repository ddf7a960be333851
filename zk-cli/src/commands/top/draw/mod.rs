//! The state as cells of a terminal: a function of the state alone.
//!
//! | module | concern |
//! |---|---|
//! | `frame` | what stands where on the screen, and in a report |
//! | `table` | columns that fit |
//! | `members`, `locks`, `tree` | the parts |
//! | `overlay` | help, and questions |

mod frame;
mod locks;
mod members;
mod overlay;
mod table;
mod tree;

pub(crate) use self::frame::{height, lines, report, screen};
