//! What these tests share.

mod frames;
mod patience;
mod polls;
mod stage;
mod waiter;

pub(crate) use self::{
    frames::ops,
    patience::{emptied, joined, within},
    polls::{dropped_after, dropped_on_waking, dropped_when},
    stage::{Stage, client_behind, end_session, end_session_behind, on_each_release, options_for},
    waiter::Waiter,
};
