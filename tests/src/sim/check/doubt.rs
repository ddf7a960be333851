//! Sessions for which rules do not hold for a while, and why: their clients are wrong through no fault of their own.

use std::collections::BTreeMap;

use zk_proto::SessionId;

use super::Checker;

/// Why a client may be wrong about its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// A fault has ended the session, whatever its client does.
    Expired,
    /// Bytes were damaged on the way.
    Damaged,
    /// A member without its leader has answered, and the lease counts every answer.
    CutOff,
    /// The servers have ended the session, and a member that lags goes on serving it for a moment.
    Ended,
}

/// Until when each session is doubtful, by reason.
#[derive(Default)]
pub(super) struct Doubts(BTreeMap<SessionId, BTreeMap<Doubt, u64>>);

impl Doubt {
    /// Under which grants to such a session are counted.
    pub(super) const fn grants(self) -> &'static str {
        match self {
            Self::Expired => "exempt grants: session ended by a fault",
            Self::Damaged => "exempt grants: bytes damaged",
            Self::CutOff => "exempt grants: answered without the leader",
            Self::Ended => "exempt grants: session ended",
        }
    }
}

impl Checker {
    /// From now until then, a client may be wrong about its session.
    pub(super) fn doubt(&mut self, session: SessionId, why: Doubt, until: u64) {
        let last = self.doubts.0.entry(session).or_default().entry(why).or_default();
        *last = until.max(*last);
    }

    /// A client leaves the connection whose bytes were damaged: what it is told on the next one is
    /// sound again.
    pub(super) fn leaves_damage(&mut self, session: SessionId) {
        self.doubt_ends(session, Doubt::Damaged);
    }

    /// From now on that is no reason any more.
    pub(super) fn doubt_ends(&mut self, session: SessionId, why: Doubt) {
        let doubt = self.doubts.0.get_mut(&session).and_then(|reasons| reasons.get_mut(&why));
        if let Some(until) = doubt {
            *until = self.now.min(*until);
        }
    }

    /// Why a client may be wrong about its session at this moment.
    pub(super) fn why_doubtful(&self, session: SessionId) -> Option<Doubt> {
        let reasons = self.doubts.0.get(&session)?;
        reasons.iter().find(|(_, until)| self.now <= **until).map(|(why, _)| *why)
    }

    pub(super) fn is_doubtful(&self, session: SessionId) -> bool {
        self.why_doubtful(session).is_some()
    }

    /// Whether bytes for it were ever damaged: an event that was taken for something else is gone for good, although all
    /// that comes later is sound.
    pub(super) fn was_damaged(&self, session: SessionId) -> bool {
        self.doubts.0.get(&session).is_some_and(|why| why.contains_key(&Doubt::Damaged))
    }

    /// Whether it ever was.
    pub(super) fn was_doubtful(&self, session: SessionId) -> bool {
        self.doubts.0.contains_key(&session)
    }
}
