//! Certificates made up on the spot, and TLS in front of any server.

mod authority;
mod front;
mod server;
mod subject;

pub use self::{
    authority::{Authority, Blemish, Issued},
    front::TlsFront,
    server::{ClientAuth, PemFault, ServerTls},
};
