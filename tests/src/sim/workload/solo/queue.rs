//! The exclusive lock: one contender behind the other.

use zk_client::{Acl, AclList, CreateMode, Error, Id, Perms, ReadError, Rejection, WriteError};
use zk_locks::{AcquireError, ForeignNodes, Guard, Layout, Lock, Queue, Status, Ticket};
use zk_proto::path::{join, name};

use super::{BY_HAND, Cut, Known, Solo, following::Following};
use crate::sim::{pass, workload::settings::LAYOUTS};

/// How names begin, and end in front of their number.
const fn shape(layout: Layout) -> (&'static str, &'static str) {
    match layout {
        Layout::Curator | Layout::Go => ("_c_", "-lock-"),
        Layout::Kazoo => ("", "__lock__"),
        Layout::Recipe => ("x-", "-"),
        Layout::HostType => ("", "-W-"),
        _ => ("lock-", ""),
    }
}

/// One contender behind the other, in any layouts.
pub(super) async fn exclusive(solo: &mut Solo) -> Known<()> {
    let rng = &mut solo.worker.rng;
    let layouts = [*rng.pick(&LAYOUTS), *rng.pick(&LAYOUTS)];
    let [lock, other] = layouts.map(|layout| {
        let lock = Lock::builder(&solo.worker.client, &solo.path).layout(layout);
        let lock = if solo.worker.rng.one_in(4) { lock.herd() } else { lock };
        solo.set_up(lock)
    });
    if solo.worker.rng.one_in(4) {
        missing(solo).await?;
    }
    let holder = solo.free(&lock).await?;
    looks_right(solo, layouts[0], &holder).await?;
    solo.taken(&other, &holder).await?;
    let listed = lock.queue().contenders().await;
    solo.lists(&solo.read(listed)?, &[&holder])?;
    if solo.worker.rng.one_in(4) {
        unreadable(solo, &lock, &holder).await?;
    }
    limited(solo, &holder).await?;
    if solo.worker.rng.one_in(3) {
        stranger(solo, layouts[0], &holder).await?;
    }
    let mut holders = Following::new(lock.queue().follow());
    holders.catch_up(solo).await?;
    let second = other.enqueue().await;
    let mut second = solo.had("queueing at", second)?;
    is_behind(solo, &mut second, &[&holder]).await?;
    let mut places = places(solo, &second, 1).await?;
    let third = lock.enqueue().await;
    let mut third = solo.had("queueing at", third)?;
    is_behind(solo, &mut third, &[&holder]).await?;
    // Those who wait are not told of.
    holders.catch_up(solo).await?;
    places.catch_up(solo).await?;
    if solo.worker.rng.one_in(3) {
        // It leaves a gap.
        drop(second);
        solo.until_left(2).await?;
        let place = places.next(solo).await?;
        solo.expect("E1", place.is_none(), format_args!("is behind {place:?}, and has left"))?;
        second = third;
    } else if solo.worker.rng.one_in(3) {
        asked_back(solo, &lock.queue(), &holder).await?;
        drop(third);
    } else {
        drop(third);
    }
    solo.until_left(2).await?;
    let is_asked = solo.worker.rng.one_in(3);
    if is_asked {
        asked_early(solo, &lock, &holder, &second).await?;
    }
    if solo.worker.rng.one_in(6) {
        return swept(solo, holder, second).await;
    }
    let next = follows(solo, &lock, holder, second).await?;
    if is_asked && next.revoked().await.is_err() {
        solo.holds(&next)?;
        return solo.wrong("E1", format_args!("is told that it has lost, and it has not"));
    }
    if !is_asked {
        unasked(solo, &next).await?;
    }
    solo.is_held(&next, next.check()).await?;
    solo.taken(&lock, &next).await?;
    solo.released(next.release().await)?;
    let last = solo.free(&other).await?;
    solo.released(last.release().await)
}

/// A path that has to be there is not made.
async fn missing(solo: &mut Solo) -> Known<()> {
    let builder = Lock::builder(&solo.worker.client, &solo.path);
    let (builder, path) = match solo.worker.rng.one_in(2) {
        true => (builder.require_path(), solo.path.clone()),
        false => {
            let builder = Lock::builder(&solo.worker.client, &join(&solo.path, "above/lock"));
            (builder.require_parent(), join(&solo.path, "above"))
        }
    };
    let lock = solo.set_up(builder);
    match lock.acquire().await {
        Err(AcquireError::PathMissing { path: told }) => {
            let there = solo.worker.ctx.check().is_there(&path);
            let fits = told == path && !there;
            solo.expect("E1", fits, format_args!("{told} is missing, not {path}: {there}"))
        }
        Ok(_) => solo.wrong("E1", format_args!("is granted a lock in {path}, which is missing")),
        Err(error) => solo.had("having", Err(error)),
    }
}

