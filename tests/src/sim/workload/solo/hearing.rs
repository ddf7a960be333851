//! Watches on nodes that nobody else changes: of every change each stream has one event, in its order, and what is armed once
//! fires at the first one.

use std::{future::ready, mem};

use zk_client::{Client, EventType, NodeEvent, Resync, WatchItem, WatchKind, WatchStream, Zxid};
use zk_proto::path::join;
use zk_testkit::real::Release;

use super::{Cut, Known, ROOT, Solo, over};
use crate::{
    history::{History, What},
    sim::{
        check::{Armed, Kind},
        workload::unless_over,
    },
};

/// How many streams there are at most.
const STREAMS_MAX: usize = 4;

/// Events between two looks, at most: a stream has room for all of them.
const FEW: usize = 100;

/// A client, and the nodes as it knows them.
struct Nodes {
    client: Client,
    /// What stands in front of that for the servers.
    root: &'static str,
    /// From the one that is watched on.
    paths: [String; 4],
}

/// A stream, and until when all is known that it has had.
struct Heard {
    stream: WatchStream,
    by: WatchKind,
    since: Zxid,
}

/// An event that is to come.
#[derive(Debug)]
struct Due {
    zxid: Zxid,
    kind: EventType,
    path: String,
}

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    let nodes = Nodes::drawn(solo)?;
    let (mut streams, mut armed) = (Vec::new(), Vec::new());
    // What is armed once stays at the server until it fires: without, nothing is there in the end.
    let arms = solo.worker.rng.one_in(2);
    // Until when it is certain what has changed, and whether nothing is in doubt after that.
    let (mut told, mut is_level) = (Zxid(0), true);
    for _ in 0..solo.worker.rng.within(3, 10) {
        if is_level && streams.len() < STREAMS_MAX && solo.worker.rng.one_in(2) {
            streams.extend(nodes.stream(solo).await?);
        }
        if arms && solo.worker.rng.one_in(2) {
            armed.extend(nodes.arm(solo).await?);
        }
        let goes_on = nodes.change(solo, &mut armed, &mut told).await;
        // Also when the session is over: what had come by then is there to be read.
        for mut heard in mem::take(&mut streams) {
            if heard.judge(solo, &nodes, told).await? {
                streams.push(heard);
            }
        }
        is_level = goes_on?;
        if !streams.is_empty() && solo.worker.rng.one_in(4) {
            drop(streams.swap_remove(solo.worker.rng.index(streams.len())));
        }
    }
    solo.worker.ctx.count("watches judged alone");
    drop(streams);
    if is_level && !arms {
        nodes.is_unwatched(solo).await?;
    }
    over(nodes.client.delete_recursive(&nodes.paths[0]).await)
}

impl Nodes {
    /// Below a root of its own, or not.
    fn drawn(solo: &mut Solo) -> Known<Self> {
        let (client, path) = (&solo.worker.client, &*solo.path);
        let (client, root) = match solo.worker.rng.one_in(2) {
            true => (client.chrooted(ROOT).or(Err(Cut::Over))?, ROOT),
            false => (client.clone(), ""),
        };
        let path = &path[root.len()..];
        let [a, b] = ["a", "b"].map(|name| join(path, name));
        Ok(Self { client, root, paths: [path.to_owned(), join(&a, "x"), a, b] })
    }

