//! The futures of the recipes over the queue, each on the stages that it is dropped on.

use std::time::Duration;

use zk_client::{Client, CreateMode};
use zk_locks::{
    AcquireError, Guards, Lock, MultiLock, ReadGuard, RwLock, Semaphore, SimpleGuard, SimpleLock,
    WriteGuard,
};
use zk_tests::network::pass;

use crate::cancel::{
    scene::{Scene, kept, list, plain},
    stage::{Needs, Props},
};

/// Shorter than others hold what is waited for.
const SHORT: Duration = Duration::from_millis(9);

fn rw(props: &Props) -> RwLock {
    RwLock::builder(&props.client, "/lock").recheck(None).build()
}

fn herd(props: &Props) -> Lock {
    Lock::builder(&props.client, "/lock").herd().recheck(None).build()
}

/// One lock that may be taken, and one that never is.
fn multi(props: &Props) -> MultiLock {
    MultiLock::new(&props.client, ["/lock", "/also"])
}

fn semaphore(props: &Props) -> Semaphore {
    Semaphore::new(&props.client, "/semaphore", 2)
}

fn simple(client: &Client) -> SimpleLock {
    SimpleLock::new(client, "/simple")
}

async fn both(props: &Props) -> Result<Guards, String> {
    multi(props).acquire().await.map_err(text)
}

async fn reading(props: &Props) -> Result<ReadGuard, String> {
    rw(props).read().await.map_err(text)
}

async fn writing(props: &Props) -> Result<WriteGuard, String> {
    rw(props).write().await.map_err(text)
}

async fn held(props: &Props) -> Result<SimpleGuard, String> {
    simple(&props.client).acquire().await.map_err(text)
}

fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

/// Gives something up while something else is waited for.
async fn meanwhile<T>(given_up: impl Sized, waited_for: impl Future<Output = T>) -> T {
    let give_up = async {
        pass(Duration::from_millis(5)).await;
        drop(given_up);
    };
    tokio::join!(waited_for, give_up).0
}

/// What creates that happen together have come to.
fn seats_of<T>(
    made: Result<Result<T, zk_client::MultiError>, zk_client::WriteError>,
) -> Result<T, String> {
    made.map_err(text)?.map_err(text)
}

/// What is not had in time is as good as what is.
fn or_late<T>(result: Result<T, AcquireError>) -> Result<(), String> {
    match result {
        Err(AcquireError::TimedOut) => Ok(()),
        other => plain(other),
    }
}

