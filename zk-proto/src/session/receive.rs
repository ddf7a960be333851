//! Processing of a server's frames.

use alloc::format;
use core::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use zeroize::Zeroize as _;

use super::{
    disposition::Disposition,
    fault::{Broken, Cause, CloseReason, LinkError},
    in_flight::Sent,
    liveness::{Liveness, Source},
    output::{Answer, Negotiated, Outcome, Output, State},
    pending_request::{PendingRequest, Purpose},
    phase::{PROBE_PAUSE_MIN, Password, Phase, Up},
    state::Session,
    timer::Timer,
    watch::Watcher,
};
use crate::{
    code::ErrorCode,
    data::{Xid, Zxid},
    frame::{FrameError, ReplyHeader},
    jute::{Decode, Reader},
    op::OpCode,
    request::{ConnectView, LEN_CONNECT_RESPONSE_MIN, MultiHeader},
    time::Time,
    wipe::wipe,
};

/// Pings that must be answered after a refusal. One is not enough: together with the refusal servers write what they
/// have queued behind the end of a connection, such as the answer to a ping that arrived just in time.
const DOUBTS: u8 = 2;

impl<R, W: Watcher> Session<R, W> {
    /// Reports that bytes have been appended to [`inbound`](Session::inbound). Ignored without a connection.
    pub fn received(&mut self, now: Time) {
        // Bytes that arrived while the machine slept would pass for signs of life. The session's end cannot wait for
        // its timer: drivers read first.
        if self.timers.at(Timer::Expiry).is_some_and(|expiry| expiry <= now) {
            self.finish(CloseReason::Expired);
        }
        self.liveness.heard(now);
        self.link.inbound.note_growth();
        while self.phase.has_stream() {
            let len_max = self.reply_len_max();
            let outcome = match self.link.inbound.split_frame(len_max) {
                Ok(Some(frame)) if matches!(self.phase, Phase::Handshaking { .. }) => {
                    self.secret_frame(now, frame)
                }
                Ok(Some(frame)) => self.frame(now, frame.freeze()),
                Ok(None) => break,
                Err(error) => {
                    self.give_up_first(error);
                    Err(Broken::Link(LinkError::Frame(error)))
                }
            };
            match outcome {
                Ok(()) => self.leave_when_done(now),
                Err(Broken::Link(why)) => self.drop_link(now, why),
                Err(Broken::Session(CloseReason::Expired)) => self.is_gone(),
                Err(Broken::Session(over)) => self.finish(over),
            }
        }
        if let Phase::Up(_) = self.phase {
            let least = || Liveness::least(self.liveness.patience());
            if !self.link.inbound.buffer().is_empty() && self.link.inbound.has_grown_by(least()) {
                self.liveness.grew(now);
                self.watch_expiry();
            }
            self.watch_silence();
            if self.in_flight.is_waiting() {
                // Answered requests may have made room.
                self.send_waiting(now);
            }
        }
        if !self.phase.has_stream() {
            // The driver did not know that this connection has been left.
            self.link.inbound.clear();
        }
        self.link.outbound.forget_secrets();
        self.link.inbound.settle();
        self.check();
    }

    /// Reports the request whose reply cannot be accepted: it would break the next connection too.
    fn give_up_first(&mut self, error: FrameError) {
        let Some(slot) = self.in_flight.take_first_user(self.link.outbound.written()) else {
            return;
        };
        let cause = match usize::try_from(error.len) {
            Ok(len) => Cause::ReplyTooLarge { len, len_max: error.len_max },
            Err(_) => Cause::LinkLost(LinkError::Frame(error)),
        };
        self.report(slot, Disposition::Unknown, &cause);
    }

    /// Processes a frame with a password; nothing of it stays in memory but the copy of the session.
    fn secret_frame(&mut self, now: Time, mut frame: BytesMut) -> Result<(), Broken> {
        self.link.outbound.forget_secrets();
        let mut copy = Bytes::copy_from_slice(&frame);
        frame.zeroize();
        let outcome = self.frame(now, copy.clone());
        wipe(&mut copy);
        outcome
    }

