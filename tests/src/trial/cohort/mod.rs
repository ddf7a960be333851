//! Cohorts in processes of their own: what passing the lock on costs, and how long others wait.
//!
//! Each process has a cohort of many tasks, which take one lock again and again, behind a proxy that counts its
//! requests. What the lock protects checks tokens and overlaps, and writes down who came when. At first one process
//! is alone; then all contend, from the moment in which all have a place in the queue.
//!
//! | module | concern |
//! |---|---|
//! | `member` | a process with a cohort in it |
//! | `hall` | what the lock protects, and the record of its visitors |
//! | `turns` | what that says of turns and waits |

mod hall;
pub mod member;
mod turns;

use std::{env, error::Error, ops::RangeInclusive, path::PathBuf, process::Stdio, time::Duration};

use clap::Args;
use tokio::{
    process::{Child, Command},
    time::timeout,
};
use zk_client::OpCode;
use zk_locks::{Client, CohortLock};
use zk_testkit::{
    proxy::Proxy,
    real::{Release, Server},
};

use self::{
    hall::{Hall, Visit},
    turns::Asked,
};
use super::{
    Report, at_least, in_millis,
    report::{millis, tenths},
};

/// Longer than a busy machine may keep a process from running.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Without an end by then, a wake-up is lost.
const PATIENCE: Duration = Duration::from_secs(600);

/// How many have the lock one after the other while another process waits.
const MOST: u32 = 64;

/// For how long.
const TIME: Duration = Duration::from_millis(50);

/// Requests of a turn that is waited for: create, list, two reads with watches, list again, delete; and of one in
/// which no waiter is known, two listings more.
const TURN_REQUESTS_MAX: usize = 8;

/// Requests of a lone contender: create, list, list with a watch for others who come, delete; and a read with a watch on
/// its own node, once it has held it for a second.
const ALONE_REQUESTS: RangeInclusive<usize> = 4..=5;

/// What a trial is to be like.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How many processes contend.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least(2))]
    pub processes: usize,
    /// How many tasks each has.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least(1))]
    pub tasks: usize,
    /// How often the lock is taken, by all together.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub visits: usize,
    /// For how long each holds the lock, in milliseconds; 0 for not at all.
    #[arg(long, value_name = "MS", default_value = "1", value_parser = in_millis)]
    pub hold: Duration,
    /// Whether waits are judged by the clock too: tests have no machine of their own.
    #[arg(skip = true)]
    pub judge_times: bool,
    /// The program that is a process with a cohort when its argument is `member`.
    #[arg(skip = env::current_exe().unwrap_or_default())]
    pub program: PathBuf,
    /// The server.
    #[arg(skip = Release::V3_9)]
    pub release: Release,
}

/// Runs the trial.
///
/// # Errors
/// What kept it from being made.
pub async fn run(options: &Options) -> Result<Report, Box<dyn Error>> {
    let server = Server::start(options.release).await?;
    let outsider = Client::connect(&server.connect_string()).await?;
    let mut report = Report::new("cohort");
    report.figure("tasks of each process", options.tasks);
    report.figure("each is in for, ms", millis(options.hold));
    report.figure("in a turn while others wait, at most", MOST);
    report.figure("a turn lasts while others wait, at most, ms", millis(TIME));
    for processes in [1, options.processes] {
        let contest = Contest::of(&server, &outsider, options, processes).await?;
        match processes {
            1 => contest.tell_of_one(&mut report),
            _ => contest.tell_of_many(&mut report, options.judge_times),
        }
    }
    outsider.close().await?;
    Ok(report)
}

/// What has happened with so many processes.
struct Contest {
    book: Vec<Visit>,
    /// By process.
    asked: Vec<Asked>,
    /// How many things have happened that should not, and the first of them.
    violations: (usize, Vec<String>),
}

impl Contest {
    async fn of(
        server: &Server,
        outsider: &Client,
        options: &Options,
        processes: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let path = format!("/cohort/of-{processes}");
        // The path exists from here on.
        CohortLock::new(outsider, &path).acquire().await?.release().await?;
        let hall = Hall::build(options.visits).await?;
        let (mut proxies, mut members) = (Vec::new(), Vec::new());
        for number in 0..processes {
            let proxy = Proxy::start(server.addr()).await?;
            members.push(start(options, &proxy, &path, &hall, number)?);
            proxies.push(proxy);
        }
        let contest = async {
            hall.asked_for_by(processes * options.tasks).await;
            in_queue(outsider, &path, processes).await?;
            hall.open();
            for member in &mut members {
                let status = member.wait().await?;
                if !status.success() {
                    return Err(format!("a process has ended with {status}").into());
                }
            }
            Ok::<_, Box<dyn Error>>(())
        };
        timeout(PATIENCE, contest).await??;
        let asked = proxies.iter().map(|proxy| Asked::in_frames(&proxy.frames())).collect();
        let (book, violations) = hall.close();
        Ok(Self { book, asked, violations })
    }

