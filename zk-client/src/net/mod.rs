//! Connections to servers: names, sockets, TLS, and authentication.

pub(crate) mod connect;
pub(crate) mod link;
pub(crate) mod resolve;
pub(crate) mod sasl;
pub(crate) mod servers;
#[cfg(feature = "tls")]
pub(crate) mod tls;
