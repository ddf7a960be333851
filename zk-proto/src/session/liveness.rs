//! Evidence that the other side is alive, and that it knows the session.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{config::Lease, reports::Reports};
use crate::time::Time;

/// Longest pause between two pings, whatever the session timeout: as in the Java client.
const PING_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// Bytes per second below which a frame that is arriving, or output that is leaving, is no sign of life: far less than
/// the slowest useful link, and far more than answers to pings, which a corrupt length can make the body of a frame
/// that never ends.
const RATE_MIN: u128 = 1 << 10;
/// Least pause between two confirmations, of sessions with pings that are further apart.
const CONFIRM_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// How often the leader is asked in the time for which a confirmation can last, less what answers take.
const CONFIRMATIONS: u32 = 5;

/// Pause before a server that throttled a confirmation request gets it again.
const CONFIRM_AGAIN: Duration = Duration::from_millis(500);

/// The instants that the session's timers are computed from.
#[derive(Clone, Debug)]
pub(crate) struct Liveness {
    /// Negotiated session timeout; until then that of the session to resume, or the requested one.
    timeout: Duration,
    /// For how long the servers keep the session at least: see [`Identity::kept`](super::phase::Identity::kept).
    kept: Duration,
    /// When a byte last arrived on this connection.
    heard: Time,
    /// When a frame last arrived on an established connection; none before the first.
    frame: Option<Time>,
    /// When a frame that servers send in order with answers to pings last arrived, or a frame had grown fast enough.
    moved: Time,
    /// When an incomplete frame had last grown fast enough; none before the first.
    grown: Option<Time>,
    /// When our own bytes last left fast enough, with a ping waiting behind them.
    drained: Time,
    /// When something was last sent.
    sent: Time,
    /// When the unanswered pings were sent, oldest first.
    pings: VecDeque<Time>,
    /// When the newest message was sent that has been answered.
    proof: Option<Time>,
    /// As `proof`, for messages whose answer involved the leader.
    confirmed: Option<Time>,
    /// When the newest message was sent of which the leader had been told by then.
    told: Option<Time>,
    reports: Reports,
    /// The round trip of the newest confirmation.
    round_trip: Duration,
    /// When the leader was last asked for a confirmation, on this connection.
    asked: Option<Time>,
    /// When to ask again, if a server throttled the last request.
    again: Option<Time>,
    lease: Lease,
}

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The server at the other end, as far as is known.
    Server,
    /// The leader, through whatever servers.
    Leader,
}

impl Liveness {
    pub(crate) const fn new(timeout: Duration, lease: Lease) -> Self {
        Self {
            timeout,
            kept: timeout,
            heard: Time::ZERO,
            frame: None,
            moved: Time::ZERO,
            grown: None,
            drained: Time::ZERO,
            sent: Time::ZERO,
            pings: VecDeque::new(),
            proof: None,
            confirmed: None,
            told: None,
            reports: Reports::new(Duration::ZERO),
            round_trip: Duration::ZERO,
            asked: None,
            again: None,
            lease,
        }
    }

    /// Records the answer to a handshake that was sent at `sent`. Members ask the leader about sessions, unless they
    /// serve without one.
    pub(crate) fn handshake_done(
        &mut self,
        now: Time,
        sent: Time,
        (timeout, kept): (Duration, Duration),
        source: Source,
    ) {
        (self.timeout, self.kept) = (timeout, kept);
        let handshake = (source == Source::Leader).then_some(sent);
        // The leader is told of a session within half a tick, and the margin covers a whole one.
        let delay = self.lease.margin(kept).checked_div(2).unwrap_or_default();
        self.reports.begin(handshake, delay);
        self.pings.clear();
        self.heard(now);
        self.frame = Some(now);
        self.sent = now;
        self.asked = None;
        self.again = None;
        self.answered(now, sent, source);
    }

    pub(crate) const fn heard(&mut self, now: Time) {
        self.heard = now;
    }

    /// Records an answer that servers give in order with those to pings.
    pub(crate) const fn moved(&mut self, now: Time) {
        self.moved = now;
    }

    /// Records that the incoming frame has grown by [`least`](Self::least) bytes since the last call.
    pub(crate) const fn grew(&mut self, now: Time) {
        self.moved = now;
        self.grown = Some(now);
    }

    /// Records that output has left fast enough while it contains an unanswered ping.
    pub(crate) const fn drained(&mut self, now: Time) {
        self.drained = now;
    }

    /// The number of bytes in a period below which traffic does not count.
    pub(crate) fn least(period: Duration) -> u64 {
        let bytes = period.as_millis().saturating_mul(RATE_MIN).checked_div(1000);
        bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(u64::MAX).max(1)
    }

