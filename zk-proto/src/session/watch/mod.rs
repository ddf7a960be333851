//! Watches: from what a request asks for to what its subscribers are told.
//!
//! A request that asks for a watch brings a [`WatchIntent`] along. Until it is answered, that is a pending
//! registration ([`pending`]). The answer decides whether the server has a watch now, and of which [`kind`]; if so,
//! whoever waits for it is a subscriber in the [`registry`], and is told of [events](event) from there.
//!
//! What the server has is not always what was asked for ([`server_side`]). The two are kept in line ([`reconcile`])
//! while a connection lasts. A new one is told of all that is registered ([`restore`]), by `SetWatches`
//! ([`set_watches`]).

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
