//! SASL exchanges: which step is under way.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use zk_proto::{
    Time,
    session::{SaslSaid, SaslStep},
};

use super::Driver;
use crate::sasl::SaslExchange;

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

impl Driver {
    /// Begins the next step of an exchange.
    pub(super) fn prove(&mut self, server: &str, said: SaslSaid) {
        let exchange = match (std::mem::take(&mut self.proof), &said) {
            (Proof::Waiting(exchange), SaslSaid::Answer(_)) => Some(exchange),
            _ => self.parts.sasl.as_ref().map(|sasl| sasl.begin(server)),
        };
        let Some(mut exchange) = exchange else { return };
        self.proof = Proof::Thinking(Box::pin(async move {
            let step = exchange.step(said).await;
            (exchange, step)
        }));
    }

    pub(super) fn advance_proof(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let Proof::Thinking(thought) = &mut self.proof else { return false };
        let Poll::Ready((exchange, step)) = thought.as_mut().poll(cx) else { return false };
        self.proof = Proof::Waiting(exchange);
        self.parts.session.sasl_stepped(now, step);
        true
    }
}