    fn frame(&mut self, now: Time, mut frame: Bytes) -> Result<(), Broken> {
        match self.phase {
            Phase::Handshaking { sent } => self.handshake_done(now, sent, &frame),
            Phase::Up(_) => {
                if self.liveness.frame(now) {
                    // First of all: this frame may be the last one of its connection.
                    self.watch_expiry();
                }
                let mut reader = Reader::new(&frame);
                let header = ReplyHeader::decode(&mut reader)?;
                let header_len = reader.offset();
                frame.advance(header_len);
                let body = frame;
                if !header.err.is_ok() {
                    self.refused(header)?;
                }
                match header.xid {
                    Xid::NOTIFICATION => self.event(now, header.zxid, &body),
                    Xid::PING => self.pong(now, header.err),
                    Xid::AUTH => self.auth_judged(header.err),
                    _ => self.answer(now, header, body),
                }
            }
            Phase::Authenticating(authenticating) => self.proved(authenticating, &frame),
            Phase::Waiting | Phase::Dialing | Phase::Over(_) => Ok(()),
        }
    }

    /// Looks at a refusal before it is processed as others are.
    #[cold]
    fn refused(&mut self, header: ReplyHeader) -> Result<(), Broken> {
        match header.err {
            ErrorCode::SESSION_CLOSED_REQUIRE_AUTH => return Err(self.unauthenticated(header)),
            // Servers look up the operation where they read a request, and refuse one that they do not know at once
            // (`ZooKeeperServer.submitRequest`), as of no transaction, while they are at work on earlier requests.
            ErrorCode::UNIMPLEMENTED if header.zxid == Zxid(-1) => {
                self.in_flight.bring_forward(header.xid);
            }
            // So are writes by a member without a quorum (`ReadOnlyRequestProcessor`).
            ErrorCode::NOT_READ_ONLY if self.is_read_only() => {
                self.in_flight.bring_forward(header.xid);
            }
            _ => {}
        }
        Ok(())
    }

    /// Processes the answer to the handshake.
    fn handshake_done(&mut self, now: Time, sent: Time, frame: &Bytes) -> Result<(), Broken> {
        if frame.len() < LEN_CONNECT_RESPONSE_MIN {
            // A read-only server that cannot create sessions answers with a bare reply header, and leaves the
            // connection open.
            return Err(Broken::Link(LinkError::NotServed));
        }
        let response = ConnectView::decode(&mut Reader::new(frame))?;
        let shown = self.identity.shown().id;
        let resuming = shown.0 != 0;
        let timeout = u64::try_from(response.time_out).unwrap_or_default();
        // A server without a leader ends sessions for itself (before 3.6), and cannot know whether the others have.
        let knows = response.read_only.0 != Some(true);
        // Some servers create another session instead of reporting that ours is gone.
        let is_gone = resuming && (timeout == 0 || response.session_id != shown);
        if is_gone && knows {
            return Err(Broken::Session(CloseReason::Expired));
        }
        if is_gone || timeout == 0 {
            return Err(Broken::Link(LinkError::NotServed));
        }
        // The next handshake would take it for no session, and its expiry would go unnoticed.
        if response.session_id.0 == 0 {
            return Err(Broken::Link(LinkError::Protocol("session without an id".into())));
        }
        let negotiated = Negotiated {
            id: response.session_id,
            timeout: Duration::from_millis(timeout),
            read_only: response.read_only.0.unwrap_or_default(),
        };
        self.link.offered = response.passwd.0.map(Password::copy_of);
        if self.config.sasl {
            self.begin_authenticating(negotiated, (sent, now));
        } else {
            self.established(now, negotiated, (sent, now));
        }
        Ok(())
    }

    /// Begins to use the session, after the handshake and any SASL exchange.
    pub(super) fn established(
        &mut self,
        now: Time,
        negotiated: Negotiated,
        handshake: (Time, Time),
    ) {
        let (sent, answered) = handshake;
        self.identity.adopt(negotiated, self.link.offered.take());
        let source = if negotiated.read_only { Source::Server } else { Source::Leader };
        let timeouts = (negotiated.timeout, self.identity.kept());
        self.liveness.handshake_done(answered, sent, timeouts, source);
        self.liveness.heard(now);
        self.timers.stop(Timer::Dial);
        self.phase =
            Phase::Up(Up { negotiated, restoring: 0, doubts: 0, probe_pause: PROBE_PAUSE_MIN });
        self.outputs.push_back(Output::State(State::Connected(negotiated)));
        if negotiated.read_only {
            self.timers.set(Timer::Probe, now.after(PROBE_PAUSE_MIN));
        }
        self.catch_up(now);
    }

