//! State of the SASL exchange.

use crate::net::sasl::{SaslExchange, SaslStep};
use futures_core::future::BoxFuture;

/// State of the SASL exchange on this connection.
#[derive(Default)]
pub(super) enum Proof {
    /// No exchange.
    #[default]
    None,
    /// Waiting for the server's reply.
    Waiting(Box<dyn SaslExchange>),
    /// The mechanism is computing the next step.
    Thinking(BoxFuture<'static, (Box<dyn SaslExchange>, SaslStep)>),
}
