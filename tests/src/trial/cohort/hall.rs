//! What the lock protects, and the record of its visitors.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::watch;

use crate::{
    lines::{LineConnection, LineServer},
    register::Register,
};

/// A hall for one at a time, behind a socket. Tasks have a connection each, and begin with the number of their
/// process. Each line after that is `ask`, which is not answered; `enter TOKEN LOCAL`, which is answered by `go`, or
/// by `last` if that was enough; or `leave`, which is answered by `ok`.
#[derive(Debug)]
pub(super) struct Hall {
    shared: Arc<Shared>,
    server: LineServer,
}

#[derive(Debug)]
struct Shared {
    /// So many visits are enough.
    wanted: usize,
    register: Register,
    book: Mutex<Vec<Visit>>,
    /// How many have asked for the first time.
    asked: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

/// A visitor of the hall.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) process: usize,
    /// Of the turn of its process.
    pub(super) token: i64,
    pub(super) entered: Instant,
    pub(super) left: Instant,
    /// Whether there were to be more after it.
    pub(super) is_counted: bool,
}

impl Hall {
    pub(super) async fn build(wanted: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            wanted,
            register: Register::default(),
            book: Mutex::default(),
            asked: watch::Sender::new(0),
            open: watch::Sender::new(false),
        });
        let serving = shared.clone();
        let server = LineServer::open(move |lines| serving.clone().serve(lines)).await?;
        Ok(Self { shared, server })
    }

    pub(super) const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Waits until so many tasks have asked for the lock.
    pub(super) async fn asked_for_by(&self, tasks: usize) {
        // The sender is in there.
        let _ = self.shared.asked.subscribe().wait_for(|asked| *asked >= tasks).await;
    }

    /// Lets in the lock's holder.
    pub(super) fn open(&self) {
        self.shared.open.send_replace(true);
    }

    /// The visitors, in this order, and what happened that should not.
    pub(super) fn close(self) -> (Vec<Visit>, (usize, Vec<String>)) {
        drop(self.server);
        let visits = std::mem::take(&mut *self.shared.book());
        (visits, self.shared.register.violations())
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, mut lines: LineConnection) -> io::Result<()> {
        let process = lines.hear().await?.and_then(|line| line.parse().ok());
        let process = process.ok_or(io::ErrorKind::InvalidData)?;
        let mut has_asked = false;
        let mut inside = None;
        while let Some(line) = lines.hear().await? {
            let mut words = line.split(' ');
            let answer = match words.next() {
                Some("ask") => {
                    if !std::mem::replace(&mut has_asked, true) {
                        self.asked.send_modify(|asked| *asked += 1);
                    }
                    continue;
                }
                Some("enter") => {
                    let token = words.next().and_then(|word| word.parse().ok());
                    let local = words.next().and_then(|word| word.parse().ok());
                    let (Some(token), Some(local)) = (token, local) else { break };
                    // The sender is in here.
                    let _ = self.open.subscribe().wait_for(|open| *open).await;
                    self.register.enter((token, local));
                    inside = Some((token, local));
                    self.enter(process, token)
                }
                Some("leave") => {
                    let Some(shown) = inside.take() else { break };
                    self.leave(process);
                    self.register.leave(shown);
                    "ok"
                }
                _ => break,
            };
            lines.say(answer).await?;
        }
        // A visitor that goes without a word stays inside, and is found there by the next one.
        Ok(())
    }

    fn enter(&self, process: usize, token: i64) -> &'static str {
        let mut book = self.book();
        let is_counted = book.len() < self.wanted;
        let now = Instant::now();
        book.push(Visit { process, token, entered: now, left: now, is_counted });
        if is_counted { "go" } else { "last" }
    }

    fn leave(&self, process: usize) {
        let mut book = self.book();
        if let Some(visit) = book.iter_mut().rev().find(|visit| visit.process == process) {
            visit.left = Instant::now();
        }
    }

    fn book(&self) -> MutexGuard<'_, Vec<Visit>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
