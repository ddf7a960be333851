//! Watches of all kinds on nodes that come and go, many at once and with long names, and for every other
//! client through a root of its own.

use zk_client::{Client, CreateMode, Rejection, WatchKind, WriteError, Zxid};

use super::{Over, Worker, stream::Streamed, unless_over, watcher::Watcher};
use crate::sim::check::Kind;

/// Where the nodes are. A root has the name of what is below it, so that removing it twice is
/// found out.
const ROOT: &str = "/watched";

/// How many nodes there are.
const NODES: usize = 24;

/// How many streams a client has at most.
const STREAMS_MAX: usize = 3;

struct Watches {
    watcher: Watcher,
    client: Client,
    /// What stands in front of the nodes' names for this client.
    prefix: &'static str,
}

pub(super) async fn work(worker: Worker) {
    let client = worker.client.clone();
    // The nodes are below the root's namesake.
    let mut watches = match worker.ctx.number % 2 {
        0 => Watches {
            client: client.chrooted(ROOT).expect("it is a path"),
            watcher: Watcher::new(worker, ROOT),
            prefix: ROOT,
        },
        _ => Watches { client, watcher: Watcher::new(worker, ""), prefix: "/watched/watched" },
    };
    loop {
        let pause = watches.watcher.rng.scaled(5, 5_000);
        if !watches.watcher.think(pause).await || watches.step().await.is_err() {
            break;
        }
    }
    if watches.client.resolve_in_doubt().await.is_ok() {
        for node in 0..NODES {
            if watches.look(node).await.is_err() {
                break;
            }
        }
    }
    watches.watcher.finish().await;
}

impl Watches {
    fn path(&self, node: usize) -> String {
        format!("{}/n{node}-{}", self.prefix, "x".repeat(80))
    }

    async fn step(&mut self) -> Result<(), Over> {
        let node = self.watcher.rng.index(NODES);
        let ctx = &self.watcher.ctx;
        let changes = if ctx.options.only_reads(ctx.number) { 6 } else { 0 };
        match changes + self.watcher.rng.below(15 - changes) {
            13 => self.stream(node).await,
            14 => self.stop_streams(node),
            0 => self.come(node).await,
            1 => self.go(node).await,
            2 => self.write(node).await,
            3 => self.child(node).await,
            4 => self.together(node).await,
            5 => self.replace(node).await,
            6 | 7 => self.look(node).await,
            8 => self.arm_children(node).await,
            9 => self.arm_data(node).await,
            _ => self.arm_exists(node).await,
        }
    }

    async fn come(&self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        let created = self.client.create(&path, b"").await;
        if let Err(WriteError::Rejected(Rejection::NoNode)) = created {
            for above in [ROOT, "/watched/watched"] {
                unless_over(self.watcher.client.create(above, b"").await)?;
            }
        }
        unless_over(created).map(drop)
    }

    async fn go(&self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        unless_over(self.client.delete(&format!("{path}/child")).await)?;
        unless_over(self.client.delete(&path).await).map(drop)
    }

    async fn write(&self, node: usize) -> Result<(), Over> {
        unless_over(self.client.set(&self.path(node), b"written").await).map(drop)
    }

    async fn child(&self, node: usize) -> Result<(), Over> {
        let path = format!("{}/child", self.path(node));
        let created = self.client.create(&path, b"").mode(CreateMode::Persistent).await;
        if unless_over(created)?.is_none() {
            unless_over(self.client.delete(&path).await)?;
        }
        Ok(())
    }

    /// Another node of the same name, with a child of the same name, in one transaction.
    async fn replace(&self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        let child = format!("{path}/child");
        for has_child in [true, false] {
            let multi = self.client.multi();
            let multi = if has_child { multi.delete(&child) } else { multi };
            let multi = multi.delete(&path).create(&path, b"new", CreateMode::Persistent);
            let multi = multi.create(&child, b"new", CreateMode::Persistent);
            if !matches!(unless_over(multi.await)?, Some(Err(_))) {
                break;
            }
        }
        Ok(())
    }

    /// Several changes in one transaction.
    async fn together(&self, node: usize) -> Result<(), Over> {
        let paths: Vec<String> = (node..node + 4).map(|node| self.path(node % NODES)).collect();
        let multi = paths.iter().fold(self.client.multi(), |multi, path| multi.set(path, b"all"));
        unless_over(multi.await).map(drop)
    }

    async fn arm_exists(&mut self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        if let Some((stat, watch)) = unless_over(self.client.exists(&path).watch().await)? {
            self.watcher.saw(&path, stat.as_ref());
            match stat {
                Some(stat) => self.watcher.arm(path, Kind::Data, stat.mzxid, watch),
                None => self.watcher.arm(path, Kind::Missing, Zxid(0), watch),
            }
        }
        Ok(())
    }

    async fn arm_data(&mut self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        if let Some(((_, stat), watch)) = unless_over(self.client.get(&path).watch().await)? {
            self.watcher.saw(&path, Some(&stat));
            self.watcher.arm(path, Kind::Data, stat.mzxid, watch);
        }
        Ok(())
    }

    async fn arm_children(&mut self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        if let Some(((_, stat), watch)) = unless_over(self.client.children(&path).watch().await)? {
            self.watcher.saw(&path, Some(&stat));
            self.watcher.arm(path, Kind::Children, stat.pzxid, watch);
        }
        Ok(())
    }

    /// Follows one node, or all, by a stream.
    async fn stream(&mut self, node: usize) -> Result<(), Over> {
        if self.watcher.streams() >= STREAMS_MAX {
            self.watcher.leave_one();
        }
        let recursive = self.watcher.rng.one_in(2);
        let path = if recursive { self.prefix.to_owned() } else { self.path(node) };
        let mut watch = self.client.watch(&path);
        if recursive {
            watch = watch.recursive();
        }
        if self.watcher.rng.one_in(3) {
            watch = watch.capacity(self.watcher.rng.scaled(1, 8) as usize);
        }
        if let Some(stream) = unless_over(watch.await)? {
            let streamed = Streamed::new(&mut self.watcher, stream, recursive);
            self.watcher.follow(streamed);
        }
        Ok(())
    }

    /// Gives one of them up, or all with the same path.
    fn stop_streams(&mut self, node: usize) -> Result<(), Over> {
        match self.watcher.rng.below(6) {
            0 => drop(self.client.remove_watches(self.prefix, WatchKind::Recursive)),
            1 => drop(self.client.remove_watches(&self.path(node), WatchKind::Node)),
            _ => self.watcher.leave_one(),
        }
        Ok(())
    }

    async fn look(&mut self, node: usize) -> Result<(), Over> {
        let path = self.path(node);
        if let Some(stat) = unless_over(self.client.exists(&path).await)? {
            self.watcher.saw(&path, stat.as_ref());
        }
        Ok(())
    }
}
