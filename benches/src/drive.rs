//! The workloads, over any client.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::Parser;
use tokio::{runtime, task::JoinSet};

use crate::{
    client::{Client, Failure},
    in_flight::{Done, ring, tasks},
    report::{Report, print},
    seen,
    task::{Style, Task, Workload},
    window::{Tally, Until, Window, live_heap, status},
};

/// Nodes that are created and deleted in turn; more than there are requests under way.
const NODES: u64 = 1024;

/// Writes in one request.
const MULTI: usize = 16;

/// Sessions that are begun at the same time.
const GREETING: usize = 64;

/// Measures a client, on a runtime made for it.
///
/// # Errors
/// The client has failed, or has nothing for this workload.
pub fn measure<C: Client>(task: &Task) -> Result<Report, Failure> {
    if let Some((_, why)) = C::LACKS.iter().find(|(workload, _)| *workload == task.workload) {
        return Err(format!("not with {}: {why}", C::NAME).into());
    }
    let own = task.clone();
    on_runtime(task, async move {
        let task = &own;
        match task.workload {
            Workload::Connect => connect::<C>(task).await,
            Workload::Idle => idle::<C>(task).await,
            Workload::Lock => lock::<C>(task).await,
            Workload::HandOff => hand_off::<C>(task).await,
            alone if alone.is_ours_alone() => Err("only with our own client".into()),
            _ => requests::<C>(task).await,
        }
    })
}

/// Runs on a runtime, in a task: what a runtime of one thread blocks on costs a look at its sockets each time it is
/// woken, which services, whose work is done in tasks, do not pay.
pub(crate) fn on_runtime<F>(task: &Task, measured: F) -> Result<Report, Failure>
where
    F: Future<Output = Result<Report, Failure>> + Send + 'static,
{
    runtime(task)?.block_on(async { tokio::spawn(measured).await? })
}

/// The whole program of a client: reads the command line, measures, prints a line of JSON.
pub fn program<C: Client>() -> ExitCode {
    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        task: Task,
    }
    end(measure::<C>(&Arguments::parse().task).map(|report| print(&report)))
}

