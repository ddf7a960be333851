//! Watches: those that fire once, and what the session keeps of all.
//!
//! | module | concern |
//! |---|---|
//! | `event` | what watches tell |
//! | `once` | a watch as a future of one event |
//! | `mailbox` | events on their way to whoever listens, bounded |
//! | `listener` | what the session keeps of a watch |

mod event;
mod listener;
mod mailbox;
mod once;

pub(crate) use self::{
    event::Delivery,
    listener::Listener,
    mailbox::{Item as News, Letterbox, Mailbox},
    once::read_event,
};
pub use self::{
    event::{NodeEvent, Resync, WatchEnd, WatchItem, WatchMode},
    once::Watch,
};
