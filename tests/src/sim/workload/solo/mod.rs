//! Recipes on paths that nobody else uses: all contenders are of one client, so that what comes of each call is known
//! beforehand, unless a lease or a session ends.
//!
//! | module | concern |
//! |---|---|
//! | `queue` | the exclusive lock |
//! | `variants` | other locks that one contender holds |
//! | `cohorts` | the cohort lock |
//! | `durable` | the durable lock |
//! | `sharing` | the read/write lock |
//! | `permits` | the semaphore |
//! | `copies` | caches |
//! | `hearing` | watches |
//! | `following` | states that are followed |
//! | `limits` | how long something is held at most |
//! | `meeting` | barriers, groups |
//! | `leading` | the election |
//! | `renewal` | paths that are made anew |
//! | `seats` | nodes that recipes are made of |
//! | `outcomes` | what comes of a call, and has to |
//! | `tally` | what observers are told |

mod cohorts;
mod copies;
mod durable;
mod following;
mod hearing;
mod leading;
mod limits;
mod meeting;
mod outcomes;
mod permits;
mod queue;
mod renewal;
mod seats;
mod sharing;
mod tally;
mod variants;

use std::{sync::Arc, time::Duration};

use zk_client::Error;
use zk_locks::Builder;

use self::tally::Tally;
use super::{Over, Worker, unless_over};

/// Where the nodes are.
pub(crate) const ROOT: &str = "/solo";

/// How the names of nodes begin that no recipe makes. Those go with the session at the latest.
pub(crate) const BY_HAND: &str = "by-hand-";

/// Longer than anything lasts.
const FOR_EVER: Duration = Duration::from_secs(3_600);

/// Half of the time for which something is waited for that does not come, in milliseconds.
const SOON: u64 = 200;

/// How many requests somebody sends in the second half at most, who has nothing to do but to wait: it looks again, each 50 ms
/// at most by a clock that may be a third too fast, with three requests where it is the first to wait for permits; or it comes
/// back over another connection.
const ASKED_MAX: u64 = 20;

/// How often it is looked whether something has happened, in milliseconds.
const LOOK: u64 = 50;

/// Why something is not gone through with.
#[derive(Debug)]
enum Cut {
    /// The session is over.
    Over,
    /// Something has failed that may fail, or was wrong.
    Failed,
}

type Known<T> = Result<T, Cut>;

impl From<Over> for Cut {
    fn from(_: Over) -> Self {
        Self::Over
    }
}

struct Solo {
    worker: Worker,
    /// Something new each time.
    path: String,
    description: String,
    uses: u64,
    tally: Arc<Tally>,
}

pub(super) async fn work(worker: Worker) {
    let tally = Arc::new(Tally::new(&worker.ctx));
    let (path, description) = (String::new(), String::new());
    let mut solo = Solo { worker, path, description, uses: 0, tally };
    loop {
        let pause = solo.worker.rng.scaled(20, 10_000);
        if !solo.worker.think(pause).await || matches!(solo.play().await, Err(Cut::Over)) {
            return;
        }
    }
}

impl Solo {
    async fn play(&mut self) -> Known<()> {
        let (client, session) = (self.worker.ctx.number, self.worker.client.session().id());
        self.uses += 1;
        // A session that is handed over is used by two, one after the other.
        let unique = self.worker.rng.next();
        self.path = format!("{ROOT}/c{client}-{session}-{unique:x}");
        self.description = format!("use {} by client {client}", self.uses);
        self.tally = Arc::new(Tally::new(&self.worker.ctx));
        let played = match self.worker.rng.below(22) {
            0..=2 => queue::exclusive(self).await,
            3 => variants::simple(self).await,
            4 => variants::multi(self).await,
            5 => cohorts::play(self).await,
            6 | 7 => sharing::play(self).await,
            8 => permits::play(self).await,
            9 => meeting::barrier(self).await,
            10 => meeting::group(self).await,
            11 => limits::play(self).await,
            12 | 13 => seats::play(self).await,
            14..=16 => copies::play(self).await,
            17 => renewal::play(self).await,
            18 => durable::play(self).await,
            19 | 20 => hearing::play(self).await,
            _ => leading::play(self).await,
        };
        match played {
            Ok(()) => {
                self.worker.ctx.count("recipes used alone");
                self.until_left(0).await?;
                match self.tally.mistakes() {
                    Some(mistakes) => self.wrong("E1", format_args!("is told {mistakes}")),
                    None => Ok(()),
                }
            }
            Err(Cut::Failed) => {
                self.worker.ctx.count("recipes used alone that failed");
                Ok(())
            }
            Err(Cut::Over) => Err(Cut::Over),
        }
    }

    /// A recipe, with settings that change nothing of what is known.
    fn set_up<R>(&mut self, builder: Builder<R>) -> R {
        let rng = &mut self.worker.rng;
        let builder = builder.description(&self.description).look_ahead(rng.one_in(3));
        let pause = Duration::from_millis(rng.scaled(50, 20_000));
        let builder = builder.recheck(rng.one_in(3).then_some(pause));
        builder.observer(self.tally.clone()).build()
    }
}

/// What comes of something is not of interest, unless the session is over.
fn over<T>(outcome: Result<T, impl Into<Error>>) -> Known<()> {
    unless_over(outcome)?;
    Ok(())
}
