//! Watches: from the request that asks for one to the notices of its subscribers.
//!
//! A request that asks for a watch has a [`WatchIntent`]. Until it is answered, that is a pending registration
//! ([`pending`]). The answer determines whether the server has a watch now, and of which [`kind`]; if so, the watcher
//! becomes a subscriber in the [`registry`], and is notified of [events](event) from there.
//!
//! The server's watches may differ from those asked for ([`server_side`]). The session keeps the two consistent
//! ([`reconcile`]) while a connection lasts. On a new one it restores all registered watches ([`restore`]), by
//! `SetWatches` ([`set_watches`]).

mod event;
mod intent;
mod kind;
mod notice;
mod pending;
mod reconcile;
mod registry;
mod restore;
mod server_side;
mod set_watches;
mod subscribers;

pub use self::{
    intent::{WatchBy, WatchIntent},
    notice::{NodeEvent, WatchNotice},
    subscribers::Watcher,
};
pub(super) use self::{registry::Registry, server_side::ServerWatches};