    /// Returns whether that is news: for many frames in one read only the first is.
    pub(crate) fn frame(&mut self, now: Time) -> bool {
        self.frame.replace(now) != Some(now)
    }

    /// Returns whether that is news: for many requests in one write only the first is.
    pub(crate) fn sent(&mut self, now: Time) -> bool {
        core::mem::replace(&mut self.sent, now) != now
    }

    pub(crate) fn pinged(&mut self, now: Time) {
        self.sent(now);
        self.pings.push_back(now);
    }

    /// Records that the oldest ping was answered: no proof of anything newer, however many have been sent. Returns when
    /// it was sent.
    pub(crate) fn ponged(&mut self, now: Time) -> Option<Time> {
        let sent = self.pings.pop_front()?;
        if self.pings.is_empty() {
            // Most of its life a session has no ping under way.
            self.pings = VecDeque::new();
        }
        self.answered(now, sent, Source::Server);
        Some(sent)
    }

    /// Whether a ping is unanswered.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pings.is_empty()
    }

    /// Records the answer to a message that was sent at `sent`.
    pub(crate) fn answered(&mut self, now: Time, sent: Time, source: Source) {
        let newest = self.proof.map_or(sent, |proof| proof.max(sent));
        self.proof = Some(newest);
        if source == Source::Leader {
            self.again = None;
            // Many requests are sent at once.
            if self.confirmed < Some(sent) {
                (self.confirmed, self.round_trip) = (Some(sent), now.since(sent));
                self.told = self.told.max(self.reports.told_by(sent));
            }
        }
        if self.lease != Lease::Connection {
            self.reports.answered(now, sent, newest);
        }
    }

    /// Records that the leader was asked for a confirmation.
    pub(crate) const fn asked(&mut self, now: Time) {
        self.asked = Some(now);
        self.again = None;
    }

    /// Records that a server throttled the request to the leader: a few such answers in a row must not cost the lease.
    pub(crate) fn not_asked(&mut self, now: Time) {
        self.again = Some(now.after(CONFIRM_AGAIN.min(self.ping_interval())));
    }

    /// When to ask the leader for the next confirmation: as often as pings are sent, and five times in the time for which one
    /// can last. That is less by the round trip of what the leader was told of, and by its own. Slower answers than a third
    /// of it do not make it more frequent: servers that are overloaded are not asked more and more.
    pub(crate) fn confirmation_due(&self) -> Time {
        let lasts = self.kept.saturating_sub(self.lease.margin(self.kept));
        let third = lasts.checked_div(3).unwrap_or_default();
        let left = lasts.saturating_sub(self.round_trip.saturating_mul(2)).max(third);
        let part = left.checked_div(CONFIRMATIONS).unwrap_or_default();
        let since = self.confirmed.max(self.asked).unwrap_or(Time::ZERO);
        let interval = part.max(CONFIRM_INTERVAL_MIN).min(self.ping_interval());
        self.again.unwrap_or_else(|| since.after(interval))
    }

    /// Records that a server does not know the session: earlier proof counts no longer.
    pub(crate) const fn disowned(&mut self) {
        (self.proof, self.confirmed, self.told) = (None, None, None);
        self.reports.forget();
    }

    /// Negotiated session timeout; the requested one until then.
    pub(crate) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When the next ping is due: early enough for its answer to arrive before [`Liveness::silence`]. `owed` is when the
    /// oldest unanswered request was sent: if nothing moves, others that are sent behind it do not put the ping off, since
    /// only its answer is waited for no longer than that.
    pub(crate) fn ping_due(&self, owed: Option<Time>) -> Time {
        let interval = self.ping_interval();
        let idle = self.sent.after(interval);
        match owed {
            Some(since) if !self.is_waiting() => {
                let moved = self.moved.max(self.proof.unwrap_or(since));
                idle.min(since.max(moved).after(interval))
            }
            _ => idle,
        }
    }

    fn ping_interval(&self) -> Duration {
        let third = self.timeout.checked_div(3).unwrap_or_default();
        let second = Duration::from_secs(1);
        let interval =
            if third <= second { third } else { third.saturating_sub(second).max(second) };
        interval.min(PING_INTERVAL_MAX)
    }

    /// How long to wait for an answer that the server owes.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.saturating_mul(2).checked_div(3).unwrap_or_default()
    }

    /// When silence counts as a dead connection: two thirds of the timeout after the last byte, which leaves a third to
    /// find another server.
    ///
    /// An unanswered ping has that limit too: a corrupt length can swallow every later answer as the body of a frame
    /// that never ends, while bytes keep arriving. But the data ahead of its answer may be long, and the link slow: the
    /// limit counts from the last progress of that data, even at [a kibibyte a second](RATE_MIN). The same holds for
    /// output ahead of the ping itself.
    pub(crate) fn silence(&self) -> Time {
        let limit = self.patience();
        let moved = self.moved.max(self.drained);
        let ping = self.pings.front().map(|&ping| ping.max(moved).after(limit));
        let heard = self.heard.max(self.drained).after(limit);
        ping.map_or(heard, |ping| ping.min(heard))
    }

    /// When a session must have expired that was alive at `since`, whatever the servers may report later: a third beyond
    /// its timeout, for their rounding.
    pub(crate) fn expires(since: Time, timeout: Duration) -> Time {
        since.after(timeout.saturating_add(timeout.checked_div(3).unwrap_or_default()))
    }

    /// When this session must have expired. None before the first handshake. A frame that grows fast enough is a sign of
    /// life before it is complete.
    pub(crate) fn expiry(&self) -> Option<Time> {
        self.frame.map(|frame| Self::expires(frame.max(self.grown.unwrap_or(frame)), self.timeout))
    }

    /// Until when the servers must keep the session. None if they have not confirmed it.
    pub(crate) fn lease(&self) -> Option<Time> {
        self.proof.map(|proof| proof.after(self.kept))
    }

    /// As [`lease`](Self::lease), by the rule of the configured lease: as confirmed by the leader, or by any server.
    pub(crate) fn confirmed_lease(&self) -> Option<Time> {
        if self.lease == Lease::Connection {
            return self.lease();
        }
        // A leader that is cut off may have answered after the others gave it up; one that is not, before it was told.
        let margin = self.lease.margin(self.kept);
        let until = |since: Time, margin| since.after(self.kept.saturating_sub(margin));
        let (confirmed, told) = self.confirmed.zip(self.told)?;
        let told = until(told, margin.saturating_sub(self.reports.delay()));
        Some(until(confirmed, margin).min(told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ping_interval_follows_session_timeout() {
        for (timeout, interval) in [
            (600, 200),
            (3_000, 1_000),
            (4_500, 1_000),
            (6_000, 1_000),
            (12_000, 3_000),
            (90_000, 10_000),
        ] {
            let mut liveness = liveness(Duration::from_millis(timeout), Lease::Confirmed);
            liveness.sent(Time::ZERO);
            assert_eq!(
                liveness.ping_due(None),
                Time::new(Duration::from_millis(interval)),
                "{timeout}"
            );
        }
    }

    #[test]
    fn unanswered_ping_limits_the_silence() {
        let mut liveness = liveness(Duration::from_secs(9), Lease::Confirmed);
        let timeout = Duration::from_secs(9);
        liveness.handshake_done(at(0), at(0), (timeout, timeout), Source::Leader);
        liveness.pinged(at(2));
        liveness.heard(at(5));
        assert_eq!(liveness.silence(), at(8));
        liveness.ponged(at(5));
        assert_eq!(liveness.silence(), at(11));
        assert_eq!(liveness.lease(), Some(at(11)));
    }

    #[test]
    fn answer_proves_the_older_of_two_pings() {
        let timeout = Duration::from_secs(9);
        let mut liveness = liveness(timeout, Lease::Connection);
        liveness.handshake_done(at(0), at(0), (timeout, timeout), Source::Leader);
        liveness.pinged(at(2));
        liveness.pinged(at(4));
        liveness.ponged(at(5));
        assert_eq!((liveness.lease(), liveness.confirmed_lease()), (Some(at(11)), Some(at(11))));
        liveness.ponged(at(5));
        assert_eq!((liveness.lease(), liveness.confirmed_lease()), (Some(at(13)), Some(at(13))));
    }

    #[test]
    fn only_the_leader_confirms_less_the_margin() {
        let [timeout, margin] = [9, 2].map(Duration::from_secs);
        let mut liveness = liveness(timeout, Lease::Margin(margin));
        liveness.handshake_done(at(1), at(0), (timeout, timeout), Source::Leader);
        assert_eq!(liveness.confirmed_lease(), Some(at(7)));
        liveness.pinged(at(2));
        liveness.ponged(at(2));
        liveness.answered(at(3), at(3), Source::Server);
        assert_eq!((liveness.lease(), liveness.confirmed_lease()), (Some(at(12)), Some(at(7))));
        liveness.answered(at(4), at(4), Source::Leader);
        assert_eq!((liveness.lease(), liveness.confirmed_lease()), (Some(at(13)), Some(at(11))));
        // A late answer to an older message takes nothing back.
        liveness.answered(at(5), at(2), Source::Leader);
        assert_eq!(liveness.confirmed_lease(), Some(at(11)));
    }

    #[test]
    fn member_without_leader_confirms_nothing() {
        let timeout = Duration::from_secs(9);
        let mut liveness = liveness(timeout, Lease::Confirmed);
        liveness.handshake_done(at(1), at(0), (timeout, timeout), Source::Server);
        assert_eq!((liveness.lease(), liveness.confirmed_lease()), (Some(at(9)), None));
    }

    #[test]
    fn margin_is_bounded_by_the_session_timeout() {
        for (lease, timeout, margin) in [
            (Lease::Confirmed, 40_000, 8_000),
            (Lease::Confirmed, 10_000, 2_000),
            (Lease::Confirmed, 4_500, 2_000),
            (Lease::Confirmed, 4_000, 2_000),
            (Lease::Confirmed, 3_000, 1_500),
            (Lease::Margin(Duration::from_secs(3)), 4_500, 3_000),
            (Lease::Margin(Duration::from_millis(3_376)), 4_500, 2_250),
            (Lease::Margin(Duration::from_secs(5)), 4_500, 2_250),
            (Lease::Connection, 10_000, 0),
        ] {
            let [timeout, margin] = [timeout, margin].map(Duration::from_millis);
            assert_eq!(lease.margin(timeout), margin, "{lease:?} of {timeout:?}");
        }
    }

    /// A member that is cut off behind the answer has not told the leader of it.
    #[test]
    fn confirmation_lasts_by_what_the_leader_was_told() {
        let timeout = Duration::from_secs(30);
        let mut liveness = liveness(timeout, Lease::Confirmed);
        liveness.handshake_done(at(0), at(0), (timeout, timeout), Source::Leader);
        assert_eq!(liveness.confirmed_lease(), Some(at(24)));
        liveness.pinged(at(9));
        liveness.ponged(at(9));
        liveness.answered(at(11), at(11), Source::Leader);
        assert_eq!(liveness.confirmed_lease(), Some(at(27)), "of the handshake");
        liveness.answered(at(12), at(12), Source::Leader);
        assert_eq!(liveness.confirmed_lease(), Some(at(36)), "of the ping");
    }

    /// Servers that find another leader go by the timeout with which the session began.
    #[test]
    fn lease_is_as_long_as_the_shortest_timeout() {
        let [granted, kept] = [30, 10].map(Duration::from_secs);
        let mut liveness = liveness(granted, Lease::Confirmed);
        liveness.handshake_done(at(0), at(0), (granted, kept), Source::Leader);
        assert_eq!((liveness.lease(), liveness.confirmed_lease()), (Some(at(10)), Some(at(8))));
        let due = at(0).after(Duration::from_millis(1_600));
        assert_eq!((liveness.confirmation_due(), liveness.silence()), (due, at(20)));
    }

    /// A session that is relied on has the next confirmation long before the lease runs out.
    #[test]
    fn confirmation_interval_fits_the_lease() {
        // The shortest are those of servers with ticks of tests.
        for timeout in (60..500).step_by(10).chain((4_000..60_000).step_by(500)) {
            let timeout = Duration::from_millis(timeout);
            for lease in [Lease::Confirmed, Lease::Margin(timeout / 2)] {
                // At half of that time nothing would help.
                let slow = timeout.saturating_sub(lease.margin(timeout)) / 3;
                let slow = if slow < CONFIRM_INTERVAL_MIN * 5 { slow / 20 } else { slow };
                let mut liveness = liveness(timeout, lease);
                liveness.handshake_done(
                    at(0).after(slow),
                    at(0),
                    (timeout, timeout),
                    Source::Leader,
                );
                for number in 0..50 {
                    let late = slow - slow / 50 * (number % 3);
                    let due = liveness.confirmation_due();
                    let left = liveness.confirmed_lease().unwrap().since(due.after(late));
                    assert!(!left.is_zero(), "{lease:?} of {timeout:?}: {left:?} left");
                    liveness.asked(due);
                    liveness.answered(due.after(late), due, Source::Leader);
                }
            }
        }
    }

    /// A server whose answers take ever longer gets no more requests for it than one at which the lease can just be kept.
    #[test]
    fn slow_answers_do_not_multiply_confirmations() {
        let timeout = Duration::from_secs(30);
        let mut liveness = liveness(timeout, Lease::Confirmed);
        liveness.handshake_done(at(0), at(0), (timeout, timeout), Source::Leader);
        for (late, interval) in [(0, 4_800), (4, 3_200), (8, 1_600), (12, 1_600), (29, 1_600)] {
            let sent = at(100 + late);
            liveness.asked(sent);
            liveness.answered(sent.after(Duration::from_secs(late)), sent, Source::Leader);
            let interval = Duration::from_millis(interval);
            assert_eq!(liveness.confirmation_due(), sent.after(interval), "{late} s");
        }
    }

    fn liveness(timeout: Duration, lease: Lease) -> Liveness {
        Liveness::new(timeout, lease)
    }

    fn at(seconds: u64) -> Time {
        Time::new(Duration::from_secs(seconds))
    }
}
