//! Whom clients trust, who they are, and what they do when the other side lies about it.

mod certificates;
mod handshake;
mod identities;
mod renewal;
mod sasl;
mod secrets;
