//! `zk lock`: runs a command while holding a lock.

use std::{
    convert::Infallible,
    future::{pending, ready},
    io::{self, IsTerminal as _},
};

use rustix::process::Signal;
use tokio::time::{Instant, sleep_until, timeout_at};
use zk_client::Client;
use zk_locks::{AcquireError, Builder, Guard, Layout, Lock, RwLock, Semaphore};

use crate::{
    args::LockArgs,
    changes::Changes,
    commands::holders::{self, Entry},
    exit::{Exit, Failure},
    lock::{
        hold::{Terms, closed},
        signals::{FOR_THE_COMMAND, Signals},
    },
    render::{complain, printable},
    shared::Shared,
};

pub(crate) async fn run(args: LockArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::default();
    signals.catch(FOR_THE_COMMAND)?;
    let layout = args.naming.of_lock()?;
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut connect = args.connect.clone();
    connect.lease = args.job.lease.into();
    if let Some(timeout) = args.timeout {
        connect.within(timeout)?;
    }
    let client = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
        client = connect.connect() => client?,
        // A shell's session has a limit of its own.
        () = until(deadline), if Shared::current().is_some() => {
            return Err(Failure::acquire(&args.path)(AcquireError::TimedOut));
        }
    };
    let terms = Terms { path: &args.path, command: &args.command, job: &args.job };
    let acquired = tokio::select! {
        biased;
        // Before the lock is waited for.
        Err(failure) = ready(terms.check(&client.session())) => Err(failure),
        // With the future goes the place in the queue.
        signal = signals.next() => Ok(Acquired::Interrupted(signal)),
        acquired = acquire(&args, layout, &client, deadline) => acquired,
        never = tell(&args, &client) => match never {},
    };
    let result = match acquired {
        Ok(Acquired::Yes(guard)) => terms.hold(&client, &guard, &mut signals).await,
        Ok(Acquired::Taken) => Err(Failure::new(Exit::Taken, format_args!("{}: taken", args.path))
            .next(format_args!(
                "zk holders {} lists who has it; without --try it waits",
                args.path
            ))),
        Ok(Acquired::Interrupted(signal)) => Ok(Exit::Signal(signal.as_raw())),
        Err(failure) => Err(failure),
    };
    closed(&client, &args.path, &mut signals).await;
    result
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

enum Acquired {
    Yes(Box<Guard>),
    /// Another contender has it, or waits for it.
    Taken,
    /// By a signal.
    Interrupted(Signal),
}

async fn acquire(
    args: &LockArgs,
    layout: Layout,
    client: &Client,
    deadline: Option<Instant>,
) -> Result<Acquired, Failure> {
    let attempt = attempt(args, layout, client);
    let acquired = match deadline {
        // With the future goes the place in the queue.
        Some(deadline) => {
            timeout_at(deadline, attempt).await.unwrap_or(Err(AcquireError::TimedOut))
        }
        None => attempt.await,
    };
    let acquired = acquired.map_err(Failure::acquire(&args.path))?;
    Ok(acquired.map_or(Acquired::Taken, |guard| Acquired::Yes(Box::new(guard))))
}

/// Takes whatever lock was asked for. `None`: it is taken, and not to be waited for.
async fn attempt(
    args: &LockArgs,
    layout: Layout,
    client: &Client,
) -> Result<Option<Guard>, AcquireError> {
    let path = &args.path;
    if let Some(permits) = args.semaphore {
        let semaphore =
            set_up(Semaphore::builder(client, path), args, layout).build().with_permits(permits);
        return match args.try_once {
            true => semaphore.try_acquire().await,
            false => semaphore.acquire().await.map(Some),
        };
    }
    let rw_lock = || set_up(RwLock::builder(client, path), args, layout).build();
    match (args.shared, args.write, args.try_once) {
        (true, _, true) => Ok(rw_lock().try_read().await?.map(Guard::from)),
        (true, _, false) => Ok(Some(rw_lock().read().await?.into())),
        (_, true, true) => Ok(rw_lock().try_write().await?.map(Guard::from)),
        (_, true, false) => Ok(Some(rw_lock().write().await?.into())),
        (_, _, true) => {
            set_up(Lock::builder(client, path), args, layout).build().try_acquire().await
        }
        (_, _, false) => {
            set_up(Lock::builder(client, path), args, layout).build().acquire().await.map(Some)
        }
    }
}

fn set_up<R>(builder: Builder<R>, args: &LockArgs, layout: Layout) -> Builder<R> {
    let builder = builder.layout(layout);
    match &args.description {
        Some(description) => builder.description(description),
        None => builder,
    }
}

/// Tells the person at the terminal what is waited for, whenever that changes.
async fn tell(args: &LockArgs, client: &Client) -> Infallible {
    if !io::stderr().is_terminal() {
        return pending().await;
    }
    let path = &*args.path;
    let mine = client.session().id().to_string();
    let Ok(mut changes) = Changes::of(client, path) else { return pending().await };
    let mut before = String::new();
    loop {
        // If it cannot be found out, the lock cannot be had either, which is the failure to report.
        if changes.next().await.is_err() {
            return pending().await;
        }
        let Ok(queue) = holders::queue(client, path).await else { continue };
        if let Some(now) = place(&queue, &mine).filter(|now| *now != before) {
            complain(&format_args!("{path}: {now}"));
            before = now;
        }
    }
}

/// Where a session waits: behind whom, and how many.
fn place(queue: &[Entry], session: &str) -> Option<String> {
    let index = queue.iter().position(|entry| !entry.holds && entry.session == session)?;
    let ahead = queue.get(index.checked_sub(1)?)?;
    let place = match index + 1 {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        place => format!("{place}{}", ending(place)),
    };
    Some(format!("waiting behind {}, {place} in line", printable(&ahead.description)))
}

/// Of an ordinal number in English.
fn ending(number: usize) -> &'static str {
    match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ordinals() {
        let shown = [4, 11, 12, 13, 21, 22, 23, 101, 111].map(|n| format!("{n}{}", ending(n)));
        assert_eq!(shown.join(" "), "4th 11th 12th 13th 21st 22nd 23rd 101st 111th");
    }
}
