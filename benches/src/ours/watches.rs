//! Hearing of many changes; a connection lost with many watches.

use std::{future::IntoFuture as _, time::Instant};

use zk_client::{Client, ConnectOptions, SessionState, Watch, WatchStream};

use super::{NAME, breakable::Breakable};
use crate::{
    client::Failure,
    report::Report,
    task::Task,
    window::{Tally, Until, Window, live_heap, status},
};

/// Watches that are asked for at the same time.
const ASKING: usize = 1024;

/// Another client writes every watched node; each event is waited for.
pub(super) async fn fan_out(task: Task) -> Result<Report, Failure> {
    let client = Client::connect(&task.server).await?;
    let paths = nodes(&client, task.in_flight).await?;
    let watches = watch_once(&client, &paths).await?;
    let writer = Client::connect(&task.server).await?;
    let window = Window::open(&task);
    let begun = Instant::now();
    // Here, so that the writer's share of the processor is that of a client of its own.
    let writes = tokio::spawn(async move {
        for some in paths.chunks(ASKING) {
            let sets: Vec<_> = some.iter().map(|path| writer.set(path, b"new").submit()).collect();
            for set in sets {
                set.await?;
            }
        }
        // Its end would be a request too.
        Ok::<_, zk_client::WriteError>(writer)
    });
    let mut tally = Tally::precise(Until::Count(task.in_flight as u64));
    for watch in watches {
        watch.await?;
        tally.operations += 1;
        tally.took(begun.elapsed());
    }
    let writer = writes.await??;
    let report = window.close(NAME, &task, tally);
    drop(writer);
    Ok(report)
}

/// All watches are armed again before the answer to a read that was asked for meanwhile.
pub(super) async fn reconnect(task: Task) -> Result<Report, Failure> {
    let connector = Breakable::default();
    let options = ConnectOptions::new(&task.server)?.connector(connector.clone());
    let client = options.connect().await?;
    let (heap, resident) = (live_heap(), status("VmRSS:").unwrap_or_default());
    let paths = nodes(&client, task.in_flight).await?;
    let once = watch_once(&client, &paths).await?;
    let kept = watch_for_good(&client, &paths[..paths.len().div_ceil(100)]).await?;
    let heap = live_heap().saturating_sub(heap);
    let grown = status("VmRSS:").unwrap_or_default().saturating_sub(resident);
    let before = status("VmHWM:").unwrap_or_default();

    let window = Window::open(&task);
    let mut session = client.session();
    connector.cut()?;
    while matches!(session.state(), SessionState::Connected { .. }) {
        session.changed().await;
    }
    // Answered behind the answers to all that arms watches.
    client.get(&paths[0]).await?;
    let tally = Tally::of(once.len() + kept.len());
    let peak = status("VmHWM:").unwrap_or_default().saturating_sub(before);
    let counted = cfg!(feature = "count-allocations");
    let per_watch = counted.then_some(heap / tally.operations.max(1) as usize);
    Ok(window
        .close(NAME, &task, tally)
        .with("heap_per_watch", per_watch)
        .with("resident_kib_grown", grown)
        .with("peak_kib_grown_meanwhile", peak))
}

/// Nodes to be watched.
async fn nodes(client: &Client, count: usize) -> Result<Vec<String>, Failure> {
    let paths: Vec<String> =
        (0..count).map(|number| format!("/bench-watched-{number}-0")).collect();
    for some in paths.chunks(ASKING) {
        let made: Vec<_> =
            some.iter().map(|path| client.create(path, b"").or_exists().into_future()).collect();
        for made in made {
            made.await?;
        }
    }
    Ok(paths)
}

async fn watch_once(client: &Client, paths: &[String]) -> Result<Vec<Watch>, Failure> {
    let mut watches = Vec::with_capacity(paths.len());
    for some in paths.chunks(ASKING) {
        let asked: Vec<_> =
            some.iter().map(|path| client.get(path).watch().into_future()).collect();
        for asked in asked {
            watches.push(asked.await?.1);
        }
    }
    Ok(watches)
}

async fn watch_for_good(client: &Client, paths: &[String]) -> Result<Vec<WatchStream>, Failure> {
    let mut streams = Vec::with_capacity(paths.len());
    for path in paths {
        streams.push(client.watch(path).await?);
    }
    Ok(streams)
}