    fn full(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// When one of them changed last.
    fn last(&self, solo: &Solo, least: Zxid) -> Zxid {
        let checker = solo.worker.ctx.check();
        let changes = |path: &String| checker.history.changes_after(&self.full(path), least).last();
        self.paths.iter().filter_map(changes).map(|change| change.zxid).fold(least, Zxid::max)
    }

    async fn stream(&self, solo: &mut Solo) -> Known<Option<Heard>> {
        let by = if solo.worker.rng.one_in(2) { WatchKind::Node } else { WatchKind::Recursive };
        let path = solo.worker.rng.pick(&self.paths[..3]).clone();
        let watch = self.client.watch(&path).capacity(FEW);
        let watch = if by == WatchKind::Recursive { watch.recursive() } else { watch };
        let stream = unless_over(watch.await)?;
        Ok(stream.map(|stream| Heard { stream, by, since: self.last(solo, Zxid(0)) }))
    }

    async fn arm(&self, solo: &mut Solo) -> Known<Option<Armed>> {
        let path = solo.worker.rng.pick(&self.paths).clone();
        let (kind, known, watch) = match solo.worker.rng.below(3) {
            0 => match unless_over(self.client.exists(&path).watch().await)? {
                Some((Some(stat), watch)) => (Kind::Data, stat.mzxid, watch),
                Some((None, watch)) => (Kind::Missing, Zxid(0), watch),
                None => return Ok(None),
            },
            1 => match unless_over(self.client.get(&path).watch().await)? {
                Some(((_, stat), watch)) => (Kind::Data, stat.mzxid, watch),
                None => return Ok(None),
            },
            _ => match unless_over(self.client.children(&path).watch().await)? {
                Some(((_, stat), watch)) => (Kind::Children, stat.pzxid, watch),
                None => return Ok(None),
            },
        };
        Ok(Some(Armed { path, root: self.root, kind, known, watch, read_only: false }))
    }

    /// Some of them are changed, which is all heard of then: events come before what is read. Records until when that is
    /// certain. Returns whether nothing is in doubt.
    async fn change(
        &self,
        solo: &mut Solo,
        armed: &mut Vec<Armed>,
        told: &mut Zxid,
    ) -> Known<bool> {
        for _ in 0..solo.worker.rng.within(1, 3) {
            if self.change_one(solo).await? {
                *told = self.last(solo, *told);
            }
        }
        let resolved = unless_over(self.client.resolve_in_doubt().await)?;
        let is_level = resolved.is_some() && self.have_fired(solo, armed).await?;
        if is_level {
            *told = self.last(solo, *told);
        }
        Ok(is_level)
    }

    /// Returns whether it is certain that it has changed.
    async fn change_one(&self, solo: &mut Solo) -> Known<bool> {
        let path = solo.worker.rng.pick(&self.paths).clone();
        Ok(match solo.worker.rng.below(4) {
            0 | 1 => unless_over(self.client.create(&path, b"").parents().await)?.is_some(),
            2 => unless_over(self.client.set(&path, b"set").await)?.is_some(),
            _ => unless_over(self.client.delete(&path).await)?.is_some(),
        })
    }

    /// What streams were for is not watched any more, once they are gone.
    async fn is_unwatched(&self, solo: &Solo) -> Known<()> {
        for path in &self.paths {
            let watched = self.client.check_watches(path, WatchKind::Any).await;
            if unless_over(watched)? == Some(true) {
                solo.nothing_comes_late()?;
                return solo.wrong("X3", format_args!("{path} is watched, and nobody listens"));
            }
        }
        Ok(())
    }

    /// All that is armed on an older state than is read has fired. Returns whether all could be read.
    async fn have_fired(&self, solo: &Solo, armed: &mut Vec<Armed>) -> Known<bool> {
        for path in &self.paths {
            let read = unless_over(self.client.exists(path).await)?;
            let Some(stat) = read else { return Ok(false) };
            let ctx = &solo.worker.ctx;
            let mut checker = ctx.check();
            for watch in mem::take(armed) {
                match watch.path == *path {
                    true => armed.extend(checker.watched(ctx.number, watch, stat.as_ref())),
                    false => armed.push(watch),
                }
            }
        }
        Ok(true)
    }
}

impl Heard {
    /// Whether it has had what it is to have until it was told of a change, and nothing else. Returns whether it is known
    /// what it is to have next.
    async fn judge(&mut self, solo: &Solo, nodes: &Nodes, told: Zxid) -> Known<bool> {
        let mut events = Vec::new();
        let mut has_gap = false;
        while let Some(item) = self.queued().await {
            match item {
                WatchItem::Event(event) => events.push(event),
                WatchItem::Resync(Resync::Lagged) => {
                    return solo
                        .wrong("W4", format_args!("leaves events out, and has room for {FEW}"));
                }
                _ => has_gap = true,
            }
        }
        let since = self.since;
        self.since = since.max(told);
        if has_gap {
            return Ok(nodes.last(solo, told) == told);
        }
        let expected = self.expected(&solo.worker.ctx.check().history, nodes, since);
        // Where kinds of watches replace each other, a change of children may be told twice.
        let may_repeat = solo.worker.ctx.options.release < Release::V3_9;
        let had = count_had(&events, &expected, may_repeat);
        let fits = had.is_some_and(|had| expected[had..].iter().all(|due| due.zxid > told));
        if let Some(last) = had.and_then(|had| expected[..had].last()) {
            self.since = self.since.max(last.zxid);
        }
        if fits {
            return Ok(true);
        }
        let (path, by) = (self.stream.path(), self.by);
        solo.wrong("W2", format_args!("hears {events:?} of {path} ({by:?}), not {expected:?}"))
    }

    /// What has come, if it has been read slowly or not.
    async fn queued(&mut self) -> Option<WatchItem> {
        tokio::select! {
            biased;
            item = self.stream.next() => item,
            () = ready(()) => None,
        }
    }

    /// All that it is to have of what has happened after a transaction.
    fn expected(&self, history: &History, nodes: &Nodes, since: Zxid) -> Vec<Due> {
        let is_recursive = self.by == WatchKind::Recursive;
        let watched = self.stream.path();
        let covers = |path: &&String| {
            let below = path.strip_prefix(watched);
            below.is_some_and(|it| it.is_empty() || is_recursive && it.starts_with('/'))
        };
        let mut expected = Vec::new();
        for path in nodes.paths.iter().filter(covers) {
            for change in history.changes_after(&nodes.full(path), since) {
                let kind = match change.what {
                    What::Created(_) => EventType::NODE_CREATED,
                    What::Written(_) => EventType::NODE_DATA_CHANGED,
                    What::Deleted(_) => EventType::NODE_DELETED,
                    What::Children(_) if is_recursive => continue,
                    What::Children(_) => EventType::NODE_CHILDREN_CHANGED,
                };
                expected.push(Due { zxid: change.zxid, kind, path: path.clone() });
            }
        }
        expected.sort_unstable_by_key(|due| due.zxid);
        expected
    }
}

/// How many of those expected have come, if there is no other.
fn count_had(events: &[NodeEvent], expected: &[Due], may_repeat: bool) -> Option<usize> {
    let is_of = |event: &NodeEvent, due: &Due| event.kind == due.kind && event.path == due.path;
    let mut had = 0;
    for event in events {
        let due = expected.get(had).filter(|due| is_of(event, due));
        if due.is_some_and(|due| event.zxid.is_none_or(|zxid| zxid == due.zxid)) {
            had += 1;
            continue;
        }
        let is_of_children = event.kind == EventType::NODE_CHILDREN_CHANGED;
        let before = expected[..had].last();
        if !(may_repeat && is_of_children && before.is_some_and(|before| is_of(event, before))) {
            return None;
        }
    }
    Some(had)
}