/// The node is what the layout says, and says who has it.
async fn looks_right(solo: &Solo, layout: Layout, guard: &Guard) -> Known<()> {
    let (begins, ends) = shape(layout);
    let node = name(guard.path());
    let fits = guard.path().strip_prefix(&*solo.path).is_some_and(|it| it[1..] == *node)
        && node.starts_with(begins)
        && node.get(..node.len().saturating_sub(10)).is_some_and(|name| name.ends_with(ends));
    solo.expect("S3", fits, format_args!("has the node {} by {layout:?}", guard.path()))?;
    let knows = solo.tally.knows(guard.path(), guard.token());
    solo.expect("E1", knows, format_args!("observers do not know of {guard:?}"))?;
    let node = solo.worker.client.get(guard.path()).await;
    solo.holds(guard)?;
    let (data, stat) = solo.read(node)?;
    // Without an id in its name, it is there.
    let says = String::from_utf8_lossy(&data).ends_with(&solo.description);
    let own = stat.ephemeral_owner == solo.worker.client.session().id();
    let fits = says && own && stat.czxid.0 == guard.token().get();
    solo.expect("S3", fits, format_args!("has a node with {data:?} and {stat:?}"))
}

/// A contender that may not be read is not left out in silence.
async fn unreadable(solo: &Solo, lock: &Lock, holder: &Guard) -> Known<()> {
    let client = solo.worker.client.patient();
    let perms = Perms::WRITE | Perms::CREATE | Perms::DELETE | Perms::ADMIN;
    let hidden = AclList::from_iter([Acl { perms, id: Id::anyone() }]);
    let is_hidden = client.set_acl(holder.path(), &hidden).await.is_ok();
    let listed = lock.queue().contenders().await;
    // Otherwise it could not be deleted, as some servers do not tell then whether it is there.
    let shown = AclList::from_iter([Acl::open_unsafe()]);
    loop {
        match client.set_acl(holder.path(), &shown).await {
            Ok(_) | Err(WriteError::Rejected(Rejection::NoNode)) => break,
            Err(error) if error.session_end().is_some() => return Err(Cut::Over),
            Err(_) => pass(super::LOOK).await,
        }
    }
    if !is_hidden {
        return Err(Cut::Failed);
    }
    solo.holds(holder)?;
    match listed {
        Err(ReadError::Rejected(Rejection::NoAuth)) => Ok(()),
        Err(ReadError::Unavailable(_)) => Err(Cut::Failed),
        told => solo.wrong("E1", format_args!("is told {told:?}, and may not read one of them")),
    }
}

/// The longest queue that somebody stands in.
async fn limited(solo: &mut Solo, holder: &Guard) -> Known<()> {
    let most = solo.worker.rng.index(3);
    let builder = Lock::builder(&solo.worker.client, &solo.path).max_waiters(most);
    let lock = solo.set_up(builder);
    let mut waiting = Vec::new();
    for ahead in 1..=most {
        let ticket = lock.enqueue().await;
        solo.holds(holder)?;
        let ticket = solo.had("queueing at", ticket)?;
        let told = ticket.ahead();
        let fits = fits(solo, told, ahead);
        solo.expect("E1", fits, format_args!("is behind {told:?} of {ahead}"))?;
        waiting.push(ticket);
    }
    let refused = lock.enqueue().await;
    solo.holds(holder)?;
    match refused {
        Err(AcquireError::QueueFull { ahead }) => {
            // What was given up while a server throttled it may come up to seconds later.
            let worker = &solo.worker;
            let late = ahead > most && worker.ctx.check().was_throttled(worker.ctx.number);
            let fits = ahead == most + 1 || late;
            solo.expect("E1", fits, format_args!("{ahead} ahead, of {most}"))?;
        }
        Ok(ticket) => {
            let (ahead, by) = (ticket.ahead(), holder.path());
            return solo.wrong("E1", format_args!("behind {ahead:?} of {most} at most, {by}"));
        }
        Err(error) => return solo.had("queueing at", Err(error)),
    }
    drop(waiting);
    solo.until_left(1).await
}

