//! Whom clients trust, who they are, and what they do when somebody lies about it.

mod certificates;
mod handshake;
mod heap;
mod identities;
mod renewal;
mod sasl;
mod secrets;
