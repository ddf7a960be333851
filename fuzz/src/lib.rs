//! What must hold for any input, one function for each fuzz target. The targets only call these, so
//! that an input that a fuzzer has found can be replayed without one.
#![forbid(unsafe_code)]

mod decode;
mod frames;
mod path;

pub use self::{
    decode::{choice_of, reply_decode, request_decode},
    frames::frames,
    path::path,
};
