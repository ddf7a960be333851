//! What the leader must have been told of a session.
//!
//! A request that a member passes on does not tell the leader that its session lives. Members do, in their answers to the
//! leader's pings, every half a tick; if one is cut off before the next, the leader expires the session by what it was told
//! before. So the answer to a request that has passed the leader shows that it was told of what the member had answered some
//! time before that request.

use core::time::Duration;

use crate::time::Time;

/// Answers that are kept. Those of a moment stand for one, so that these reach far enough back.
const ANSWERS_MAX: usize = 8;

/// The shortest moment.
const GAP_MIN: Duration = Duration::from_millis(1);

/// The answers of one connection, as far as it matters when they came.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    /// How long after an answer the leader is told at the latest.
    delay: Duration,
    /// When the handshake was sent, if the member has asked the leader about the session then.
    handshake: Option<Time>,
    /// When an answer came, and when the newest message was sent that had been answered by then: oldest first.
    answers: [(Time, Time); ANSWERS_MAX],
    len: usize,
    /// How long a moment is: the last answer of one stands for the others.
    gap: Duration,
    /// When the next one is kept.
    next: Time,
}

impl Reports {
    pub(crate) const fn new(delay: Duration) -> Self {
        let answers = [(Time::ZERO, Time::ZERO); ANSWERS_MAX];
        Self { delay, handshake: None, answers, len: 0, gap: least_gap(delay), next: Time::ZERO }
    }

    /// How long after an answer the leader is told at the latest.
    pub(crate) const fn delay(&self) -> Duration {
        self.delay
    }

    /// Records that another connection begins.
    pub(crate) const fn begin(&mut self, handshake: Option<Time>, delay: Duration) {
        *self = Self::new(delay);
        self.handshake = handshake;
    }

    /// Records that the servers do not know the session.
    pub(crate) const fn forget(&mut self) {
        self.begin(None, self.delay);
    }

    /// Records that something sent at `sent` was answered; of all that has been, the newest was sent at `newest`.
    pub(crate) fn answered(&mut self, now: Time, sent: Time, newest: Time) {
        if now < self.next {
            // The last of a moment: one that was sent long before may bring a newer one along.
            if let Some(last) = self.len.checked_sub(1).and_then(|at| self.answers.get_mut(at)) {
                *last = (now, newest);
            }
            return;
        }
        if self.len == ANSWERS_MAX {
            self.make_room(sent);
        }
        self.next = now.after(self.gap);
        if let Some(answer) = self.answers.get_mut(self.len) {
            *answer = (now, newest);
            self.len = self.len.saturating_add(1);
        }
    }

    /// When the newest message was sent of which the leader must have been told before a request sent at `sent` passed it.
    pub(crate) fn told_by(&self, sent: Time) -> Option<Time> {
        let told = self.last_before(sent).and_then(|last| self.answers.get(last));
        told.map(|(_, newest)| *newest).max(self.handshake)
    }

    /// The last of the answers that came early enough to be reported by then.
    fn last_before(&self, sent: Time) -> Option<usize> {
        let mut answers = self.answers.iter().take(self.len);
        answers.rposition(|(came, _)| came.after(self.delay) <= sent)
    }

    /// Forgets what is too old for all that is to be answered; or, if answers come late, every second one: then less is
    /// known.
    fn make_room(&mut self, sent: Time) {
        match self.last_before(sent) {
            Some(old) if old > 0 => {
                self.answers.rotate_left(old);
                self.len = self.len.saturating_sub(old);
                let least = least_gap(self.delay);
                self.gap = self.gap.checked_div(2).unwrap_or_default().max(least);
            }
            _ => {
                for kept in 1..ANSWERS_MAX / 2 {
                    self.answers.swap(kept, kept.saturating_mul(2));
                }
                self.len = ANSWERS_MAX / 2;
                self.gap = self.gap.saturating_mul(2);
            }
        }
    }
}

