//! What these tests share.

mod frames;
mod patience;
mod stage;

pub(crate) use self::{
    frames::ops,
    patience::{emptied, joined, within},
    stage::{Stage, client_behind, on_each_release},
};
