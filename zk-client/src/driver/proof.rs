//! State of the SASL exchange.

use std::{fmt, future::Future, pin::Pin};

use crate::net::sasl::{SaslExchange, SaslStep};

/// State of the SASL exchange on this connection.
#[derive(Default)]
pub(super) enum Proof {
    /// No exchange.
    #[default]
    None,
    /// Waiting for the server's reply.
    Waiting(Box<dyn SaslExchange>),
    /// The mechanism is computing the next step.
    Thinking(Thought),
}

type Thought = Pin<Box<dyn Future<Output = (Box<dyn SaslExchange>, SaslStep)> + Send>>;

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Waiting(_) => "Waiting",
            Self::Thinking(_) => "Thinking",
        })
    }
}
