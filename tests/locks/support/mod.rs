//! What these tests share.

mod frames;
mod setup;
mod tasks;
mod virtual_time;
mod waiter;

pub(crate) use zk_tests::{
    patience::{closed, emptied, joined, within},
    polls::{dropped_after, dropped_on_waking, dropped_when},
};

pub(crate) use self::{
    frames::ops,
    setup::{
        Setup, client_behind, end_session, end_session_behind, on_each_release,
        on_each_release_threaded, on_each_release_timeless, options_for,
    },
    tasks::{in_thread, spawning_others},
    virtual_time::{client_on, in_virtual_time},
    waiter::Waiter,
};
