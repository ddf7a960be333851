//! All sessions lose their connection at once, and come back when the server does.

use std::time::{Duration, Instant};

use tokio::{net::TcpStream, task::JoinSet};
use zk_client::{Client, SessionState};

use super::{NAME, Ours};
use crate::{
    client::{Client as _, Failure},
    report::Report,
    seen,
    setup::connect_all,
    task::Task,
    window::{Tally, Window},
};

/// How often it is tried whether the server is back.
const TRY: Duration = Duration::from_millis(5);

/// The server goes down for as long as it was told to when it was started.
///
/// What is timed is from when it accepts connections again to when a session has one.
pub(super) async fn storm(task: Task) -> Result<Report, Failure> {
    let sessions = connect_all::<Ours>(&task).await?;
    let dialled = dials(&sessions);
    let (mut returning, count) = (JoinSet::new(), sessions.len());
    let window = Window::open(&task);
    let begun = Instant::now();
    for Ours(client) in &sessions {
        returning.spawn(returned(client.clone()));
    }
    seen::cut(&task.server);
    let back = back(&task.server).await;
    let mut times = Vec::with_capacity(count);
    while let Some(joined) = returning.join_next().await {
        times.extend(joined?);
    }
    // Some may be faster than the look at whether the server is back.
    let since = |at: &Instant| at.saturating_duration_since(back);
    times.sort_unstable();
    let mut tally = Tally::of(times.len());
    times.iter().for_each(|at| tally.took(since(at)));
    let seconds = |at: Option<&Instant>| at.map(|at| since(at).as_secs_f64());
    let report = window
        .close(NAME, &task, tally)
        .with("seconds_down", (back - begun).as_secs_f64())
        .with("seconds_to_half", seconds(times.get(times.len().saturating_sub(1) / 2)))
        .with("seconds_to_all", seconds(times.last()))
        .with("dials", dials(&sessions) - dialled)
        .with("sessions_lost", count - times.len());
    for session in sessions {
        session.close().await;
    }
    Ok(report)
}

/// Connections that were made or tried so far.
fn dials(sessions: &[Ours]) -> u64 {
    let stats = sessions.iter().map(|Ours(client)| client.stats());
    stats.map(|stats| stats.connects + stats.failed_attempts).sum()
}

/// When it has a connection again; `None` if its session has ended.
async fn returned(client: Client) -> Option<Instant> {
    let before = client.stats().connects;
    let mut session = client.session();
    let mut state = session.state();
    loop {
        match state {
            SessionState::Ended(_) => return None,
            SessionState::Connected { .. } if client.stats().connects > before => {
                return Some(Instant::now());
            }
            _ => state = session.changed().await,
        }
    }
}

/// When the server accepts connections again, after it has accepted none.
async fn back(server: &str) -> Instant {
    for accepts in [false, true] {
        while TcpStream::connect(server).await.is_ok() != accepts {
            tokio::time::sleep(TRY).await;
        }
    }
    Instant::now()
}
