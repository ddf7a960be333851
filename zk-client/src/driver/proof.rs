//! SASL exchanges: which step is under way.

use std::{fmt, future::Future, pin::Pin};

use zk_proto::session::SaslStep;

use crate::net::sasl::SaslExchange;

/// What there is of the exchange on this connection.
#[derive(Default)]
pub(super) enum Proof {
    /// None.
    #[default]
    None,
    /// The server's answer is due.
    Waiting(Box<dyn SaslExchange>),
    /// The mechanism thinks.
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
