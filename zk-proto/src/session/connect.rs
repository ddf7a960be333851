//! Connections: dialing, the handshake, the search for a better server, and loss.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use super::{
    fault::{Cause, LinkError},
    output::{Output, ProbeAnswer, State},
    phase::Phase,
    state::Session,
    timer::Timer,
    watch::Watcher,
};
use crate::{
    frame::encode_frame,
    request::{ConnectRequest, TrailingFlag},
    text::Secret,
    time::Time,
};

/// Shortest bound on a connection attempt, however many servers there are: a round trip and a
/// handshake must fit. Only sessions with a timeout below three times that have less.
const DIAL_MIN: Duration = Duration::from_secs(1);

/// Longest pause between probes for a writable server.
const PROBE_PAUSE_MAX: Duration = Duration::from_secs(60);

/// From this pause on, a server with an inconclusive probe is tried by connecting.
const PROBE_PAUSE_BLIND: Duration = Duration::from_secs(10);

impl<R, W: Watcher> Session<R, W> {
    /// Reports the outcome of an [`Output::Dial`]. Ignored if none is in progress any more.
    pub fn dialed(&mut self, now: Time, outcome: Result<(), LinkError>) {
        if self.phase == Phase::Dialing {
            match outcome {
                Ok(()) => self.greet(now),
                Err(error) => self.lose_link(now, error),
            }
        }
        self.check();
    }

    /// Reports that the connection is gone. Ignored if there is none any more.
    pub fn hung_up(&mut self, now: Time, why: LinkError) {
        if self.phase.has_stream() {
            self.lose_link(now, why);
        }
        self.check();
    }

    /// Reports the answer to an [`Output::Probe`]. Ignored unless the session is on a read-only
    /// server, and once it is being closed.
    pub fn probed(&mut self, now: Time, server: &str, answer: ProbeAnswer) {
        match &mut self.phase {
            Phase::Up(up) if up.negotiated.read_only && !self.closing => {
                let blind = answer == ProbeAnswer::Unknown && up.probe_pause >= PROBE_PAUSE_BLIND;
                let pause = up.probe_pause;
                up.probe_pause = pause.saturating_mul(2).min(PROBE_PAUSE_MAX);
                if answer == ProbeAnswer::ReadWrite || blind {
                    self.rotation.prefer(server);
                    self.drop_link(now, LinkError::Superseded);
                } else {
                    self.timers.set(Timer::Probe, now.after(pause));
                }
            }
            _ => {}
        }
        self.check();
    }

    /// Replaces the servers, each `host:port`, at least one. Clients stay evenly spread: if there are more servers than
    /// before, some clients move to the new ones; a client connected to a removed server moves. No others do.
    ///
    /// The session leaves a connection only when everything sent over it has been answered, so that no write is in
    /// doubt over it; requests submitted meanwhile wait for the next one.
    pub fn update_servers(&mut self, now: Time, servers: Vec<Arc<str>>) {
        if servers.is_empty() || self.phase.over().is_some() {
            return;
        }
        // The same list again does not take a move back.
        if self.leaving && self.rotation.is_over(&servers) {
            return;
        }
        let here = self.link.server.clone().filter(|_| self.phase.has_link());
        let stays = self.rotation.update(servers, here.as_deref(), &mut self.rng);
        match self.phase {
            _ if stays || self.closing => {
                // An earlier list may have made it leave.
                if core::mem::take(&mut self.leaving) {
                    self.send_waiting(now);
                }
            }
            Phase::Up(_) => {
                self.leaving = true;
                self.leave_when_done(now);
            }
            Phase::Dialing | Phase::Handshaking { .. } | Phase::Authenticating(_) => {
                self.drop_link(now, LinkError::Rebalanced);
            }
            Phase::Waiting | Phase::Over(_) => {}
        }
        self.check();
    }

    /// Leaves the connection for a server of the new list, once nothing sent over it is unanswered.
    pub(super) fn leave_when_done(&mut self, now: Time) {
        if self.leaving && !self.in_flight.has_sent() && self.link.auth_pending.is_empty() {
            self.drop_link(now, LinkError::Rebalanced);
        }
    }

    /// Dials the next server.
    pub(super) fn dial(&mut self, now: Time) {
        let server = self.rotation.advance();
        self.phase = Phase::Dialing;
        self.link.server = Some(server.clone());
        self.timers.stop(Timer::Retry);
        self.timers.set(Timer::Dial, now.after(self.dial_bound()));
        self.outputs.push_back(Output::Dial { server });
    }