/// What a program ends with.
pub fn end(done: Result<(), Failure>) -> ExitCode {
    done.map_or_else(
        |failure| {
            eprintln!("{failure}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// The runtime that a task asks for.
pub(crate) fn runtime(task: &Task) -> Result<runtime::Runtime, Failure> {
    Ok(match task.threads {
        0 | 1 => runtime::Builder::new_current_thread().enable_all().build()?,
        threads => {
            runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?
        }
    })
}

/// Until when to warm up.
pub(crate) fn warm_up(task: &Task) -> Until {
    match task.operations {
        Some(_) => Until::Count(0),
        None => Until::Time(Instant::now() + Duration::from_secs_f64(task.warm_up)),
    }
}

/// Until when to measure.
pub(crate) fn until(task: &Task) -> Until {
    match task.operations {
        Some(count) => Until::Count(count),
        None => Until::Time(Instant::now() + Duration::from_secs_f64(task.seconds)),
    }
}

/// The node that is read and written. The instant server takes the length of its data from its name.
pub(crate) fn node(task: &Task) -> String {
    format!("/bench-{}", task.payload)
}

/// What lives as long as the program: tasks may then borrow it, and nothing is counted for keeping it.
fn for_good<T: ?Sized>(it: Box<T>) -> &'static T {
    Box::leak(it)
}

async fn requests<C: Client>(task: &Task) -> Result<Report, Failure> {
    let client = for_good(Box::new(C::connect(&task.server).await?));
    let path = for_good(node(task).into_boxed_str());
    let data = for_good(vec![7; task.payload].into_boxed_slice());
    // It may be there from the last time.
    let _ = client.create(path, data).await;
    let report = match task.workload {
        Workload::Get => repeat::<C, _, _>(task, move |_| client.get(path)).await?,
        Workload::Set => repeat::<C, _, _>(task, move |_| client.set(path, data)).await?,
        Workload::Mixed => {
            let op = move |number| {
                let writes = number % 10 == 0;
                let (get, set) = match writes {
                    true => (None, Some(client.set(path, data))),
                    false => (Some(client.get(path)), None),
                };
                async move {
                    match (get, set) {
                        (Some(get), _) => get.await,
                        (_, Some(set)) => set.await,
                        (None, None) => Ok(()),
                    }
                }
            };
            repeat::<C, _, _>(task, op).await?
        }
        Workload::CreateDelete => create_delete(task, client, data).await?,
        _ => multi(task, client, data).await?,
    };
    client.clone().close().await;
    Ok(report)
}

async fn create_delete<C: Client>(
    task: &Task,
    client: &'static C,
    data: &'static [u8],
) -> Result<Report, Failure> {
    let own = std::process::id();
    let paths: Box<[String]> = (0..NODES).map(|n| format!("/bench-{own}-{n}")).collect();
    let paths = for_good(paths);
    let op = move |number: u64| {
        let path = &paths[(number % NODES) as usize];
        let create = client.create(path, data);
        async move {
            create.await?;
            client.delete(path).await
        }
    };
    repeat::<C, _, _>(task, op).await
}

async fn multi<C: Client>(
    task: &Task,
    client: &'static C,
    data: &'static [u8],
) -> Result<Report, Failure> {
    let paths: Box<[String]> = (0..MULTI).map(|n| format!("/bench-multi-{n}")).collect();
    let paths = for_good(paths);
    for path in paths {
        let _ = client.create(path, b"").await;
    }
    repeat::<C, _, _>(task, move |_| client.set_all(paths, data)).await
}

/// Does one thing again and again, in the style that the task asks for.
async fn repeat<C, F, Fut>(task: &Task, op: F) -> Result<Report, Failure>
where
    C: Client,
    F: Fn(u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Done> + Send + 'static,
{
    let run = |until, op: F| async move {
        match task.style {
            Style::Ring => ring(task.in_flight, Tally::new(until), op).await,
            Style::Tasks => tasks(task.in_flight, until, op).await,
        }
    };
    run(warm_up(task), op.clone()).await?;
    let window = Window::open(task);
    let tally = run(until(task), op).await?;
    Ok(window.close(C::NAME, task, tally))
}

async fn connect<C: Client>(task: &Task) -> Result<Report, Failure> {
    let path = node(task);
    let client = C::connect(&task.server).await?;
    let _ = client.create(&path, &vec![7; task.payload]).await;
    client.close().await;
    let path = &path;
    let run = |until| async move {
        let (mut tally, mut greeted) = (Tally::precise(until), Tally::precise(until));
        while let Some(begun) = tally.next() {
            let client = C::connect(&task.server).await?;
            greeted.ended(begun);
            client.get(path).await?;
            tally.ended(begun);
            client.close().await;
        }
        Ok::<_, Failure>((tally, greeted))
    };
    run(warm_up(task)).await?;
    let window = Window::open(task);
    let (tally, mut greeted) = run(until(task)).await?;
    greeted.samples.sort_unstable();
    let middle = greeted.samples.get(greeted.samples.len() / 2);
    let greeted = middle.map(|&nanoseconds| nanoseconds as f64 / 1e3);
    Ok(window.close(C::NAME, task, tally).with("connected_p50_us", greeted))
}

async fn idle<C: Client>(task: &Task) -> Result<Report, Failure> {
    // The first one pays for what they share.
    let first = C::connect(&task.server).await?;
    let (heap, resident) = (live_heap(), status("VmRSS:").unwrap_or_default());
    let mut sessions = Vec::with_capacity(task.in_flight);
    while sessions.len() < task.in_flight {
        let mut set = JoinSet::new();
        for _ in 0..GREETING.min(task.in_flight - sessions.len()) {
            let server = task.server.clone();
            set.spawn(async move { C::connect(&server).await });
        }
        while let Some(joined) = set.join_next().await {
            sessions.push(joined??);
        }
    }
    seen::forget(&task.server);
    let window = Window::open(task);
    tokio::time::sleep(Duration::from_secs_f64(task.seconds)).await;
    let count = sessions.len();
    let heap = live_heap().saturating_sub(heap) / count.max(1);
    let resident_now = status("VmRSS:").unwrap_or_default();
    let report = window
        .close(C::NAME, task, Tally::of(count))
        .with("heap_per_session", cfg!(feature = "count-allocations").then_some(heap))
        .with("resident_kib_grown", resident_now.saturating_sub(resident))
        .with("longest_silence_ms", seen::longest_silence(&task.server));
    drop((first, sessions));
    Ok(report)
}

async fn lock<C: Client>(task: &Task) -> Result<Report, Failure> {
    let own = C::connect(&task.server).await?;
    let client = &own;
    let run = |until| async move {
        let mut tally = Tally::precise(until);
        while let Some(begun) = tally.next() {
            let held = client.acquire(LOCK).await?;
            client.release(held, task.unawaited).await?;
            tally.ended(begun);
        }
        Ok::<_, Failure>(tally)
    };
    run(warm_up(task)).await?;
    let window = Window::open(task);
    let tally = run(until(task)).await?;
    let report = window.close(C::NAME, task, tally);
    own.close().await;
    Ok(report)
}

/// What is locked.
pub(crate) const LOCK: &str = "/bench-lock";

async fn hand_off<C: Client>(task: &Task) -> Result<Report, Failure> {
    let mut clients = Vec::new();
    for _ in 0..task.in_flight {
        clients.push(C::connect(&task.server).await?);
    }
    contend(task, &clients, warm_up(task)).await?;
    let window = Window::open(task);
    let tally = contend(task, &clients, until(task)).await?;
    let report = window.close(C::NAME, task, tally);
    for client in clients {
        client.close().await;
    }
    Ok(report)
}

/// All contend until they have had enough. What is timed is from the beginning of a release to the next grant.
async fn contend<C: Client>(task: &Task, clients: &[C], until: Until) -> Result<Tally, Failure> {
    let tally = Arc::new(Mutex::new((Tally::precise(until), None::<Instant>)));
    let unawaited = task.unawaited;
    let mut set = JoinSet::new();
    for client in clients {
        let (client, tally) = (client.clone(), tally.clone());
        set.spawn(async move {
            let mut goes_on = true;
            while goes_on {
                let held = client.acquire(LOCK).await?;
                {
                    let mut it = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    goes_on = it.0.next().is_some();
                    let released = it.1.take();
                    if goes_on {
                        it.0.ended(released);
                    }
                    it.1 = Some(Instant::now());
                }
                client.release(held, unawaited).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(joined) = set.join_next().await {
        joined??;
    }
    let tally = Arc::into_inner(tally).ok_or("a contender is still there")?;
    Ok(tally.into_inner().unwrap_or_else(PoisonError::into_inner).0)
}
