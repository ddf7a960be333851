//! The counter that holders update, and who of them is stopped.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use super::{PAUSE, PAUSE_EVERY};
use crate::{
    lines::{LineConnection, LineServer},
    trial::report::tenths,
};

/// A counter behind a socket. Each line is a request, `read TOKEN` or `write TOKEN VALUE`, and is answered by a
/// line: the value, `ok`, `stale` or `over`.
#[derive(Debug)]
pub(super) struct Store {
    shared: Arc<Shared>,
    server: LineServer,
}

#[derive(Debug)]
struct Shared {
    /// Whether tokens count.
    fenced: bool,
    /// So many updates are enough.
    wanted: u64,
    holders: usize,
    state: Mutex<State>,
    /// The largest token that was shown.
    highest: watch::Sender<i64>,
    finished: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    value: u64,
    book: Book,
    last_stop: Option<Instant>,
    /// Holders that were stopped and have not been heard of since.
    stopped_now: usize,
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Book {
    /// Updates that were confirmed to their holders.
    pub(super) accepted: u64,
    /// What the counter says.
    value: u64,
    /// Requests with a token smaller than one that was shown before.
    pub(super) refused: u64,
    /// How often a holder was stopped.
    pub(super) stopped: u64,
}

impl Book {
    pub(super) const fn lost(&self) -> u64 {
        self.accepted.saturating_sub(self.value)
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^53")]
    pub(super) fn lost_percent(&self) -> f64 {
        tenths(100.0 * self.lost() as f64 / self.accepted.max(1) as f64)
    }
}

impl Store {
    pub(super) async fn open(fenced: bool, wanted: u64, holders: usize) -> io::Result<Self> {
        let state = State { value: 0, book: Book::default(), last_stop: None, stopped_now: 0 };
        let (state, highest, finished) =
            (state.into(), watch::Sender::new(0), watch::Sender::new(false));
        let shared = Arc::new(Shared { fenced, wanted, holders, state, highest, finished });
        let serving = shared.clone();
        let server = LineServer::open(move |lines| serving.clone().serve(lines)).await?;
        Ok(Self { shared, server })
    }

    pub(super) const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Waits until enough updates have been accepted, and no stopped holder might overwrite them.
    pub(super) async fn finished(&self) {
        // The sender is in there.
        let _ = self.shared.finished.subscribe().wait_for(|finished| *finished).await;
    }

    pub(super) fn close(self) -> Book {
        drop(self.server);
        let state = self.shared.state();
        Book { value: state.value, ..state.book }
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, mut lines: LineConnection) -> io::Result<()> {
        let pid = lines.hear().await?.and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
        let mut is_stopped = false;
        while let Some(line) = lines.hear().await? {
            let answer = self.answer(&line, is_stopped).ok_or(io::ErrorKind::InvalidData)?;
            let has_read = line.starts_with("read") && answer.parse::<u64>().is_ok();
            is_stopped = has_read && self.is_time_to_stop();
            if is_stopped {
                // Before it has its answer, so that it stands still with the lock and an old value.
                kill_process(pid, Signal::STOP)?;
                let token = *self.highest.borrow();
                tokio::spawn(self.clone().resume(pid, token));
            }
            lines.say(&answer).await?;
        }
        Ok(())
    }

    /// `None` if the request makes no sense.
    fn answer(&self, line: &str, was_stopped: bool) -> Option<String> {
        let mut words = line.split(' ');
        let (what, token) = (words.next()?, words.next()?.parse().ok()?);
        let mut state = self.state();
        state.stopped_now -= usize::from(was_stopped);
        let answer = self.judge(&mut state, what, token, words.next());
        if state.book.accepted >= self.wanted && state.stopped_now == 0 {
            self.finished.send_replace(true);
        }
        answer
    }

    fn judge(
        &self,
        state: &mut State,
        what: &str,
        token: i64,
        value: Option<&str>,
    ) -> Option<String> {
        let highest = *self.highest.borrow();
        if self.fenced && token < highest {
            state.book.refused += 1;
            return Some("stale".to_owned());
        }
        // Reads too: else one with a smaller token could write between another's read and write.
        self.highest.send_replace(highest.max(token));
        if what == "read" {
            let over = state.book.accepted >= self.wanted;
            return Some(if over { "over".to_owned() } else { state.value.to_string() });
        }
        state.value = value?.parse().ok()?;
        state.book.accepted += 1;
        Some("ok".to_owned())
    }

    fn is_time_to_stop(&self) -> bool {
        let mut state = self.state();
        let is_due = state.last_stop.is_none_or(|stop| stop.elapsed() >= PAUSE_EVERY);
        let is_time = is_due && state.stopped_now < self.holders / 2;
        if is_time {
            state.last_stop = Some(Instant::now());
            state.stopped_now += 1;
            state.book.stopped += 1;
        }
        is_time
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a holder go on when it has been stopped for long enough, and a larger token has been shown.
    async fn resume(self: Arc<Self>, pid: Pid, token: i64) {
        let mut highest = self.highest.subscribe();
        tokio::time::sleep_until(tokio::time::Instant::now() + PAUSE).await;
        // The sender is in there.
        let _ = highest.wait_for(|highest| *highest > token).await;
        // Fails only if it was killed meanwhile.
        let _ = kill_process(pid, Signal::CONT);
    }
}