    /// The time limit of an attempt. With a session at stake every server gets three turns within its life: a starting
    /// server can accept a handshake and never answer it. A new session has nothing to lose, and needs the agreement of
    /// a quorum that may be slow.
    fn dial_bound(&self) -> Duration {
        let timeout = self.liveness.timeout();
        let turns = if self.identity.is_established() { 3 } else { 1_u32 };
        let servers = u32::try_from(self.rotation.len()).unwrap_or(u32::MAX);
        let share = timeout.checked_div(servers.saturating_mul(turns)).unwrap_or_default();
        let least = DIAL_MIN.min(timeout.checked_div(3).unwrap_or_default());
        self.config.connect_timeout.unwrap_or_else(|| share.max(least))
    }

    /// Looks for a server that takes writes, other than the present one.
    pub(super) fn probe(&mut self) {
        let mut server = self.rotation.advance();
        if self.link.server.as_ref() == Some(&server) {
            server = self.rotation.advance();
        }
        self.outputs.push_back(Output::Probe { server });
    }

    /// Begins the handshake. Nothing may follow it before the answer: if the session has expired, the server closes the
    /// connection behind its answer, and bytes that it has not read by then can turn the close into a reset that
    /// overtakes the answer (ZOOKEEPER-1702).
    fn greet(&mut self, now: Time) {
        let shown = self.identity.shown();
        let timeout = self.config.session_timeout.as_millis();
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: shown.last_zxid,
            time_out: i32::try_from(timeout).unwrap_or(i32::MAX),
            session_id: shown.id,
            passwd: Secret(Some(&shown.password.0)),
            read_only: TrailingFlag(Some(self.config.read_only)),
        };
        let len = shown.password.0.len();
        self.link.outbound.write_secret(len, |out| encode_frame(&request, out));
        self.phase = Phase::Handshaking { sent: now };
    }

    /// Leaves a connection that the driver still has.
    pub(super) fn drop_link(&mut self, now: Time, why: LinkError) {
        if self.phase.has_link() {
            self.outputs.push_back(Output::HangUp);
            self.lose_link(now, why);
        }
    }

    /// Cleans up after a lost connection, or a failed attempt at one.
    pub(super) fn lose_link(&mut self, now: Time, why: LinkError) {
        let was_up = matches!(self.phase, Phase::Up(_));
        let is_wanted = matches!(why, LinkError::Superseded | LinkError::Rebalanced);
        if !(self.link.is_of_use || was_up && is_wanted) {
            self.rotation.failed();
        }
        let convicted = if was_up { self.judge(now, &why) } else { None };
        if was_up {
            self.shorten_batches(&why);
        }
        for timer in [
            Timer::Dial,
            Timer::Confirm,
            Timer::Ping,
            Timer::Silence,
            Timer::Probe,
            Timer::Unwatch,
            Timer::Probation,
        ] {
            self.timers.stop(timer);
        }
        if matches!(self.phase, Phase::Up(up) if up.doubts == 0) {
            // The loss has another reason, and the next server may be another, or a newer one.
            self.unknown.clear();
        }
        self.phase = Phase::Waiting;
        self.server_watches.link_lost();
        self.leaving = false;
        if was_up {
            self.identity.freeze_watches();
            self.outputs.push_back(Output::State(State::Disconnected(why.clone())));
        } else {
            let server = self.link.server.take().unwrap_or_else(|| Arc::from(""));
            self.outputs.push_back(Output::Failed { server, error: why.clone() });
        }
        self.settle_credentials();
        if let Some((slot, outcome)) = convicted {
            if let Some(token) = slot.into_token() {
                self.reply(token, outcome);
            }
        }
        let is_ended = was_up && matches!(why, LinkError::Closed | LinkError::Reset);
        let cause = Cause::LinkLost(why);
        let written = self.link.outbound.written();
        // The server may have closed the session, and then the connection. The next one knows.
        self.close_is_in_doubt |= self.in_flight.close_was_sent(written);
        for (slot, disposition) in self.in_flight.link_lost(written, is_ended) {
            self.report(slot, disposition, &cause);
        }
        if !self.unknown.is_empty() {
            for token in self.in_flight.take_waiting(&self.unknown) {
                self.reply_unknown(token);
            }
        }
        self.link.reset();
        let pause = match cause {
            Cause::LinkLost(LinkError::Superseded | LinkError::Rebalanced) => Duration::ZERO,
            _ => self.pause(was_up),
        };
        self.timers.set(Timer::Retry, now.after(pause));
    }

    fn pause(&mut self, was_up: bool) -> Duration {
        let timeout = self.liveness.timeout();
        let life = if self.closing { timeout.min(self.config.close_timeout) } else { timeout };
        let life =
            if self.identity.is_established() || self.closing { life } else { Duration::MAX };
        self.rotation.pause(life, was_up, &mut self.rng)
    }
}