    fn requests(&self) -> usize {
        self.asked.iter().map(Asked::requests).sum()
    }

    fn judge(&self, report: &mut Report) {
        let (count, shown) = &self.violations;
        report.expect(*count == 0, || format!("{count} times in the hall, such as {shown:?}"));
    }

    fn tell_of_one(&self, report: &mut Report) {
        let turns = turns::turns(&self.book).len();
        let handoffs = self.book.len() - turns;
        report.figure("1 process: hand-offs between its tasks", handoffs);
        report.figure("1 process: requests", self.requests());
        let is_free = turns == 1 && ALONE_REQUESTS.contains(&self.requests());
        report.expect(is_free, || format!("{turns} turns of one that was alone, or requests"));
        self.judge(report);
    }

    fn tell_of_many(&self, report: &mut Report, judge_times: bool) {
        let others = self.asked.len() - 1;
        let name = |what: &str| format!("{} processes: {what}", others + 1);
        let turns = turns::turns(&self.book);
        let (handoffs, requests) = (self.book.len() - turns.len(), self.requests());
        report.figure(name("turns"), turns.len());
        report.figure(name("hand-offs between tasks of one process"), handoffs);
        report.figure(name("requests"), requests);
        report.figure(name("requests for each turn"), ratio(requests, turns.len()));
        report.expect(requests <= TURN_REQUESTS_MAX * turns.len(), || {
            format!("more than {TURN_REQUESTS_MAX} requests for each turn")
        });
        let meanwhile: Vec<_> = turns::asked_meanwhile(&turns, &self.asked).collect();
        let listings = meanwhile.iter().map(Vec::len).sum::<usize>();
        report.figure(name("of them: while the lock was passed on in a turn"), listings);
        let are_listings = meanwhile
            .iter()
            .all(|ops| ops.len() <= 2 && ops.iter().all(|op| *op == OpCode::GET_CHILDREN2));
        report.expect(are_listings, || format!("not two listings at most: {meanwhile:?}"));

        let waits = turns::waits(&self.book, &turns, &self.asked);
        let most = |count: fn(&turns::Wait) -> usize| waits.iter().map(count).max().unwrap_or(0);
        let (visits, ahead) = (most(|wait| wait.visits), most(|wait| wait.turns));
        let visits_max = others * MOST as usize;
        report.figure(name("longest turn, in visits"), longest_turn(&turns));
        report.figure(name("turns waited for, at most"), ahead);
        report.figure(name("visits waited for, at most"), visits);
        report.figure(name("visits waited for: bound"), visits_max);
        report.expect(ahead <= others, || format!("{ahead} turns were waited for"));
        report.expect(visits <= visits_max, || format!("{visits} visits were waited for"));
        report.expect(!waits.is_empty(), || "no contender waited".to_owned());

        let (visit, change) = (turns::longest_visit(&turns), turns::longest_change(&turns));
        let (longest, bound) = (
            turns::longest(waits.iter().map(|wait| wait.time)),
            (TIME + visit + change) * u32::try_from(others).unwrap_or(u32::MAX) + change,
        );
        report.figure(name("longest visit, ms"), millis(visit));
        report.figure(name("longest time between turns, ms"), millis(change));
        report.spread(&name("wait for a turn"), waits.iter().map(|wait| wait.time).collect());
        report.figure(name("wait for a turn, bound, ms"), millis(bound));
        report.expect(!judge_times || longest <= bound, || format!("a wait of {longest:?}"));
        self.judge(report);
    }
}

fn longest_turn(turns: &[turns::Turn]) -> usize {
    turns.iter().map(|turn| turn.visits).max().unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "nobody takes a lock 2^53 times")]
fn ratio(part: usize, whole: usize) -> f64 {
    tenths(part as f64 / whole.max(1) as f64)
}

/// Waits until so many have a place in the queue.
async fn in_queue(zk: &Client, path: &str, count: usize) -> Result<(), Box<dyn Error>> {
    loop {
        let ((names, _), changed) = zk.children(path).watch().await?;
        if names.len() == count {
            return Ok(());
        }
        changed.await.map_err(|end| end.to_string())?;
    }
}

/// Starts a process, which goes with what comes back.
fn start(
    options: &Options,
    proxy: &Proxy,
    path: &str,
    hall: &Hall,
    number: usize,
) -> std::io::Result<Child> {
    let mut command = Command::new(&options.program);
    command.args(["member", "--servers", &proxy.connect_string(), "--path", path]);
    command.args(["--hall", &hall.addr().to_string(), "--number", &number.to_string()]);
    command.args(["--tasks", &options.tasks.to_string()]);
    command.args(["--hold", &options.hold.as_millis().to_string()]);
    command.stdin(Stdio::null()).kill_on_drop(true).spawn()
}
