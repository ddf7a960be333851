//! Credentials: presented on every connection, and checked by servers.

use bytes::Bytes;

use super::{
    config::Auth,
    credential::Credential,
    disposition::Disposition,
    fault::{Broken, Cause, CloseReason},
    in_flight::Sent,
    output::{Answer, Outcome},
    phase::Phase,
    state::Session,
    watch::Watcher,
};
use crate::{
    code::ErrorCode,
    data::{Xid, Zxid},
    frame::{ReplyHeader, encode_request},
    request::AuthPacket,
    text::{Secret, Str},
    time::Time,
};

impl<R, W: Watcher> Session<R, W> {
    /// Adds an identity to prove on this and every later connection. Answered like a request, once
    /// a server has checked it; a refusal also ends the session.
    pub fn add_auth(&mut self, now: Time, auth: Auth, token: R) {
        if let Some(over) = self.over_or_closing() {
            self.reply(token, Outcome::NotSent(Cause::SessionOver(over)));
        } else {
            self.credentials.push(Credential::new(auth, Some(token)));
            if let Phase::Up(_) = self.phase {
                let index = self.credentials.len().saturating_sub(1);
                self.present(now, index);
            }
        }
        self.check();
    }

    /// Presents an identity on this connection.
    pub(super) fn present(&mut self, now: Time, index: usize) {
        if let Some(credential) = self.credentials.get(index) {
            let Auth { scheme, auth } = &credential.auth;
            let len = scheme.len().saturating_add(auth.0.len());
            let packet =
                AuthPacket { kind: 0, scheme: Str::from(&**scheme), auth: Secret(Some(&auth.0)) };
            let start =
                self.link.outbound.write_secret(len, |out| encode_request(Xid::AUTH, &packet, out));
            self.link.auth_pending.push_back((index, start));
            self.liveness.sent(now);
            self.watch_silence();
        }
    }

    /// Handles the loss of the connection: the server may have checked the credentials presented on
    /// it.
    pub(super) fn settle_credentials(&mut self) {
        let written = self.link.outbound.written();
        for (index, start) in core::mem::take(&mut self.link.auth_pending) {
            if let Some(credential) = self.credentials.get_mut(index).filter(|_| start < written) {
                credential.disposition = Disposition::Unknown;
            }
        }
    }

    /// Handles a server's verdict on the oldest unanswered credentials.
    pub(super) fn auth_judged(&mut self, err: ErrorCode) -> Result<(), Broken> {
        let pending = self.link.auth_pending.pop_front();
        let credential = pending.and_then(|(index, _)| self.credentials.get_mut(index));
        let token = credential.and_then(|credential| credential.token.take());
        if let Some(token) = token {
            let answer = Answer { zxid: Zxid(0), code: err, body: Bytes::new() };
            self.reply(token, Outcome::Answered(answer));
        }
        match err {
            ErrorCode::OK => Ok(()),
            _ => Err(Broken::Session(CloseReason::AuthFailed)),
        }
    }

    /// Handles a server's refusal to serve a client without credentials, which can answer anything.
    /// If it answers the oldest request in flight, that has certainly not been carried out over this connection.
    pub(super) fn unauthenticated(&mut self, header: ReplyHeader) -> Broken {
        let ReplyHeader { xid, zxid, err } = header;
        if let Ok(Sent { slot, .. }) = self.in_flight.answered(xid) {
            let outcome = if slot.is_open(err) {
                Outcome::Unknown(Cause::Refused(err))
            } else {
                Outcome::Answered(Answer { zxid, code: err, body: Bytes::new() })
            };
            if let Some(token) = slot.into_token() {
                self.reply(token, outcome);
            }
        }
        Broken::Session(CloseReason::AuthFailed)
    }
}
