//! Watches: one-shot watches, and the session's end of all watches.
//!
//! | module | concern |
//! |---|---|
//! | `event` | events and items of watches |
//! | `once` | a watch as a future of one event |
//! | `event_queue` | the bounded queue of events for a listener |
//! | `listener` | the session's end of a watch |

mod event;
mod event_queue;
mod listener;
mod once;

pub(crate) use self::{
    event::{Delivery, WatchMode},
    event_queue::{EventQueue, EventSender, Item as Queued},
    listener::Listener,
    once::read_event,
};
pub use self::{
    event::{NodeEvent, Resync, WatchEnd, WatchItem},
    once::Watch,
};
