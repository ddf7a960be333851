//! The workloads, over any client.

use std::process::ExitCode;

use clap::Parser;

use crate::{
    client::{Client, Failure},
    in_flight::{Done, ring, tasks},
    locks,
    nodes::{listed, listed_children, node},
    report::{Report, print},
    seen,
    setup::{GREETING, connect_all, on_runtime, until, warm_up},
    steady::steady,
    task::{Style, Task, Workload},
    window::{Tally, Until, Window, live_heap, status},
};

/// Nodes that are created and deleted in turn; more than there are requests under way.
const NODES: u64 = 1024;

/// Writes in one request.
const MULTI: usize = 16;

/// Measures a client, on a runtime made for it.
///
/// # Errors
/// The client has failed, or has nothing for this workload.
pub fn measure<C: Client>(task: &Task) -> Result<Report, Failure> {
    if let Some((_, why)) = C::LACKS.iter().find(|(workload, _)| *workload == task.workload) {
        return Err(format!("not with {}: {why}", C::NAME).into());
    }
    if task.tls.is_some() && !C::HAS_TLS {
        return Err(format!("not with {}: its program does not talk TLS", C::NAME).into());
    }
    let own = task.clone();
    on_runtime(task, async move {
        let task = &own;
        match task.workload {
            Workload::Connect => connect::<C>(task).await,
            Workload::Steady => steady::<C>(task).await,
            Workload::Idle => idle::<C>(task).await,
            Workload::Lock => locks::lock::<C>(task).await,
            Workload::HandOff => locks::hand_off::<C>(task).await,
            Workload::ManyLocks => locks::many_locks::<C>(task).await,
            alone if alone.is_ours_alone() => Err("only with our own client".into()),
            _ => requests::<C>(task).await,
        }
    })
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

/// What lives as long as the program: tasks may then borrow it, and nothing is counted for keeping it.
fn for_good<T: ?Sized>(it: Box<T>) -> &'static T {
    Box::leak(it)
}

async fn requests<C: Client>(task: &Task) -> Result<Report, Failure> {
    let client = for_good(Box::new(C::connect(task).await?));
    let path = for_good(node(task).into_boxed_str());
    let data = for_good(vec![7; task.payload].into_boxed_slice());
    // It may be there from the last time.
    let _ = client.create(path, data).await;
    let report = match task.workload {
        Workload::Get => repeat::<C, _, _>(task, move |_| client.get(path)).await?,
        Workload::List => {
            let path = for_good(listed(task).into_boxed_str());
            make_listed(task, client).await?;
            repeat::<C, _, _>(task, move |_| client.list(path)).await?
        }
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

/// The node that is listed, with its children, unless they are there from the last time.
async fn make_listed<C: Client>(task: &Task, client: &'static C) -> Result<(), Failure> {
    let children = for_good(listed_children(task).collect::<Box<[_]>>());
    if let Some(last) = children.last() {
        if client.get(last).await.is_ok() {
            return Ok(());
        }
    }
    let _ = client.create(&listed(task), b"").await;
    // Some may be there, if the last time was interrupted.
    let create = |number| {
        let created = client.create(&children[number as usize], b"");
        async move {
            let _ = created.await;
            Ok(())
        }
    };
    ring(GREETING, Tally::new(Until::Count(children.len() as u64)), create).await.map(drop)
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
            Style::Tasks => tasks(task.in_flight, Tally::new, until, op).await,
        }
    };
    run(warm_up(task), op.clone()).await?;
    let window = Window::open(task);
    let tally = run(until(task), op).await?;
    Ok(window.close(C::NAME, task, tally))
}

async fn connect<C: Client>(task: &Task) -> Result<Report, Failure> {
    let path = node(task);
    let client = C::connect(task).await?;
    let _ = client.create(&path, &vec![7; task.payload]).await;
    client.close().await;
    let path = &path;
    let run = |until| async move {
        let (mut tally, mut greeted) = (Tally::precise(until), Tally::precise(until));
        while let Some(begun) = tally.next() {
            let client = C::connect(task).await?;
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
    let first = C::connect(task).await?;
    let (heap, resident) = (live_heap(), status("VmRSS:").unwrap_or_default());
    let sessions = connect_all::<C>(task).await?;
    seen::forget(&task.server);
    let window = Window::open(task);
    tokio::time::sleep(task.seconds).await;
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