    /// Sends everything that a new connection needs, in the order that servers require: credentials, watches, and only
    /// then users' requests.
    fn catch_up(&mut self, now: Time) {
        for index in 0..self.credentials.len() {
            self.present(now, index);
        }
        self.restore(now);
        self.send_waiting(now);
        self.watch_silence();
        self.watch_expiry();
        self.watch_confirmation();
    }

    /// Records that the attempt to connect has succeeded; not earlier. Otherwise a server that accepts sessions and
    /// then ends the connection, over watches or over users' requests, would be dialed without growing pauses.
    const fn is_of_use(&mut self) {
        self.link.is_of_use = true;
        self.rotation.succeeded();
    }

    /// Processes the answer to the oldest ping. An error is no sign of life.
    ///
    /// A server that answers a ping and still owes the answer to an older request, for as long as would count as
    /// silence, has lost that request: its answer would never arrive on this connection.
    fn pong(&mut self, now: Time, err: ErrorCode) -> Result<(), Broken> {
        if err.is_ok() {
            if !self.in_flight.has_sent() && !self.in_flight.is_waiting() {
                self.is_of_use();
            }
            let ping = self.liveness.ponged(now);
            self.link.ponged();
            let owed = self.in_flight.oldest_sent();
            let passed_over = ping.zip(owed).filter(|(ping, owed)| owed < ping);
            if let Some((_, owed)) = passed_over {
                if now.since(owed) >= self.liveness.patience() {
                    return Err(Broken::Link(LinkError::TimedOut));
                }
            }
            self.trust(now);
            return Ok(());
        }
        if err.ends_session() {
            self.liveness.disowned();
        }
        let moved = err == ErrorCode::SESSION_MOVED;
        Err(Broken::Link(if moved { LinkError::Moved } else { LinkError::NotServed }))
    }

    /// Reduces the [doubts](Self::doubt), if there are any and no ping is unanswered.
    fn trust(&mut self, now: Time) {
        let pings_are_answered = !self.liveness.is_waiting();
        if let Phase::Up(up) = &mut self.phase {
            if up.doubts == 0 || !pings_are_answered {
                return;
            }
            up.doubts = up.doubts.saturating_sub(1);
            if up.doubts > 0 {
                self.ping(now);
            } else {
                self.send_waiting(now);
            }
        }
    }

    /// Processes a reply to an ordinary request.
    fn answer(&mut self, now: Time, header: ReplyHeader, body: Bytes) -> Result<(), Broken> {
        let ReplyHeader { xid, zxid, err } = header;
        let err = if err.is_ok() { self.verdict(xid, &body) } else { err };
        let body = if err.is_ok() { body } else { Bytes::new() };
        if self.is_of_readers() && self.in_flight.op_due(xid) == Some(OpCode::CLOSE_SESSION) {
            // It has closed the session for itself (before 3.6): the others keep it.
            return Err(Broken::Link(LinkError::NotServed));
        }
        if err == ErrorCode::SESSION_MOVED && self.in_flight.undo(xid) {
            return Err(Broken::Link(LinkError::Moved));
        }
        let Sent { mut slot, at, .. } = self.in_flight.answered(xid).map_err(|due| {
            Broken::Link(LinkError::Protocol(match due {
                Some(due) => format!("reply to xid {xid} where {due} was due"),
                None => format!("reply to xid {xid} where none was due"),
            }))
        })?;
        self.liveness.moved(now);
        let ends_session = !err.is_ok() && err.ends_session();
        if ends_session {
            self.liveness.disowned();
        } else {
            let leader = err.is_ok() && slot.frame().op().passes_the_leader();
            let source = if leader { Source::Leader } else { Source::Server };
            self.liveness.answered(now, at, source);
        }
        self.note_zxid(zxid);
        if err == ErrorCode::UNIMPLEMENTED && matches!(slot, PendingRequest::User { .. }) {
            self.note_unknown(slot.frame().op());
            self.doubt(now);
        }
        if let PendingRequest::User { request, suspicion, .. } = &mut slot {
            self.is_of_use();
            self.suspects.answered(request.frame.len(), core::mem::take(suspicion));
        }
        if err == ErrorCode::THROTTLED_OP {
            self.throttled = self.throttled.wrapping_add(1);
            if slot.bears_throttling() {
                return self.throttled(now, slot);
            }
        }
        let is_open = slot.is_open(err);
        match slot {
            PendingRequest::User { request, rare, .. } => {
                let watched = self.register(request.watch, err);
                self.reply(
                    request.token,
                    match is_open {
                        true => Outcome::Unknown(Cause::Refused(err)),
                        false => Outcome::Answered(Answer { zxid, code: err, body }),
                    },
                );
                if let Some((by, path)) = rare.and_then(|rare| rare.asks) {
                    self.add_watch_answered(now, by, path, err)?;
                } else if let Some(path) = watched {
                    self.remove_unwatched(now, &path);
                }
            }
            PendingRequest::Own { frame, purpose: Purpose::Restore, .. } => {
                return self.restored(frame.op(), err);
            }
            PendingRequest::Own { purpose: Purpose::Rearm(path), .. } => {
                self.rearmed(&path, err)?
            }
            PendingRequest::Own { purpose: Purpose::Confirm, .. }
                if err == ErrorCode::THROTTLED_OP =>
            {
                self.liveness.not_asked(now);
                self.watch_confirmation();
            }
            PendingRequest::Own { purpose: Purpose::Unwatch(path), .. }
                if err == ErrorCode::THROTTLED_OP =>
            {
                self.removal_throttled(now, path);
            }
            PendingRequest::Own { purpose: Purpose::Unwatch(_), .. }
                if err == ErrorCode::UNIMPLEMENTED =>
            {
                self.server_watches.removal_is_unknown();
            }
            // Its outcome does not matter otherwise: no task waits for it.
            PendingRequest::Own { purpose: Purpose::Unwatch(_) | Purpose::Confirm, .. } => {}
            PendingRequest::Close { token, .. } => {
                self.reply(token, Outcome::Answered(Answer { zxid, code: err, body }));
                return Err(Broken::Session(CloseReason::Closed));
            }
        }
        // The server will close the connection; the next handshake brings certainty.
        if ends_session { Err(Broken::Link(LinkError::NotServed)) } else { Ok(()) }
    }

