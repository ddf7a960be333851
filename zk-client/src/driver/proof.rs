//! State of the SASL exchange.

use crate::{
    future::BoxFuture,
    net::sasl::{SaslExchange, SaslStep},
};

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
