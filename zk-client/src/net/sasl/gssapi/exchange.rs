//! One exchange: a context in two steps, then the choice of a security layer, which is none.

use std::{mem, sync::Arc};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use libgssapi::{
    context::{ClientCtx, CtxFlags, SecurityContext as _},
    credential::{Cred, CredUsage},
    error::Error,
    name::Name,
    oid::{GSS_MECH_KRB5, GSS_NT_KRB5_PRINCIPAL, OidSet},
};
use zk_proto::{Secret, session::SaslInput};

use super::{
    fault::{no_ticket, unproved},
    turns::Turns,
};
use crate::{
    error::SaslFault,
    net::sasl::{SaslExchange, SaslStep, malformed},
};

/// The server must prove its identity, and no third party may alter the exchange.
const WISHES: CtxFlags = CtxFlags::GSS_C_MUTUAL_FLAG.union(CtxFlags::GSS_C_INTEG_FLAG);

/// The one security layer that ZooKeeper supports: none. A bit of the first byte of an offer, and the first byte of a
/// choice.
const NO_LAYER: u8 = 1;

/// The layers, and their maximum message size.
const OFFER_LEN: usize = 4;

pub(super) struct Exchange {
    client: Option<String>,
    server: String,
    turns: Arc<Turns>,
    stage: Stage,
}

enum Stage {
    Start,
    /// Our ticket has been sent; the server must prove that it can use it.
    Shown(ClientCtx),
    /// Both sides are authenticated; the server is about to offer layers.
    Proved(ClientCtx),
    /// No layer has been chosen, and our authorization identity sent.
    Chosen,
    /// Any further message is an error.
    Over,
}

impl Exchange {
    pub(super) fn new(client: Option<String>, server: String, turns: Arc<Turns>) -> Self {
        Self { client, server, turns, stage: Stage::Start }
    }

    async fn next(&mut self, said: SaslInput) -> SaslStep {
        let answer = match said {
            SaslInput::Nothing => None,
            SaslInput::Answer(Secret(answer)) => answer,
        };
        let (step, stage) = match (mem::replace(&mut self.stage, Stage::Over), answer) {
            (Stage::Start, _) => {
                show(self.client.clone(), self.server.clone(), self.turns.clone()).await?
            }
            (Stage::Shown(context), Some(token)) => prove(context, Some(&token), unproved)?,
            (Stage::Proved(context), Some(offer)) => choose(context, &offer)?,
            (Stage::Shown(_) | Stage::Proved(_), None) => return Err(SaslFault::Unavailable),
            (Stage::Chosen, answer) if answer.as_ref().is_none_or(Bytes::is_empty) => {
                (None, Stage::Over)
            }
            (Stage::Chosen | Stage::Over, _) => return Err(malformed("more than there is to say")),
        };
        self.stage = stage;
        Ok(step)
    }
}

impl SaslExchange for Exchange {
    fn step(&mut self, said: SaslInput) -> BoxFuture<'_, SaslStep> {
        Box::pin(self.next(said))
    }
}

/// Sends a ticket, after obtaining one. Only this step contacts other hosts; all others take microseconds.
async fn show(
    client: Option<String>,
    server: String,
    turns: Arc<Turns>,
) -> Result<(Option<Secret<Bytes>>, Stage), SaslFault> {
    let of = server.clone();
    let show = move || {
        let context = context(client.as_deref(), &server).map_err(no_ticket)?;
        prove(context, None, no_ticket)
    };
    turns.work(&of, show).await?
}

fn context(client: Option<&str>, server: &str) -> Result<ClientCtx, Error> {
    let principal = |name: &str| Name::new(name.as_bytes(), Some(GSS_NT_KRB5_PRINCIPAL));
    let credentials = match client {
        None => None,
        Some(client) => {
            let mut kerberos = OidSet::new();
            kerberos.add(GSS_MECH_KRB5)?;
            let client = principal(client)?;
            let initiate = CredUsage::Initiate;
            Some(Cred::acquire(Some(&client), None, initiate, Some(&kerberos))?)
        }
    };
    Ok(ClientCtx::new(credentials, principal(server)?, WISHES, Some(GSS_MECH_KRB5)))
}

/// Continues the context until both sides are authenticated.
fn prove(
    mut context: ClientCtx,
    heard: Option<&[u8]>,
    fault: fn(Error) -> SaslFault,
) -> Result<(Option<Secret<Bytes>>, Stage), SaslFault> {
    let token = context.step(heard, None).map_err(fault)?;
    // Java's servers expect a message before they make their offer, even an empty one.
    let token = token.map_or_else(Bytes::new, |token| Bytes::copy_from_slice(&token));
    let stage = if !context.is_complete() {
        Stage::Shown(context)
    } else if context.flags().map_err(unproved)?.contains(WISHES) {
        Stage::Proved(context)
    } else {
        return Err(SaslFault::Unproved);
    };
    Ok((Some(Secret(token)), stage))
}

/// Chooses no layer, and sends our authorization identity: our own principal, as Java's client does.
fn choose(
    mut context: ClientCtx,
    offer: &[u8],
) -> Result<(Option<Secret<Bytes>>, Stage), SaslFault> {
    let offer = context.unwrap(offer).map_err(unproved)?;
    check_offer(&offer)?;
    let local = |error: Error| SaslFault::Local(error.to_string());
    let name = context.source_name().and_then(|name| name.display_name()).map_err(local)?;
    // The largest message that we accept in a layer: none.
    let mut choice = vec![NO_LAYER, 0, 0, 0];
    choice.extend_from_slice(&name);
    let choice = context.wrap(false, &choice).map_err(local)?;
    Ok((Some(Secret(Bytes::copy_from_slice(&choice))), Stage::Chosen))
}

fn check_offer(offer: &[u8]) -> Result<(), SaslFault> {
    match *offer {
        [layers, ..] if offer.len() != OFFER_LEN => {
            Err(malformed(&format!("offer of layers {layers:#04x} in {} bytes", offer.len())))
        }
        [layers, ..] if layers & NO_LAYER == 0 => {
            Err(malformed("nothing less than a security layer"))
        }
        [] => Err(malformed("no offer of layers")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_layer_must_be_on_offer() {
        for good in [[1, 0, 0, 0], [7, 0, 255, 255]] {
            assert_eq!(check_offer(&good), Ok(()));
        }
        for bad in [&[][..], &[1], &[6, 0, 255, 255], &[0, 0, 0, 0], &[1, 0, 0, 0, 0]] {
            assert!(matches!(check_offer(bad), Err(SaslFault::Malformed(_))), "{bad:?}");
        }
    }
}
