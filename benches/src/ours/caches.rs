//! Following many nodes: beside as many gets, in memory, and from change to change.

use std::{future::IntoFuture as _, sync::Arc, time::Instant};

use futures_util::TryFutureExt as _;
use zk_client::{Cache, CacheEvent, Client, CreateMode};

use super::NAME;
use crate::{
    client::Failure,
    in_flight::ring,
    report::Report,
    seen,
    task::Task,
    window::{Tally, Until, Window, live_heap, status},
};

/// Gets that are under way at all times, to be compared with.
const GETTING: usize = 256;

/// Nodes that are created in one request, and such requests at the same time.
const CREATED: usize = 64;
const CREATING: usize = 16;

/// Nodes that are written while the cache follows, one after the other.
const CHANGED: usize = 1000;

/// Follows all nodes once they have been read by gets, and then writes some of them.
///
/// What is measured is from the start of the cache until it follows; a node is an operation.
pub(super) async fn caches(task: Task) -> Result<Report, Failure> {
    let tree = Tree::new(&task);
    let client = Client::connect(&task.server).await?;
    tree.create(&client, &vec![7; task.payload]).await?;
    // For the server's compiler, too.
    tree.get_all(&client).await?;
    let begun = Instant::now();
    tree.get_all(&client).await?;
    let gets = begun.elapsed();

    let (heap, resident) = (live_heap(), status("VmRSS:").unwrap_or_default());
    let window = Window::open(&task);
    let cache = Cache::subtree(&client, &tree.root).start()?;
    cache.ready().await?;
    let report = window.close(NAME, &task, Tally::of(tree.count));
    let heap = live_heap().saturating_sub(heap) / tree.count.max(1);
    let resident = status("VmRSS:").unwrap_or_default().saturating_sub(resident);
    if cache.nodes().len() != tree.count + 1 {
        return Err("the copy is not complete".into());
    }

    let writer = Client::connect(&task.server).await?;
    let seen = seen::requests(&task.server);
    let change = change(&tree, &cache, &writer, task.payload).await?;
    let asked = seen.zip(seen::requests(&task.server)).map(|(from, to)| {
        let asked = to.saturating_sub(from + 1);
        asked as f64 / change.operations.max(1) as f64
    });
    let counted = cfg!(feature = "count-allocations");
    let seconds = report.seconds;
    Ok(report
        .with("seconds_of_gets", gets.as_secs_f64())
        .with("times_gets", seconds / gets.as_secs_f64())
        .with("bytes_per_node", tree.len(task.payload) as f64 / tree.count.max(1) as f64)
        .with("resident_per_node", (resident << 10) as f64 / tree.count.max(1) as f64)
        .with("heap_per_node", counted.then_some(heap))
        .with("requests_per_change", asked)
        .with("us_per_change", median(change)))
}

/// Writes some nodes, each once the cache has told of the one before.
async fn change(
    tree: &Tree,
    cache: &Cache,
    writer: &Client,
    payload: usize,
) -> Result<Tally, Failure> {
    let mut events = cache.events();
    let changed = CHANGED.min(tree.count);
    let mut tally = Tally::precise(Until::Count(changed as u64));
    let data = vec![8; payload];
    for number in 0..changed {
        let path = tree.path(number * (tree.count / changed));
        let begun = Instant::now();
        let written = writer.set(&path, &data).submit();
        match events.next().await {
            Some(CacheEvent::Changed { new, .. }) if *new.path == *path => {}
            other => return Err(format!("{other:?} instead of a change of {path}").into()),
        }
        tally.ended(Some(begun));
        written.await?;
    }
    Ok(tally)
}

/// In microseconds.
fn median(mut tally: Tally) -> Option<f64> {
    tally.samples.sort_unstable();
    tally.samples.get(tally.samples.len() / 2).map(|&nanoseconds| nanoseconds as f64 / 1e3)
}

/// The nodes, numbered so that each comes behind its parent.
#[derive(Clone)]
struct Tree {
    root: Arc<str>,
    count: usize,
    /// Children of each node; `None` if all are the root's.
    children: Option<usize>,
}

impl Tree {
    fn new(task: &Task) -> Self {
        let (count, children) = (task.in_flight, task.children.map(|it| it.max(1)));
        let shape =
            children.map_or_else(|| "flat".to_owned(), |children| format!("tree-{children}"));
        Self { root: format!("/bench-{shape}-{}-{count}", task.payload).into(), count, children }
    }

    fn path(&self, number: usize) -> String {
        match self.children {
            None => format!("{}/node-{number:07}", self.root),
            Some(children) => {
                let above = number.checked_sub(children).map(|rest| rest / children);
                let above = above.map_or_else(|| self.root.to_string(), |above| self.path(above));
                format!("{above}/{:02}", number % children)
            }
        }
    }

    /// Bytes of paths, data and metadata.
    fn len(&self, payload: usize) -> usize {
        let fixed = payload + size_of::<zk_client::Stat>();
        (0..self.count).map(|number| self.path(number).len() + fixed).sum()
    }

    /// Unless they are there from the last time.
    async fn create(&self, client: &Client, data: &[u8]) -> Result<(), Failure> {
        if client.exists(&self.path(self.count.saturating_sub(1))).await?.is_some() {
            return Ok(());
        }
        client.create(&self.root, b"").or_exists().await?;
        let numbers: Vec<usize> = (0..self.count).collect();
        for some in numbers.chunks(CREATED * CREATING) {
            let mut creating = Vec::with_capacity(CREATING);
            for some in some.chunks(CREATED) {
                let paths: Vec<String> = some.iter().map(|&number| self.path(number)).collect();
                let multi = paths.iter().fold(client.multi(), |multi, path| {
                    multi.create(path, data, CreateMode::Persistent)
                });
                creating.push(multi.into_future());
            }
            for created in creating {
                created.await??;
            }
        }
        Ok(())
    }

    async fn get_all(&self, client: &Client) -> Result<(), Failure> {
        let (tree, client) = (self.clone(), client.clone());
        let get = move |number| {
            let path = tree.path(usize::try_from(number).unwrap_or_default());
            client.get(&path).into_future().map_ok(drop).err_into()
        };
        ring(GETTING, Tally::new(Until::Count(self.count as u64)), get).await.map(drop)
    }
}
