//! Caches of nodes that nobody else changes: whatever is done to these, a cache shows it before long.

use tokio::sync::watch;
use zk_client::{Acl, AclList, CreateMode, Error, Id, Perms, SessionState, WatchKind};
use zk_proto::path::join;
use zk_testkit::sim::State;

use super::{Cut, Known, LOOK, Solo, over};
use crate::sim::{pass, workload::cache::Followed};

/// The nodes, from the one that the cache is of on.
const NODES: [&str; 6] = ["", "/a", "/b", "/a/x", "/a/y", "/b/x"];

pub(super) async fn play(solo: &mut Solo) -> Known<()> {
    for _ in 0..solo.worker.rng.below(4) {
        change(solo).await?;
    }
    let mut followed = Followed::of(&mut solo.worker, &solo.path);
    for _ in 0..solo.worker.rng.within(2, 6) {
        let (before, heard) = (followed.versions(), hear(solo, &followed));
        for _ in 0..solo.worker.rng.within(1, 4) {
            // Caches without data ask for existence only, which some releases allow without a permission.
            if followed.reads_data() && solo.worker.rng.one_in(4) {
                hide(solo).await?;
            }
            if solo.worker.rng.one_in(12) {
                unwatch(solo);
            }
            change(solo).await?;
        }
        is_level(solo, &mut followed).await?;
        let stalled = solo.worker.ctx.stalled();
        pass(LOOK).await;
        let could_hear = solo.worker.ctx.stalled() == stalled;
        if could_hear && followed.versions() != before && !*heard.borrow() {
            followed.wrong(&solo.worker, "wakes nobody for a change");
            return Err(Cut::Failed);
        }
    }
    if followed.reads_data() {
        // What is hidden could not be listed.
        for below in NODES {
            show(solo, &format!("{}{below}", solo.path)).await?;
        }
    }
    drop(followed);
    let deleted: Result<usize, Error> = solo.worker.client.delete_recursive(&solo.path).await;
    over(deleted)
}

/// Waits for an event, in a task of its own: whatever wakes this one would have it look.
fn hear(solo: &Solo, followed: &Followed) -> watch::Receiver<bool> {
    let (heard, is_heard) = watch::channel(false);
    let (mut events, ctx) = (followed.events(), &solo.worker.ctx);
    ctx.tasks.spawn(State::process(ctx.number), async move {
        tokio::select! {
            biased;
            () = heard.closed() => {}
            _ = events.next() => drop(heard.send(true)),
        }
    });
    is_heard
}

/// One of the nodes, or several at once, become others. Whether they do is not of interest.
async fn change(solo: &mut Solo) -> Known<()> {
    let rng = &mut solo.worker.rng;
    let (client, path) = (&solo.worker.client, format!("{}{}", solo.path, rng.pick(&NODES)));
    let data = rng.next().to_string().into_bytes();
    match rng.below(7) {
        0 | 1 => over(client.create(&path, &data).parents().await),
        2 | 3 => over(client.set(&path, &data).await),
        4 => over(client.delete_recursive(&path).await),
        5 => show(solo, &path).await,
        _ => replace(solo, &path).await,
    }
}

/// What is watched of a node is removed, for all that listen: a cache watches anew.
fn unwatch(solo: &mut Solo) {
    let kinds = [WatchKind::Data, WatchKind::Children, WatchKind::Node, WatchKind::Recursive];
    let rng = &mut solo.worker.rng;
    let (path, kind) = (format!("{}{}", solo.path, rng.pick(&NODES)), *rng.pick(&kinds));
    drop(solo.worker.client.remove_watches(&path, kind));
    solo.worker.ctx.count("watches of caches removed");
}

/// All may read a node.
async fn show(solo: &Solo, path: &str) -> Known<()> {
    let acl = AclList::from_iter([Acl::open_unsafe()]);
    over(solo.worker.client.set_acl(path, &acl).await)
}

/// One of the lower nodes may not be read any more, or goes when it may not.
async fn hide(solo: &mut Solo) -> Known<()> {
    let path = format!("{}{}", solo.path, solo.worker.rng.pick(&NODES[3..]));
    let perms = Perms::WRITE | Perms::CREATE | Perms::DELETE | Perms::ADMIN;
    let acl = AclList::from_iter([Acl { perms, id: Id::anyone() }]);
    solo.worker.ctx.count("nodes hidden from caches");
    over(solo.worker.client.set_acl(&path, &acl).await)?;
    match solo.worker.rng.one_in(3) {
        true => over(solo.worker.client.delete(&path).await),
        false => Ok(()),
    }
}

/// A node goes and comes back in one transaction, and its children with it, or with others.
async fn replace(solo: &mut Solo, path: &str) -> Known<()> {
    let there: Vec<String> = {
        let checker = solo.worker.ctx.check();
        let there = checker.history.children(path);
        there.map(|(name, _)| join(path, name)).collect()
    };
    let others = vec![join(path, "x"), join(path, "y")];
    let then = if solo.worker.rng.one_in(2) { there.clone() } else { others };
    let multi = there.iter().fold(solo.worker.client.multi(), |multi, path| multi.delete(path));
    let multi = multi.delete(path).create(path, b"again", CreateMode::Persistent);
    let multi =
        then.iter().fold(multi, |multi, path| multi.create(path, b"again", CreateMode::Persistent));
    over(multi.await)
}

/// The cache has all that there is.
async fn is_level(solo: &Solo, followed: &mut Followed) -> Known<()> {
    let ctx = &solo.worker.ctx;
    solo.read(solo.worker.client.resolve_in_doubt().await)?;
    let (since, stalled) = (ctx.now(), ctx.stalled());
    loop {
        let copied = followed.copied(&solo.worker);
        let lacks = ctx.check().lacks(&copied);
        let Some(lacks) = lacks else {
            ctx.count("caches that became level");
            followed.look(&solo.worker);
            return Ok(());
        };
        if matches!(copied.session, SessionState::Ended(_)) {
            return Err(Cut::Over);
        }
        // It hears of nothing while the process stands still.
        let bound = since + ctx.stalled() - stalled + ctx.check().patience(ctx.number);
        let is_late = ctx.check().is_overdue(ctx.number, since);
        if is_late || copied.follows() && ctx.now() > bound {
            followed.wrong(&solo.worker, &lacks);
            return Err(Cut::Failed);
        }
        pass(LOOK).await;
    }
}