    /// What an answer without an error says of the session. Transactions are refused by the result of an operation: to a
    /// session that has ended always, to one that has moved before 3.6.
    fn verdict(&self, xid: Xid, body: &Bytes) -> ErrorCode {
        let may_be_refused = body.first() == Some(&u8::MAX);
        if !may_be_refused || self.in_flight.op_due(xid) != Some(OpCode::MULTI) {
            return ErrorCode::OK;
        }
        let code = MultiHeader::first_error(body);
        let is_of_session = code == ErrorCode::SESSION_MOVED || code.ends_session();
        if is_of_session { code } else { ErrorCode::OK }
    }

    /// Whether the server serves nobody but readers, a session that others know.
    fn is_of_readers(&self) -> bool {
        self.is_read_only() && self.identity.is_global()
    }

    const fn is_read_only(&self) -> bool {
        matches!(self.phase, Phase::Up(up) if up.negotiated.read_only)
    }

    /// Remembers an operation that a server does not know. For transactions the unknown part is not reported.
    fn note_unknown(&mut self, op: OpCode) {
        if op != OpCode::MULTI && !self.unknown.contains(&op) {
            self.unknown.push(op);
        }
    }

    /// Answers for a server that is known not to know the operation. The answer reflects no state.
    pub(super) fn reply_unknown(&mut self, token: R) {
        let (zxid, code) = (Zxid(0), ErrorCode::UNIMPLEMENTED);
        self.reply(token, Outcome::Answered(Answer { zxid, code, body: Bytes::new() }));
    }

    /// A server that does not know an operation closes the connection behind the refusal, and requests sent until that
    /// is noticed would be lost. A server that merely forbids it continues. Pings distinguish the two.
    fn doubt(&mut self, now: Time) {
        if self.in_flight.close_was_sent(u64::MAX) {
            return;
        }
        if let Phase::Up(up) = &mut self.phase {
            up.doubts = DOUBTS;
            self.ping(now);
        }
    }

    /// Remembers the newest transaction seen, so as not to go back behind it on another server.
    ///
    /// A read-only server may have seen transactions that the ensemble later discards; they are not required of other
    /// servers.
    pub(super) fn note_zxid(&mut self, zxid: Zxid) {
        if matches!(self.phase, Phase::Up(up) if !up.negotiated.read_only) {
            self.identity.saw(zxid);
        }
    }
}
