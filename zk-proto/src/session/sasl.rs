//! SASL authentication, between the handshake and everything else.
//!
//! The driver has the mechanism: a step can need a ticket from elsewhere, and time. The session carries its messages,
//! and makes sure that the exchange ends.

use alloc::sync::Arc;

use bytes::Bytes;

use super::{
    fault::{Broken, CloseReason, LinkError},
    output::{Negotiated, Output, SaslInput, SaslStep},
    phase::{Authenticating, Phase},
    state::Session,
    watch::Watcher,
};
use crate::{
    code::ErrorCode,
    data::Xid,
    frame::{ReplyHeader, encode_request},
    jute::{Decode, Reader},
    request::{GetSaslRequest, SetSaslResponse},
    text::Secret,
    time::Time,
    wipe::wipe,
};

/// Steps of ours after which the session gives up an exchange. `DIGEST-MD5` has two, `GSSAPI` three or four.
const SASL_STEPS_MAX: u32 = 16;

/// Longest frame accepted during an exchange: a ticket with many groups has some 48 KiB.
const SASL_LEN_MAX: usize = 64 << 10;

impl<R, W: Watcher> Session<R, W> {
    /// Reports the mechanism's next step, in answer to an [`Output::Sasl`]. Ignored if that belonged to a connection
    /// that is gone.
    pub fn sasl_stepped(&mut self, now: Time, step: SaslStep) {
        if let Phase::Authenticating(authenticating @ Authenticating { due: None, .. }) = self.phase
        {
            match step {
                SaslStep::Say(_) if authenticating.steps >= SASL_STEPS_MAX => {
                    self.drop_link(now, LinkError::SaslEndless(SASL_STEPS_MAX));
                }
                SaslStep::Say(token) => self.say(authenticating, token.0),
                SaslStep::Done => {
                    self.established(now, authenticating.negotiated, authenticating.handshake)
                }
                SaslStep::Failed(fault) => self.drop_link(now, LinkError::Driver(fault)),
                SaslStep::GivenUp(fault) => {
                    self.tell_of(LinkError::Driver(fault));
                    self.finish(CloseReason::AuthFailed);
                }
            }
        }
        self.check();
    }

    /// Begins the exchange after the handshake. Nothing else may be sent before its end, pings included
    /// (ZOOKEEPER-2775, ZOOKEEPER-3937). Until then the offered session is not adopted: one invented by a false server
    /// would count as expired on all other servers.
    pub(super) fn begin_authenticating(&mut self, negotiated: Negotiated, handshake: (Time, Time)) {
        self.phase =
            Phase::Authenticating(Authenticating { negotiated, handshake, steps: 0, due: None });
        self.ask_for_a_step(SaslInput::Nothing);
    }

    fn ask_for_a_step(&mut self, said: SaslInput) {
        let server = self.link.server.clone().unwrap_or_else(|| Arc::from(""));
        self.outputs.push_back(Output::Sasl { server, said });
    }

    fn say(&mut self, authenticating: Authenticating, mut token: Bytes) {
        let xid = self.in_flight.take_xid();
        let request = GetSaslRequest { token: Secret(Some(&token)) };
        self.link.outbound.write_secret(token.len(), |out| encode_request(xid, &request, out));
        wipe(&mut token);
        let steps = authenticating.steps.saturating_add(1);
        self.phase =
            Phase::Authenticating(Authenticating { steps, due: Some(xid), ..authenticating });
    }

    /// Processes a frame during the exchange.
    pub(super) fn proved(
        &mut self,
        authenticating: Authenticating,
        frame: &Bytes,
    ) -> Result<(), Broken> {
        let mut reader = Reader::new(frame);
        let ReplyHeader { xid, err, .. } = ReplyHeader::decode(&mut reader)?;
        // Old servers are known to send an answer that nobody asked for. An event is news of no watch, as none has been set
        // on this connection: it would take one from the session on the word of a server that has not proved itself.
        if matches!(xid, Xid::PING | Xid::NOTIFICATION) {
            return Ok(());
        }
        match err {
            ErrorCode::OK if authenticating.due == Some(xid) => {
                let SetSaslResponse { token } = SetSaslResponse::decode(&mut reader)?;
                self.phase = Phase::Authenticating(Authenticating { due: None, ..authenticating });
                self.ask_for_a_step(SaslInput::Answer(token));
                Ok(())
            }
            ErrorCode::OK => {
                let why = alloc::format!("reply to xid {xid} in the middle of an exchange");
                Err(Broken::Link(LinkError::Protocol(why)))
            }
            ErrorCode::AUTH_FAILED | ErrorCode::SESSION_CLOSED_REQUIRE_AUTH => {
                self.tell_of(LinkError::SaslRefused);
                Err(Broken::Session(CloseReason::AuthFailed))
            }
            ErrorCode::SESSION_MOVED => Err(Broken::Link(LinkError::Moved)),
            _ => {
                if err.ends_session() {
                    self.liveness.disowned();
                }
                Err(Broken::Link(LinkError::NotServed))
            }
        }
    }

    /// Before authentication, servers have no long messages to send.
    pub(super) fn reply_len_max(&self) -> usize {
        match self.phase {
            Phase::Authenticating(_) => self.config.reply_len_max.min(SASL_LEN_MAX),
            _ => self.config.reply_len_max,
        }
    }

    /// Reports why the session is about to end: its users learn only that it has.
    fn tell_of(&mut self, error: LinkError) {
        let server = self.link.server.clone().unwrap_or_else(|| Arc::from(""));
        self.outputs.push_back(Output::Failed { server, error });
    }
}