const fn least_gap(delay: Duration) -> Duration {
    match delay.checked_div(4) {
        // Moments of no length do not grow when there are too many.
        Some(gap) if gap.as_nanos() > GAP_MIN.as_nanos() => gap,
        _ => GAP_MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::new(Duration::from_millis(millis))
    }

    #[test]
    fn leader_has_been_told_of_what_was_answered_long_enough_before() {
        let mut reports = Reports::new(Duration::from_secs(1));
        assert_eq!(reports.told_by(at(9_000)), None);
        reports.begin(Some(at(500)), Duration::from_secs(1));
        assert_eq!(reports.told_by(at(500)), Some(at(500)), "it was asked");
        for sent in [1_000, 3_000, 5_000] {
            reports.answered(at(sent + 10), at(sent), at(sent));
        }
        for (sent, told) in
            [(2_009, 500), (2_010, 1_000), (4_009, 1_000), (6_009, 3_000), (6_010, 5_000)]
        {
            assert_eq!(reports.told_by(at(sent)), Some(at(told)), "{sent}");
        }
        reports.begin(None, Duration::from_secs(1));
        assert_eq!(
            reports.told_by(at(9_000)),
            None,
            "what another member was asked counts no more"
        );
    }

    /// Answers that come sooner than the ones before, at just the interval of confirmations.
    #[test]
    fn no_second_answer_is_forgotten_at_the_interval_of_confirmations() {
        let mut reports = Reports::new(Duration::from_secs(1));
        reports.begin(Some(at(0)), Duration::from_secs(1));
        for number in 0..100 {
            let (sent, late) = (at(333 * number), 600 - number % 7);
            let told = reports.told_by(sent).unwrap();
            reports.answered(sent.after(Duration::from_millis(late)), sent, sent);
            let behind = Duration::from_millis(1_000 + 600 + 2 * 333);
            assert!(told.after(behind) >= sent, "{told} by {sent}");
        }
    }

    /// Answers come in order: one that was late is followed at once by the next.
    #[test]
    fn newest_answer_of_a_bunch_counts() {
        let mut reports = Reports::new(Duration::from_secs(1));
        reports.begin(Some(at(0)), Duration::from_secs(1));
        for (sent, came) in [(1_600, 3_456), (3_200, 3_546), (4_800, 6_741), (6_262, 6_741)] {
            reports.answered(at(came), at(sent), at(sent));
        }
        assert_eq!(reports.told_by(at(4_545)), Some(at(0)));
        assert_eq!(reports.told_by(at(7_723)), Some(at(3_200)));
        assert_eq!(reports.told_by(at(7_741)), Some(at(6_262)));
    }

    /// However much is answered, and however late: never more than was answered in time, and hardly less.
    #[test]
    fn what_is_known_of_busy_connections_falls_behind_little() {
        let loads = [(1, 1), (1, 20), (7, 300), (100, 2_000), (400, 900), (1_000, 6_000)];
        let delays = [0, 1, 10, 1_000];
        for ((every, late), delay) in loads.into_iter().flat_map(|load| delays.map(|it| (load, it)))
        {
            let mut reports = Reports::new(Duration::from_millis(delay));
            reports.begin(Some(at(0)), Duration::from_millis(delay));
            for sent in (0..60_000).step_by(every) {
                let (now, sent) = (at(sent + late), at(sent));
                let told = reports.told_by(sent).unwrap();
                reports.answered(now, sent, sent);
                let sure = sent.since_epoch().saturating_sub(Duration::from_millis(delay + late));
                assert!(told <= at(0).max(Time::new(sure)), "every {every}, {late} late, {delay}");
                let behind = Duration::from_millis(delay + every as u64 + 2 * late);
                assert!(
                    told.after(behind) >= Time::new(sure),
                    "every {every}, {late} late, {delay}: {told}"
                );
            }
        }
    }
}
