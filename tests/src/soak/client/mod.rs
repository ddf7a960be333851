//! The client, while the members of an ensemble are killed and stopped: reads, writes and watches of many tasks.
//!
//! | module | concern |
//! |---|---|
//! | `shared` | what all tasks share: counts, complaints, and how far the test has come |
//! | `layout` | which nodes there are |
//! | `session` | one session after the other, and the tasks that use them |
//! | `writer` | a task that writes its own nodes and shared counters, and reads |
//! | `change` | one write: made, and looked for when its answer is lost |
//! | `model` | what a writer has written, and what there must be now |
//! | `one_shot` | watches that fire once: each that should have fired has |
//! | `stream` | a watch that goes on: no version of a register is left out between two gaps that it tells of |
//! | `copy` | a cache, which is equal to the servers' nodes at the end |
//! | `tap` | what servers say on the wire: transactions never go back |
//! | `verdict` | what each member has at the end, beside what the models say |

mod change;
mod copy;
mod layout;
mod model;
mod one_shot;
mod session;
mod shared;
mod stream;
mod tap;
mod verdict;
mod writer;

use std::{
    error::Error,
    fs, io, panic,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use tokio::{
    runtime::Handle,
    task::JoinSet,
    time::{interval, timeout},
};
use zk_client::{Client, ConnectError, ConnectOptions};
use zk_testkit::real::{Ensemble, Release};

use self::{
    session::Role,
    shared::{Phase, Shared},
};
use super::{Report, at_least, in_millis, in_seconds};
use crate::faults::{Fault, Strike, strike_members};

/// Longer than an election, so that few sessions are lost; shorter than two of the longest pauses.
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

/// Long enough for sessions to notice: they hear nothing for two thirds of their timeout.
const LONG: Option<Duration> = Some(Duration::from_secs(5));

/// Too short for that, and for the leader to give a follower up.
const SHORT: Option<Duration> = Some(Duration::from_millis(800));

/// What happens to members, one after the other.
const ROUND: [Strike; 6] = [
    Strike { fault: Fault::Kill, is_leader: true, time: None },
    Strike { fault: Fault::Pause, is_leader: false, time: LONG },
    Strike { fault: Fault::Kill, is_leader: false, time: None },
    Strike { fault: Fault::Pause, is_leader: true, time: None },
    Strike { fault: Fault::Pause, is_leader: false, time: SHORT },
    Strike { fault: Fault::Pause, is_leader: true, time: SHORT },
];

/// How long tasks may take to come to their end: one that is stuck has lost an answer or an event.
const FINISH_LIMIT: Duration = Duration::from_secs(120);

/// How long what has been closed may take to go.
const GONE_LIMIT: Duration = Duration::from_secs(10);

/// What a soak test is to be like.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// For how long members are killed and stopped at least, in seconds.
    #[arg(long = "seconds", value_name = "S", default_value = "600", value_parser = in_seconds)]
    pub time: Duration,
    /// From one fault to the next at least, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = in_millis)]
    pub every: Duration,
    /// Tasks, four of each session: two writers, one with watches that fire once, and one with a stream or a cache.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least(1))]
    pub tasks: usize,
    /// How long each task waits between two turns at least, in milliseconds.
    #[arg(long, value_name = "MS", default_value = "10", value_parser = in_millis)]
    pub pause: Duration,
    /// The servers.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// Runs the test, in a process that does nothing else: its open files are counted, and who panics.
///
/// # Errors
/// What kept it from being made.
pub async fn run(options: Options) -> Result<Report, Box<dyn Error>> {
    let panics = count_panics();
    let ensemble = Ensemble::start(options.release).await?;
    let (files, tasks) = (open_files()?, alive_tasks());
    let begun = Instant::now();
    let sessions = options.tasks.div_ceil(session::TASKS);
    let mut report = Report::new("client");
    report.figure("tasks", sessions * session::TASKS);
    {
        let first = layout::prepare(&ensemble.connect_string(), 2 * sessions).await?;
        let shared = Arc::new(Shared::new(ensemble.connect_string(), options.pause, first));
        let mut running = JoinSet::new();
        for number in 0..sessions {
            running.spawn(session::run(shared.clone(), number, Role::of_session(number)));
        }
        let enough = (options.time, ROUND.len());
        match strike_members(&ensemble, &ROUND, options.every, enough, async |_| Ok(())).await {
            Ok(struck) => report.struck(&struck),
            Err(error) => report.violation(format!("the servers: {error}")),
        }
        shared.enter(Phase::Ending);
        let ended = timeout(FINISH_LIMIT, async {
            shared.all_accounts(2 * sessions).await;
            shared.enter(Phase::Quiet);
            while let Some(ended) = running.join_next().await {
                if let Err(panic) = ended {
                    shared.violation(panic.to_string());
                }
            }
        });
        if ended.await.is_err() {
            let stuck = running.len();
            report.violation(format!(
                "{stuck} sessions are not done {FINISH_LIMIT:?} after the last fault"
            ));
        }
        running.shutdown().await;
        report.figure("seconds", begun.elapsed().as_secs());
        shared.tell(&mut report);
        verdict::judge(&ensemble, &shared, &mut report).await;
    }
    report.figure("panics", panics.load(Ordering::Relaxed));
    report.expect(panics.load(Ordering::Relaxed) == 0, || "a task has panicked".to_owned());
    let left = what_is_left(files, tasks).await?;
    report.figure("tasks that are left", left.0);
    report.figure("open files that are left", left.1);
    report.expect(left == (0, 0), || format!("{left:?} tasks and open files are left"));
    Ok(report)
}

async fn connect(options: ConnectOptions) -> Result<Client, ConnectError> {
    options.session_timeout(SESSION_TIMEOUT).connect_deadline(None).connect().await
}

/// Counts panics wherever they are, from now on.
fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counter, told) = (panics.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        counter.fetch_add(1, Ordering::Relaxed);
        told(info);
    }));
    panics
}

fn open_files() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count())
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// How many tasks and files there are more than before, when all had time to go.
async fn what_is_left(files: usize, tasks: usize) -> io::Result<(usize, usize)> {
    let begun = Instant::now();
    let mut looks = interval(Duration::from_millis(10));
    loop {
        let left = (alive_tasks().saturating_sub(tasks), open_files()?.saturating_sub(files));
        if left == (0, 0) || begun.elapsed() > GONE_LIMIT {
            return Ok(left);
        }
        looks.tick().await;
    }
}