/// Nodes of others, which have a place in the queue or have none, and how they are treated.
async fn stranger(solo: &mut Solo, layout: Layout, holder: &Guard) -> Known<()> {
    // Numbers of servers have ten digits, or eleven characters with a sign.
    let numbered = solo.worker.rng.one_in(2);
    let without = *solo.worker.rng.pick(&["notes", "202401011"]);
    let name = format!("{BY_HAND}{}", if numbered { "0000000000" } else { without });
    let path = join(&solo.path, &name);
    let create = solo.worker.client.create(&path, b"").mode(CreateMode::Ephemeral);
    create.await.or(Err(Cut::Failed))?;
    let how = [ForeignNodes::Wait, ForeignNodes::Ignore, ForeignNodes::Refuse];
    let how = *solo.worker.rng.pick(&how);
    let builder = Lock::builder(&solo.worker.client, &solo.path).layout(layout);
    let builder = builder.foreign_nodes(how);
    let lock = solo.set_up(builder);
    let ticket = lock.enqueue().await;
    solo.holds(holder)?;
    match (ticket, how) {
        (Err(AcquireError::Stranger { name }), ForeignNodes::Refuse) => {
            let fits = path.ends_with(&name);
            solo.expect("E1", fits, format_args!("{name} is no lock's, not {path}"))?;
        }
        (ticket, how) => {
            let ticket = solo.had("queueing at", ticket)?;
            let ahead = 1 + usize::from(numbered && how == ForeignNodes::Wait);
            let told = ticket.ahead();
            let fits = how != ForeignNodes::Refuse && fits(solo, told, ahead);
            solo.expect("E1", fits, format_args!("is behind {told:?} by {how:?} of {path}"))?;
        }
    }
    solo.worker.client.delete(&path).await.or(Err(Cut::Failed))?;
    solo.until_left(1).await
}

/// What follows how many are ahead, which are so many.
pub(super) async fn places<G>(
    solo: &Solo,
    ticket: &Ticket<G>,
    ahead: usize,
) -> Known<Following<Option<usize>>> {
    let Some(follow) = ticket.positions() else {
        return solo.wrong("E1", format_args!("a ticket has no place"));
    };
    let mut places = Following::new(follow);
    let place = places.next(solo).await?;
    let fits = place.is_some() && fits(solo, place, ahead);
    solo.expect("E1", fits, format_args!("is told {place:?}, and {ahead} are ahead"))?;
    Ok(places)
}

/// Whether so many are ahead, if a listing tells. What was given up while a server throttled it may come up to seconds later.
fn fits(solo: &Solo, told: Option<usize>, ahead: usize) -> bool {
    let ctx = &solo.worker.ctx;
    told.is_none_or(|told| told == ahead || told > ahead && ctx.check().was_throttled(ctx.number))
}

/// A ticket is behind all others, and is not granted.
async fn is_behind(solo: &Solo, ticket: &mut Ticket, holders: &[&Guard]) -> Known<()> {
    let there = solo.left();
    let told = ticket.ahead();
    let granted = ticket.try_wait().await;
    for holder in holders {
        solo.holds(*holder)?;
    }
    let granted = solo.had("looking at", granted)?;
    solo.expect("S2", granted.is_none(), format_args!("is granted what is taken"))?;
    let fits = fits(solo, told, there.saturating_sub(1));
    solo.expect("E1", fits, format_args!("is behind {told:?} of {there}"))
}

/// The holder is not told of a request for the lock: there was none.
pub(super) async fn unasked(solo: &Solo, holder: &Guard) -> Known<()> {
    let told = tokio::select! {
        biased;
        told = holder.revoked() => told,
        () = pass(super::LOOK) => return Ok(()),
    };
    solo.holds(holder)?;
    solo.wrong("E1", format_args!("is told {told:?}, and was not asked for the lock"))
}

/// The holder was told of a request for the lock, and is told of it again.
pub(super) async fn still_asked(solo: &Solo, holder: &Guard) -> Known<()> {
    tokio::select! {
        biased;
        told = holder.revoked() => match told {
            Ok(()) => Ok(()),
            Err(lost) => {
                solo.holds(holder)?;
                solo.wrong("E1", format_args!("is told {lost}, and it holds the lock"))
            }
        },
        () = pass(super::LOOK) => {
            solo.wrong("E1", format_args!("does not know any more that it was asked"))
        }
    }
}

