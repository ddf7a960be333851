//! S4, E1: what is lost stays lost, for the same reason; what is held has its node, and is certain only with a connection.

use zk_client::{Session, SessionState};
use zk_locks::{Lost, Status};

use super::{Checker, Claim};

/// What a holder that looks often has been told.
#[derive(Default)]
pub(crate) struct Kept {
    lost: Option<Lost>,
    /// Since when its node is known not to be there.
    without: Option<u64>,
    /// How often in a row it was held for certain, and there was no connection.
    certain: u32,
}

/// Looks at what is certain that is too much without a connection: the first may be in the moment of its end.
const CERTAIN_MAX: u32 = 3;

impl Checker {
    /// A client that has not stood still looks at what it holds. Returns whether something was wrong.
    pub(crate) fn looks_at(
        &mut self,
        kept: &mut Kept,
        client: u32,
        session: &Session,
        claim: &impl Claim,
    ) -> bool {
        self.count("looks at what is held");
        let (path, token, status) = (claim.path(), claim.token(), claim.status());
        let wrong = self.lasts_for_good(kept, session, status);
        let wrong = wrong.or_else(|| {
            let path = path.filter(|_| kept.lost.is_none())?;
            self.is_sound(kept, client, session, path, status)
        });
        if let Some(wrong) = &wrong {
            let text = format!("c{client} looks at {path:?} ({token}): {status:?}, {wrong}");
            self.shown_wrong(client, "S4", text);
        }
        wrong.is_some()
    }

    fn lasts_for_good(&self, kept: &mut Kept, session: &Session, now: Status) -> Option<String> {
        let before = kept.lost;
        kept.lost = match now {
            Status::Lost(lost) => Some(lost),
            _ => None,
        };
        let lost = before?;
        // Of a node that is gone it is not known at once whether its session is over.
        let is_found_out = lost == Lost::NodeDeleted
            && matches!(kept.lost, Some(Lost::SessionEnded(_)))
            && matches!(session.state(), SessionState::Closing | SessionState::Ended(_));
        (kept.lost != before && !is_found_out).then(|| format!("and has been told: {lost}"))
    }

    fn is_sound(
        &self,
        kept: &mut Kept,
        client: u32,
        session: &Session,
        path: &str,
        status: Status,
    ) -> Option<String> {
        let id = session.id();
        let is_there = self.history.live.get(path).is_some_and(|live| live.owner == id);
        kept.without = if is_there { None } else { kept.without.or(Some(self.now)) };
        let is_certain = status == Status::Held && session.state() == SessionState::Disconnected;
        kept.certain = if is_certain { kept.certain + 1 } else { 0 };
        if kept.certain >= CERTAIN_MAX {
            return Some("and there is no server".to_owned());
        }
        let left = session.lease_left();
        match status {
            Status::Suspect { lease_left } if lease_left > left => {
                return Some(format!("and {left:?} are left"));
            }
            _ => {}
        }
        // What has not been held for a second may not be watched yet.
        let bound = |since: u64| since + 1_500 + self.news(since, client);
        let late = kept.without.filter(|since| self.now > bound(*since));
        let since = late.filter(|_| !self.is_doubtful(id) && !self.was_damaged(id))?;
        Some(format!("and its node is gone since {since}"))
    }
}
