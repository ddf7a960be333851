//! R3: whatever goes wrong, a session does not fill a log at the level that is shown by default.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;
use tracing::{
    Event, Level, Metadata, Subscriber,
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};

use super::check::Checker;

/// Lines that a session may write within a second.
const LINES_MAX: u64 = 10;

/// Counts what is logged, by session. Clones share the counts.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    spans: u64,
    /// The spans that we are in, innermost last.
    inside: Vec<u64>,
    began: Option<Instant>,
    second: u64,
    /// Lines in this second by session; those outside of any session are under 0.
    now: BTreeMap<u64, u64>,
    total: u64,
    /// The most that any session has written within a second.
    most: u64,
    /// The same of those outside of any session, all together.
    most_outside: u64,
}

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges what was logged. Callers, which do so in the name of no session, have as much for each
    /// client.
    pub(super) fn check(&self, checker: &mut Checker) {
        let state = self.state();
        checker.counts.insert("log lines", state.total);
        let State { most, most_outside, .. } = *state;
        if most > LINES_MAX {
            checker.violated("R3", format!("a session has logged {most} lines within a second"));
        }
        if most_outside > LINES_MAX * u64::from(checker.options.clients) {
            let text = format!("callers have logged {most_outside} lines within a second");
            checker.violated("R3", text);
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        let mut state = self.state();
        state.spans += 1;
        Id::from_u64(state.spans)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        let now = Instant::now();
        let mut state = self.state();
        let began = *state.began.get_or_insert(now);
        let second = now.duration_since(began).as_secs();
        if second != state.second {
            state.second = second;
            state.now.clear();
        }
        let session = state.inside.last().copied().unwrap_or_default();
        let count = state.now.entry(session).or_default();
        *count += 1;
        let count = *count;
        let most = if session == 0 { &mut state.most_outside } else { &mut state.most };
        *most = count.max(*most);
        state.total += 1;
    }

    fn enter(&self, span: &Id) {
        self.state().inside.push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.state().inside.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::log::listened;

    #[tokio::test(start_paused = true)]
    async fn lines_are_counted_by_session_and_second() {
        let lines = Lines::default();
        let listening = listened(lines.clone());
        let (one, other) = (tracing::info_span!("one"), tracing::info_span!("other"));
        one.in_scope(|| (0..3).for_each(|_| tracing::info!("shown")));
        other.in_scope(|| (0..2).for_each(|_| tracing::warn!("shown")));
        one.in_scope(|| tracing::debug!("not shown"));
        tracing::warn!("outside");
        let counts = || {
            let state = lines.state();
            (state.most, state.most_outside, state.total)
        };
        assert_eq!(counts(), (3, 1, 6));
        tokio::time::advance(Duration::from_secs(1)).await;
        one.in_scope(|| (0..2).for_each(|_| tracing::info!("shown")));
        assert_eq!(counts(), (3, 1, 8));
        drop(listening);
    }
}
