//! Four processes of sixty-four tasks each, all of which want one lock: how many sections a second, how many
//! of them without a request, and how long a process waits for its turn at most.
//!
//! `cargo run --release --example cohort -- 127.0.0.1:2181`

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use zk_locks::{Client, CohortLock, Lock};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PROCESSES: usize = 4;
const TASKS: usize = 64;
const TIME: Duration = Duration::from_secs(3);

fn main() -> Outcome<()> {
    let servers = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    match env::args().nth(2) {
        None => processes(&servers),
        Some(kind) => {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(tasks(&servers, kind == "cohort"))
        }
    }
}

/// Runs this program again, as often as there are to be processes.
fn processes(servers: &str) -> Outcome<()> {
    for kind in ["cohort", "a node for each task"] {
        println!("{kind}:");
        let start = || {
            let mut child = Command::new(env::current_exe()?);
            child.args([servers, kind]).stdout(Stdio::piped()).spawn()
        };
        let children = (0..PROCESSES).map(|_| start()).collect::<Result<Vec<_>, _>>()?;
        for child in children {
            print!("  {}", String::from_utf8_lossy(&child.wait_with_output()?.stdout));
        }
    }
    Ok(())
}

/// What has happened under each node: when it began to be held, and for how many sections.
type Turns = Arc<Mutex<BTreeMap<i64, (Instant, u32)>>>;

/// The work of one process.
async fn tasks(servers: &str, as_cohort: bool) -> Outcome<()> {
    let zk = Client::connect(servers).await?;
    let (cohort, lock) = (CohortLock::new(&zk, "/cohort"), Lock::new(&zk, "/cohort"));
    let turns = Turns::default();
    let until = Instant::now() + TIME;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let (cohort, lock, turns) = (cohort.clone(), lock.clone(), turns.clone());
        tasks.push(tokio::spawn(async move {
            let mut longest = Duration::ZERO;
            while Instant::now() < until {
                let asked = Instant::now();
                let section = |token: zk_locks::FencingToken| {
                    let mut turns = turns.lock().map_err(|error| error.to_string())?;
                    turns.entry(token.get()).or_insert_with(|| (Instant::now(), 0)).1 += 1;
                    Ok::<_, String>(asked.elapsed())
                };
                longest = longest.max(if as_cohort {
                    section(cohort.acquire().await?.token())?
                } else {
                    section(lock.acquire().await?.token())?
                });
            }
            Outcome::Ok(longest)
        }));
    }
    let mut longest = Duration::ZERO;
    for task in tasks {
        longest = longest.max(task.await??);
    }
    report(&turns, longest)?;
    zk.close().await?;
    Ok(())
}

fn report(turns: &Turns, longest: Duration) -> Outcome<()> {
    let turns = turns.lock().map_err(|error| error.to_string())?;
    let sections: u32 = turns.values().map(|(_, sections)| sections).sum();
    let most = turns.values().map(|(_, sections)| *sections).max().unwrap_or_default();
    let begun: Vec<_> = turns.values().map(|(begun, _)| *begun).collect();
    let apart = begun.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    println!(
        "{sections} sections in {} turns, {most} at most in one; turns at most {apart:.1?} apart; \
         a task waited for {longest:.1?} at most",
        turns.len(),
    );
    Ok(())
}
