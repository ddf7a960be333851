//! Watches: what requests ask for, who waits for it, and what is told to them.

mod intent;
mod notice;

pub use self::{
    intent::{WatchBy, WatchIntent},
    notice::{NodeEvent, WatchNotice},
};