/// The holder hears that others want the lock, and keeps it.
pub(super) async fn asked_back(solo: &Solo, queue: &Queue, holder: &Guard) -> Known<()> {
    let listed = queue.first(1).await;
    let (listed, count) = solo.read(listed)?;
    solo.lists(&listed, &[holder])?;
    // One that was given up while servers had no time for it may come and go.
    let fits =
        count == solo.left() || solo.worker.ctx.check().was_throttled(solo.worker.ctx.number);
    solo.expect("E1", fits, format_args!("{count} contenders are counted"))?;
    match queue.revoke(&listed[0]).await {
        Ok(asked) => {
            solo.holds(holder)?;
            solo.expect("E1", asked, format_args!("{listed:?} is said to be gone"))?;
        }
        Err(_) => return Err(Cut::Failed),
    }
    if holder.revoked().await.is_err() {
        solo.holds(holder)?;
        return solo.wrong("E1", format_args!("is told that it has lost, and it has not"));
    }
    still_asked(solo, holder).await?;
    let listed = queue.first(1).await;
    let (listed, _) = solo.read(listed)?;
    solo.holds(holder)?;
    let asked = listed.first().is_some_and(|first| first.is_revoked());
    solo.expect("E1", asked, format_args!("does not see that {listed:?} is asked"))
}

/// One that waits is asked to give the lock back, before it has it.
async fn asked_early(solo: &Solo, lock: &Lock, holder: &Guard, next: &Ticket) -> Known<()> {
    let listed = lock.queue().contenders().await;
    let listed = solo.read(listed)?;
    solo.holds(holder)?;
    let is_it = |name: &str| next.path().is_some_and(|path| path.ends_with(name));
    match listed.get(1).filter(|second| is_it(&second.name)) {
        Some(second) => match lock.queue().revoke(second).await {
            Ok(asked) => solo.expect("E1", asked, format_args!("{second:?} is said to be gone")),
            Err(_) => Err(Cut::Failed),
        },
        None => solo.wrong("E1", format_args!("is not told of {:?}: {listed:?}", next.path())),
    }
}

/// The holder leaves, or is made to, and the next one has the lock.
async fn follows(solo: &mut Solo, lock: &Lock, holder: Guard, mut next: Ticket) -> Known<Guard> {
    let before = holder.token();
    match solo.worker.rng.below(4) {
        0 => drop(holder),
        1 => taken_away(solo, lock, holder).await?,
        _ => solo.released(holder.release().await)?,
    }
    let granted = match solo.worker.rng.one_in(2) {
        true => next.wait().await,
        false => until_granted(&mut next).await,
    };
    let guard = solo.had("waiting for", granted)?;
    let (token, used) = (guard.token(), next.wait().await);
    solo.expect("S1", token > before, format_args!("got {token} behind {before}"))?;
    let fits = matches!(used, Err(AcquireError::Used)) && next.path().is_none();
    solo.expect("E1", fits, format_args!("a ticket that is used gives {used:?}"))?;
    Ok(guard)
}

async fn until_granted(ticket: &mut Ticket) -> Result<Guard, AcquireError> {
    loop {
        if let Some(guard) = ticket.try_wait().await? {
            return Ok(guard);
        }
        pass(super::LOOK).await;
    }
}

/// The holder's node is deleted, which it hears of.
async fn taken_away(solo: &Solo, lock: &Lock, holder: Guard) -> Known<()> {
    let listed = lock.queue().first(1).await;
    let (listed, _) = solo.read(listed)?;
    solo.lists(&listed, &[&holder])?;
    match lock.queue().evict(&listed[0]).await {
        Ok(true) => {}
        Ok(false) => {
            solo.holds(&holder)?;
            return solo.wrong("E1", format_args!("{listed:?} is said to have left"));
        }
        Err(_) => return Err(Cut::Failed),
    }
    solo.is_told_of_its_loss(holder.lost()).await?;
    let checked = holder.check().await;
    let is_lost = matches!(holder.status(), Status::Lost(_)) && checked.is_err();
    solo.expect("E1", is_lost, format_args!("has lost it, and a check gives {checked:?}"))
}

/// The path goes with all nodes, of which the holder hears, and who waits.
async fn swept(solo: &Solo, holder: Guard, mut next: Ticket) -> Known<()> {
    let deleted: Result<usize, Error> = solo.worker.client.delete_recursive(&solo.path).await;
    deleted.or(Err(Cut::Failed))?;
    let first = solo.is_told_of_its_loss(holder.lost()).await;
    let second = match next.wait().await {
        Err(AcquireError::NodeDeleted) => Ok(()),
        // It may have been there for longer than the one before it.
        Ok(guard) => solo.is_told_of_its_loss(guard.lost()).await,
        Err(AcquireError::Rejected(told)) => {
            return solo.wrong("E1", format_args!("is told {told}, and its node was deleted"));
        }
        Err(error) => return solo.had("waiting for", Err(error)),
    };
    first.and(second)
}
