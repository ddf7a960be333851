//! What the lock protects: a resource that trusts no visitor.
//!
//! It sees each visitor come in and go out, and its token. It does not ask the lock service: what it
//! sees is what a resource sees that is protected by the lock.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A visitor that comes with a fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// Number of the contender, from 1.
    pub(crate) contender: usize,
    /// The fencing token.
    pub(crate) token: i64,
    /// The number of the visitor's node in the queue. The resource does not look at it; the verdict does.
    pub(crate) sequence: i32,
    /// When it asked for the lock, counted from the start signal.
    pub(crate) asked: Duration,
}

/// One critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) visitor: Visitor,
    /// When it began, counted from the start signal.
    pub(crate) entered: Duration,
    /// When it ended; `None` if it has not.
    pub(crate) left: Option<Duration>,
}

/// A visitor's token is smaller than one seen before: it has lost the lock without knowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused: token {token} after {newest}")]
pub(crate) struct StaleToken {
    token: i64,
    newest: i64,
}

/// Two were in the resource at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// The one that was in it.
    pub(crate) inside: Visitor,
    /// The one that came in addition.
    pub(crate) intruder: Visitor,
}

/// All that a resource has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// In the order of entering.
    pub(crate) visits: Vec<Visit>,
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) refused: Vec<StaleToken>,
}

/// A resource that checks tokens.
#[derive(Debug, Default)]
pub(crate) struct Resource(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    record: Record,
    inside: Vec<Visitor>,
    /// The largest token seen.
    newest: Option<i64>,
}

impl Resource {
    /// Lets a visitor in, even beside another one, which is recorded as an overlap.
    ///
    /// # Errors
    /// [`StaleToken`]: the visitor stays outside.
    pub(crate) fn enter(&self, visitor: Visitor, now: Duration) -> Result<(), StaleToken> {
        let State { record, inside, newest } = &mut *self.state();
        if let Some(newest) = newest.filter(|&newest| visitor.token < newest) {
            let stale = StaleToken { token: visitor.token, newest };
            record.refused.push(stale);
            return Err(stale);
        }
        *newest = Some(visitor.token);
        let overlaps = inside.iter().map(|&inside| Overlap { inside, intruder: visitor });
        record.overlaps.extend(overlaps);
        inside.push(visitor);
        record.visits.push(Visit { visitor, entered: now, left: None });
        Ok(())
    }

    /// Notes that a visitor has left.
    pub(crate) fn leave(&self, visitor: Visitor, now: Duration) {
        let State { record, inside, .. } = &mut *self.state();
        inside.retain(|other| *other != visitor);
        let mut visits = record.visits.iter_mut().rev();
        if let Some(visit) = visits.find(|visit| visit.visitor == visitor) {
            visit.left = Some(now);
        }
    }

    /// What has been seen.
    pub(crate) fn record(&self) -> Record {
        self.state().record.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing above can panic halfway through.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(contender: usize, token: i64) -> Visitor {
        Visitor { contender, token, sequence: 0, asked: Duration::ZERO }
    }

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn consecutive_visits_do_not_overlap() {
        let resource = Resource::default();
        for (contender, token) in [(1, 10), (2, 20), (1, 30)] {
            resource.enter(visitor(contender, token), at(0)).unwrap();
            resource.leave(visitor(contender, token), at(1));
        }
        let record = resource.record();
        assert_eq!(record.visits.len(), 3);
        assert_eq!((record.overlaps, record.refused), (vec![], vec![]));
        assert!(record.visits.iter().all(|visit| visit.left == Some(at(1))));
    }

    #[test]
    fn concurrent_visits_are_an_overlap() {
        let resource = Resource::default();
        resource.enter(visitor(1, 10), at(0)).unwrap();
        resource.enter(visitor(2, 20), at(1)).unwrap();
        resource.leave(visitor(1, 10), at(2));
        resource.enter(visitor(3, 30), at(3)).unwrap();
        let overlaps = [(1, 2), (2, 3)].map(|(inside, intruder)| Overlap {
            inside: visitor(inside, inside as i64 * 10),
            intruder: visitor(intruder, intruder as i64 * 10),
        });
        assert_eq!(resource.record().overlaps, overlaps);
    }

    #[test]
    fn smaller_token_is_refused_when_unoccupied() {
        let resource = Resource::default();
        resource.enter(visitor(1, 20), at(0)).unwrap();
        resource.leave(visitor(1, 20), at(1));
        let stale = StaleToken { token: 10, newest: 20 };
        assert_eq!(resource.enter(visitor(2, 10), at(2)), Err(stale));
        let record = resource.record();
        assert_eq!((record.visits.len(), record.refused), (1, vec![stale]));
    }
}
