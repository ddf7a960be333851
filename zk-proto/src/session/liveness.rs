//! What is known about the other side being alive, and about what it knows of us.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::time::Time;

/// Longest pause between two pings, whatever the session timeout: as in the Java client.
const PING_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// The instants that the session's timers are computed from.
#[derive(Clone, Debug)]
pub(crate) struct Liveness {
    /// Negotiated session timeout; the wished one until then.
    timeout: Duration,
    /// When a byte last came, on this connection.
    heard: Time,
    /// When a frame last came on an established connection; none before the first.
    frame: Option<Time>,
    /// When something was last sent.
    sent: Time,
    /// When the unanswered pings were sent, oldest first.
    pings: VecDeque<Time>,
    /// When the newest message was sent that has been answered, and whose answer counts.
    proof: Option<Time>,
    /// What is taken off the lease, if only the leader's answers count.
    margin: Option<Duration>,
}

/// Who has given an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The server at the other end, for all we know.
    Server,
    /// The leader, whatever servers it came through.
    Leader,
}

impl Liveness {
    /// `since` is when a resumed session was last known to live; none for a new one.
    pub(crate) const fn new(
        timeout: Duration,
        since: Option<Time>,
        margin: Option<Duration>,
    ) -> Self {
        Self {
            timeout,
            heard: Time::ZERO,
            frame: since,
            sent: Time::ZERO,
            pings: VecDeque::new(),
            proof: None,
            margin,
        }
    }

    /// A handshake was answered that was sent at `sent`.
    pub(crate) fn greeted(&mut self, now: Time, sent: Time, timeout: Duration) {
        if !planted!(WishedTimeoutKept) {
            self.timeout = timeout;
        }
        self.pings.clear();
        self.heard(now);
        self.frame = Some(now);
        self.sent = now;
        self.answered(sent, Source::Leader);
    }

    pub(crate) const fn heard(&mut self, now: Time) {
        self.heard = now;
    }

    /// Returns whether that is news: of many frames in one read it is so for the first.
    pub(crate) fn frame(&mut self, now: Time) -> bool {
        self.frame.replace(now) != Some(now)
    }

    /// Returns whether that is news: of many requests in one write it is so for the first.
    pub(crate) fn sent(&mut self, now: Time) -> bool {
        core::mem::replace(&mut self.sent, now) != now
    }

    pub(crate) fn pinged(&mut self, now: Time) {
        self.sent(now);
        self.pings.push_back(now);
    }

    /// The oldest ping was answered. Returns when it was sent.
    pub(crate) fn ponged(&mut self) -> Option<Time> {
        let sent = self.pings.pop_front()?;
        self.answered(sent, Source::Server);
        Some(sent)
    }

    /// Whether a ping is unanswered.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pings.is_empty()
    }

    /// Something sent at `sent` was answered.
    pub(crate) fn answered(&mut self, sent: Time, source: Source) {
        if self.margin.is_none() || source == Source::Leader {
            self.proof = self.proof.max(Some(sent));
        }
    }

    /// A server says that there is no such session: whatever was proved before counts no longer.
    pub(crate) const fn disowned(&mut self) {
        self.proof = None;
    }

    /// Negotiated session timeout; the wished one until then.
    pub(crate) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When the next ping is due: early enough for its answer to come before [`Liveness::silence`].
    pub(crate) fn ping_due(&self) -> Time {
        let third = self.timeout.checked_div(3).unwrap_or_default();
        let second = Duration::from_secs(1);
        let interval =
            if third <= second { third } else { third.saturating_sub(second).max(second) };
        self.sent.after(interval.min(PING_INTERVAL_MAX))
    }

    /// How long to wait for whatever the server owes.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.saturating_mul(2).checked_div(3).unwrap_or_default()
    }

    /// When silence is to be taken for a dead connection: two thirds of the timeout after the last byte,
    /// which leaves a third to find another server.
    ///
    /// An unanswered ping has that limit too: a corrupt length can swallow every later answer as the
    /// body of a frame that never ends, while bytes keep coming.
    pub(crate) fn silence(&self) -> Time {
        if planted!(SilenceNotTimed) {
            return Time::new(Duration::MAX);
        }
        let limit = self.patience();
        let ping = self.pings.front().map(|ping| ping.after(limit));
        let heard = self.heard.after(limit);
        ping.map_or(heard, |ping| ping.min(heard))
    }

    /// When the session must have expired, whatever the servers may say later: a third beyond its
    /// timeout, for their rounding. None before the first handshake.
    pub(crate) fn expiry(&self) -> Option<Time> {
        let third = self.timeout.checked_div(3).unwrap_or_default();
        self.frame.map(|frame| frame.after(self.timeout.saturating_add(third)))
    }

    /// Until when the servers must keep the session. None if they did not say that they do.
    pub(crate) fn lease(&self) -> Option<Time> {
        let proof =
            if planted!(LeaseFromReceipt) { self.proof.and(self.frame) } else { self.proof };
        let length = self.timeout.saturating_sub(self.margin.unwrap_or_default());
        proof.map(|proof| proof.after(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_come_thrice_a_timeout_a_second_early_but_not_hectically_and_at_least_every_ten_seconds()
     {
        for (timeout, interval) in [
            (600, 200),
            (3_000, 1_000),
            (4_500, 1_000),
            (6_000, 1_000),
            (12_000, 3_000),
            (90_000, 10_000),
        ] {
            let mut liveness = Liveness::new(Duration::from_millis(timeout), None, None);
            liveness.sent(Time::ZERO);
            assert_eq!(
                liveness.ping_due(),
                Time::new(Duration::from_millis(interval)),
                "{timeout}"
            );
        }
    }

    #[test]
    fn an_unanswered_ping_limits_the_patience_even_while_bytes_come() {
        let at = |seconds| Time::new(Duration::from_secs(seconds));
        let mut liveness = Liveness::new(Duration::from_secs(9), None, None);
        liveness.greeted(at(0), at(0), Duration::from_secs(9));
        liveness.pinged(at(2));
        liveness.heard(at(5));
        assert_eq!(liveness.silence(), at(8));
        liveness.ponged();
        assert_eq!(liveness.silence(), at(11));
        assert_eq!(liveness.lease(), Some(at(11)));
    }

    #[test]
    fn with_a_margin_only_answers_of_the_leader_count_and_not_in_full() {
        let at = |seconds| Time::new(Duration::from_secs(seconds));
        let [timeout, margin] = [9, 2].map(Duration::from_secs);
        let mut liveness = Liveness::new(timeout, None, Some(margin));
        liveness.greeted(at(1), at(0), timeout);
        assert_eq!(liveness.lease(), Some(at(7)));
        liveness.pinged(at(2));
        liveness.ponged();
        liveness.answered(at(3), Source::Server);
        assert_eq!(liveness.lease(), Some(at(7)));
        liveness.answered(at(4), Source::Leader);
        assert_eq!(liveness.lease(), Some(at(11)));
    }
}
