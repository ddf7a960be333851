//! Certificates made up on the spot, and TLS in front of any server.

mod authority;
mod front;

pub use self::{
    authority::{Authority, Blemish, Issued},
    front::{ClientAuth, TlsFront},
};
