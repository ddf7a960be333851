//! SASL authentication, between the handshake and everything else.
//!
//! The driver has the mechanism: a step can need a ticket from elsewhere, and time. The session carries its messages,
//! and makes sure that the exchange ends.

use alloc::sync::Arc;

use bytes::Bytes;

use super::{
    fault::{Broken, LinkError, Over},
    output::{Negotiated, Output, SaslSaid, SaslStep},
    phase::{Phase, Proving},
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
        if let Phase::Proving(proving @ Proving { due: None, .. }) = self.phase {
            match step {
                SaslStep::Say(_) if proving.steps >= SASL_STEPS_MAX => {
                    self.drop_link(now, LinkError::SaslEndless(SASL_STEPS_MAX));
                }
                SaslStep::Say(token) => self.say(proving, token.0),
                SaslStep::Done => self.established(now, proving.negotiated, proving.greeting),
                SaslStep::Failed(fault) => self.drop_link(now, LinkError::Driver(fault)),
                SaslStep::GivenUp(fault) => {
                    self.tell_of(LinkError::Driver(fault));
                    self.finish(Over::AuthFailed);
                }
            }
        }
        self.check();
    }

    /// Begins the exchange after the handshake. Nothing else may be sent before its end, pings included
    /// (ZOOKEEPER-2775, ZOOKEEPER-3937). Until then the offered session is not adopted: one invented by a false server
    /// would count as expired on all other servers.
    pub(super) fn begin_to_prove(&mut self, negotiated: Negotiated, greeting: (Time, Time)) {
        self.phase = Phase::Proving(Proving { negotiated, greeting, steps: 0, due: None });
        self.ask_for_a_step(SaslSaid::Nothing);
    }

    fn ask_for_a_step(&mut self, said: SaslSaid) {
        let server = self.link.server.clone().unwrap_or_else(|| Arc::from(""));
        self.outputs.push_back(Output::Sasl { server, said });
    }

    fn say(&mut self, proving: Proving, mut token: Bytes) {
        let xid = self.flight.take_xid();
        let request = GetSaslRequest { token: Secret(Some(&token)) };
        self.link.write_secret(token.len(), |out| encode_request(xid, &request, out));
        wipe(&mut token);
        let steps = proving.steps.saturating_add(1);
        self.phase = Phase::Proving(Proving { steps, due: Some(xid), ..proving });
    }

    /// Processes a frame during the exchange.
    pub(super) fn proved(
        &mut self,
        now: Time,
        proving: Proving,
        frame: &Bytes,
    ) -> Result<(), Broken> {
        let mut reader = Reader::new(frame);
        let ReplyHeader { xid, zxid, err } = ReplyHeader::decode(&mut reader)?;
        match xid {
            Xid::NOTIFICATION => return self.event(now, zxid, &frame.slice(reader.offset()..)),
            // An unsolicited answer; old servers are known to send one.
            Xid::PING => return Ok(()),
            _ => {}
        }
        match err {
            ErrorCode::OK if proving.due == Some(xid) => {
                let SetSaslResponse { token } = SetSaslResponse::decode(&mut reader)?;
                self.phase = Phase::Proving(Proving { due: None, ..proving });
                self.ask_for_a_step(SaslSaid::Answer(token));
                Ok(())
            }
            ErrorCode::OK => {
                let why = alloc::format!("reply to xid {xid} in the middle of an exchange");
                Err(Broken::Link(LinkError::Protocol(why)))
            }
            ErrorCode::AUTH_FAILED | ErrorCode::SESSION_CLOSED_REQUIRE_AUTH => {
                self.tell_of(LinkError::SaslRefused);
                Err(Broken::Session(Over::AuthFailed))
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
            Phase::Proving(_) => self.config.reply_len_max.min(SASL_LEN_MAX),
            _ => self.config.reply_len_max,
        }
    }

    /// Reports why the session is about to end: its users learn only that it has.
    fn tell_of(&mut self, error: LinkError) {
        let server = self.link.server.clone().unwrap_or_else(|| Arc::from(""));
        self.outputs.push_back(Output::Failed { server, error });
    }
}
