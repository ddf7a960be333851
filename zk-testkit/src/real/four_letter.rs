//! ZooKeeper's four-letter words, and what the answer to `srvr` tells.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// A paused server accepts (its kernel does) and never answers.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long a server may take to say what it is doing, if it is asked again and again.
const MODE_LIMIT: Duration = Duration::from_secs(1);

/// How often a starting server is asked that.
pub(super) const READY_POLL: Duration = Duration::from_millis(10);

/// How long servers may take to answer, when they are asked again and again.
///
/// A question that arrives in the middle of a start may never be answered, but the next one will
/// be: so patience is short at first, and grows only if it has run out. On a busy machine every answer takes seconds: it
/// goes on growing, but is never longer than a part of what has been waited.
#[derive(Debug)]
pub(super) struct Patience {
    begun: Instant,
    limit: Duration,
}

/// The part of the time so far that a question may take when it takes longer than [`MODE_LIMIT`].
const PATIENCE_PART: u32 = 8;

impl Patience {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), limit: Duration::from_millis(50) }
    }

    /// Asks once, with the present limit.
    pub(super) async fn ask<T>(&mut self, question: impl AsyncFnOnce(Duration) -> T) -> T {
        let asked = Instant::now();
        let answer = question(self.limit).await;
        if asked.elapsed() >= self.limit {
            let most = (self.begun.elapsed() / PATIENCE_PART).clamp(MODE_LIMIT, ANSWER_LIMIT);
            self.limit = most.min(2 * self.limit);
        }
        answer
    }
}

/// Sends one word and reads the answer to its end.
pub(super) async fn ask(server: SocketAddr, word: &str) -> io::Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(server).await?;
        stream.write_all(word.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    timeout(ANSWER_LIMIT, exchange).await?
}

/// What a server says it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Serving alone.
    Standalone,
    /// Leading an ensemble.
    Leader,
    /// Following a leader.
    Follower,
    /// Following a leader without a vote.
    Observer,
    /// Cut off from the quorum, and serving reads only.
    ReadOnly,
}

impl Mode {
    fn named(name: &str) -> Option<Self> {
        match name {
            "standalone" => Some(Self::Standalone),
            "leader" => Some(Self::Leader),
            "follower" => Some(Self::Follower),
            "observer" => Some(Self::Observer),
            "read-only" => Some(Self::ReadOnly),
            _ => None,
        }
    }
}

/// A serving server's mode, and how far it has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) mode: Mode,
    /// The last transaction that it knows of; the upper half is the leader's epoch.
    pub(super) zxid: i64,
}

impl Standing {
    /// Asks a server; `None` if it is not serving, or is down, or takes longer than `limit`.
    pub(super) async fn of(server: SocketAddr, limit: Duration) -> Option<Self> {
        let answer = timeout(limit, ask(server, "srvr")).await.ok()?.ok()?;
        Self::in_answer(&answer)
    }

    fn in_answer(srvr: &str) -> Option<Self> {
        let field = |name| srvr.lines().find_map(|line| line.strip_prefix(name));
        let zxid = field("Zxid: 0x")?.trim();
        Some(Self {
            mode: Mode::named(field("Mode: ")?.trim())?,
            zxid: i64::from_str_radix(zxid, 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep_until;

    use super::super::server::READY_LIMIT;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_outlasts_slow_answers() {
        let slow = async |limit| {
            let answered = sleep_until(Instant::now() + Duration::from_secs(3));
            timeout(limit, answered).await.is_ok()
        };
        let (mut patience, begun) = (Patience::new(), Instant::now());
        while !patience.ask(slow).await {
            assert!(begun.elapsed() < READY_LIMIT, "the limit stays below what an answer takes");
        }
    }

    #[test]
    fn mode_and_epoch_are_parsed_from_srvr() {
        let answer = "Zookeeper version: 3.9.3\nZxid: 0x200000001\nMode: leader\n";
        let standing = Standing::in_answer(answer).expect("a serving server");
        assert_eq!(standing.mode, Mode::Leader);
        assert_eq!(standing.zxid, (2 << 32) + 1);
        let starting = "This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(Standing::in_answer(starting), None);
    }
}