pub(crate) const RECIPES: &[Scene] = list! {
    "CreateAllProtected", Needs::LockPath, |props| {
        let seat = |path| props.client.create(path, b"").mode(CreateMode::EphemeralSequential);
        let seats = ["/lock/a-", "/b-"].map(|path| seat(path).protected());
        plain(props.client.create_all_protected(seats).await)
    }
    "CreateAllProtected::followed_by", Needs::LockPath, |props| {
        let seat = |path| props.client.create(path, b"").mode(CreateMode::EphemeralSequential);
        let seats = ["/lock/a-", "/lock/b-"].map(|path| seat(path).protected().containers());
        let behind = |zk: &Client| zk.children("/lock").submit();
        let (nodes, names) = seats_of(props.client.create_all_protected(seats).followed_by(behind).await)?;
        plain(names.await)?;
        drop(nodes);
        Ok(())
    }
    "CreateAllProtected::submit", Needs::Node, |props| {
        let seat = props.client.create("/b-", b"").mode(CreateMode::EphemeralSequential);
        let Some(node) = props.node.take() else { return Err("no node".into()) };
        let seats = props.client.create_all_protected([seat.protected()]);
        plain(seats.replacing(node).submit().await)
    }
    "Lock::enqueue", Needs::HeldFor(12), |props| { plain(props.lock.enqueue().await) }
    "Ticket::wait", Needs::HeldFor(12), |props| {
        let mut ticket = props.lock.enqueue().await.map_err(text)?;
        let guard = ticket.wait().await;
        kept(props, guard)
    }
    "Ticket::try_wait", Needs::HeldFor(3), |props| {
        let mut ticket = props.lock.enqueue().await.map_err(text)?;
        plain(ticket.try_wait().await)
    }
    "Follow::next", Needs::HeldFor(12), |props| {
        let ticket = props.lock.enqueue().await.map_err(text)?;
        let mut positions = ticket.positions().ok_or("it is used")?;
        plain(positions.next().await)?;
        plain(positions.next().await)
    }
    "SharedGuard::release", Needs::Guard, |props| {
        let Some(guard) = props.guard.take() else { return Err("no guard".into()) };
        let outer = guard.share();
        let inner = outer.reenter().map_err(text)?;
        plain(outer.release().await)?;
        plain(inner.release().await)
    }
    "Guard::revoked", Needs::Guard, |props| {
        let Some(guard) = &props.guard else { return Err("no guard".into()) };
        plain(guard.revoked().await)
    }
    "Queue::contenders", Needs::HeldFor(9), |props| {
        plain(props.lock.queue().contenders().await)
    }
    "Queue::first", Needs::HeldFor(9), |props| {
        plain(props.lock.queue().first(1).await)
    }
    "Queue::revoke", Needs::Guard, |props| {
        let queue = props.lock.queue();
        let contenders = queue.contenders().await.map_err(text)?;
        plain(queue.revoke(&contenders[0]).await)
    }
    "Queue::evict", Needs::Guard, |props| {
        let queue = props.lock.queue();
        let contenders = queue.contenders().await.map_err(text)?;
        plain(queue.evict(&contenders[0]).await)
    }
    "Lock::acquire", Needs::HeldFor(12), |props| {
        let guard = herd(props).acquire().await;
        kept(props, guard)
    }
    "Lock::acquire_timeout", Needs::HeldFor(30), |props| {
        or_late(herd(props).acquire_timeout(SHORT).await)
    }
    "Lock::try_acquire", Needs::LockPath, |props| { plain(herd(props).try_acquire().await) }
    "MultiLock::acquire", Needs::Nothing, |props| { plain(both(props).await) }
    "MultiLock::acquire", Needs::HeldFor(12), |props| { plain(both(props).await) }
    "MultiLock::acquire_timeout", Needs::HeldFor(30), |props| {
        or_late(multi(props).acquire_timeout(SHORT).await)
    }
    "MultiLock::try_acquire", Needs::LockPath, |props| { plain(multi(props).try_acquire().await) }
    "Guards::lost", Needs::LockPath, |props| {
        both(props).await?.lost().await;
        Ok(())
    }
    "Guards::scope", Needs::LockPath, |props| { plain(both(props).await?.scope(pass(SHORT)).await) }
    "Guards::check", Needs::LockPath, |props| { plain(both(props).await?.check().await) }
    "Guards::release", Needs::LockPath, |props| { plain(both(props).await?.release().await) }
    "RwLock::read", Needs::HeldFor(12), |props| { plain(reading(props).await) }
    "RwLock::write", Needs::HeldFor(12), |props| { plain(writing(props).await) }
    "RwLock::read_timeout", Needs::HeldFor(30), |props| {
        or_late(rw(props).read_timeout(SHORT).await)
    }
    "RwLock::write_timeout", Needs::HeldFor(30), |props| {
        or_late(rw(props).write_timeout(SHORT).await)
    }
    "RwLock::try_read", Needs::LockPath, |props| { plain(rw(props).try_read().await) }
    "RwLock::try_write", Needs::LockPath, |props| { plain(rw(props).try_write().await) }
    "RwLock::enqueue_read", Needs::HeldFor(12), |props| { plain(rw(props).enqueue_read().await) }
    "RwLock::enqueue_write", Needs::HeldFor(12), |props| { plain(rw(props).enqueue_write().await) }
    "Ticket::wait", Needs::HeldFor(12), |props| {
        let mut ticket = rw(props).enqueue_read().await.map_err(text)?;
        plain(ticket.wait().await)
    }
    "Ticket::try_wait", Needs::HeldFor(3), |props| {
        let mut ticket = rw(props).enqueue_read().await.map_err(text)?;
        plain(ticket.try_wait().await)
    }
    "Ticket::wait", Needs::HeldFor(12), |props| {
        let mut ticket = rw(props).enqueue_write().await.map_err(text)?;
        plain(ticket.wait().await)
    }
    "Ticket::try_wait", Needs::HeldFor(3), |props| {
        let mut ticket = rw(props).enqueue_write().await.map_err(text)?;
        plain(ticket.try_wait().await)
    }
    "ReadGuard::release", Needs::LockPath, |props| { plain(reading(props).await?.release().await) }
    "ReadGuard::try_upgrade", Needs::LockPath, |props| {
        let (first, second) = (reading(props).await?, reading(props).await?);
        plain(meanwhile(second, first.try_upgrade()).await)
    }
    "WriteGuard::release", Needs::LockPath, |props| { plain(writing(props).await?.release().await) }
    "WriteGuard::downgrade", Needs::LockPath, |props| {
        plain(writing(props).await?.downgrade().await)
    }
    "Semaphore::acquire", Needs::Nothing, |props| {
        let guard = semaphore(props).acquire().await;
        kept(props, guard)
    }
    "Semaphore::acquire_many", Needs::Nothing, |props| {
        let semaphore = semaphore(props);
        let first = semaphore.acquire().await.map_err(text)?;
        plain(meanwhile(first, semaphore.acquire_many(2)).await)
    }
    "Semaphore::acquire_timeout", Needs::Nothing, |props| {
        or_late(semaphore(props).acquire_timeout(SHORT).await)
    }
    "Semaphore::acquire_many_timeout", Needs::Nothing, |props| {
        let semaphore = semaphore(props);
        let _first = semaphore.acquire().await.map_err(text)?;
        or_late(semaphore.acquire_many_timeout(2, SHORT).await)
    }
    "Semaphore::try_acquire", Needs::Nothing, |props| { plain(semaphore(props).try_acquire().await) }
    "Semaphore::try_acquire_many", Needs::Nothing, |props| {
        plain(semaphore(props).try_acquire_many(2).await)
    }
    "Semaphore::holders", Needs::Nothing, |props| { plain(semaphore(props).holders().await) }
    "Semaphore::waiters", Needs::Nothing, |props| { plain(semaphore(props).waiters().await) }
    "Semaphore::resize", Needs::Nothing, |props| {
        plain(semaphore(props).counted_at("/data").resize(3).await)
    }
    "SimpleLock::acquire", Needs::Nothing, |props| {
        let first = held(props).await?;
        plain(meanwhile(first, held(props)).await)
    }
    "SimpleLock::acquire_timeout", Needs::Nothing, |props| {
        let _first = held(props).await?;
        or_late(simple(&props.client).acquire_timeout(SHORT).await)
    }
    "SimpleLock::try_acquire", Needs::Nothing, |props| {
        plain(SimpleLock::new(&props.client, "/below/simple").try_acquire().await)
    }
    "SimpleLock::holder", Needs::Nothing, |props| { plain(simple(&props.client).holder().await) }
    "SimpleGuard::lost", Needs::Nothing, |props| {
        held(props).await?.lost().await;
        Ok(())
    }
    "SimpleGuard::scope", Needs::Nothing, |props| { plain(held(props).await?.scope(pass(SHORT)).await) }
    "SimpleGuard::check", Needs::Nothing, |props| { plain(held(props).await?.check().await) }
    "SimpleGuard::release", Needs::Nothing, |props| { plain(held(props).await?.release().await) }
};
