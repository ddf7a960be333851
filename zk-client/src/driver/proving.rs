//! Runs the SASL exchange, by which client and server authenticate each other.

use std::task::{Context, Poll};

use zk_proto::{
    Time,
    session::{DriverFault, SaslInput, SaslStep as Step},
};

use super::{Driver, proof::Proof};
use crate::error::LinkError;

impl Driver {
    /// Starts the next step of an exchange.
    pub(super) fn prove(&mut self, server: &str, said: SaslInput) {
        let exchange = match (std::mem::take(&mut self.proof), &said) {
            (Proof::Waiting(exchange), SaslInput::Answer(_)) => Some(exchange),
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
        let step = match step {
            Ok(Some(token)) => Step::Say(token),
            Ok(None) => Step::Done,
            Err(fault) if fault.is_final() => {
                Step::GivenUp(DriverFault::new(LinkError::Sasl(fault)))
            }
            Err(fault) => Step::Failed(DriverFault::new(LinkError::Sasl(fault))),
        };
        self.parts.session.sasl_stepped(now, step);
        true
    }
}
