//! `zk lock`: runs a command while holding a lock.

use std::{
    future::Future,
    pin::{Pin, pin},
    process::ExitStatus,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};
use tokio::time::{Instant, sleep, timeout_at};
use zk_client::{Client, Session};
use zk_locks::{AcquireError, Builder, Guard, Layout, Lock, Lost, RwLock, Semaphore, Status};

use crate::{
    args::{LockArgs, Mode},
    exit::{Exit, Failure},
    lock::{
        job::{self, Group, Job},
        signals::{FOR_THE_COMMAND, JOB_CONTROL, Signals},
    },
    render::complain,
};

pub(crate) async fn run(args: LockArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::default();
    signals.catch(FOR_THE_COMMAND)?;
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let mut connect = args.connect.clone();
    if let Some(timeout) = args.timeout {
        connect.connect_timeout = connect.connect_timeout.min(timeout);
    }
    let client = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
        client = connect.connect() => client?,
    };
    let acquired = tokio::select! {
        biased;
        // With the future goes the place in the queue.
        signal = signals.next() => Ok(Acquired::Interrupted(signal)),
        acquired = acquire(&args, &client, deadline) => acquired,
    };
    let result = match acquired {
        Ok(Acquired::Yes(guard)) => hold(&args, &client, &guard, &mut signals).await,
        Ok(Acquired::Taken) => Err(Failure::new(Exit::Taken, format_args!("{}: taken", args.path))),
        Ok(Acquired::Interrupted(signal)) => Ok(Exit::Signal(signal.as_raw())),
        Err(failure) => Err(failure),
    };
    // The end of the session removes the node, if its deletion, which is on its way, has not.
    if let Err(error) = client.close().await {
        let path = &args.path;
        complain(&format_args!("{path}: {error}; if it has not, the lock goes with the session"));
    }
    result
}

enum Acquired {
    Yes(Box<Guard>),
    /// Somebody else has it, or waits for it.
    Taken,
    /// By a signal.
    Interrupted(Signal),
}

async fn acquire(
    args: &LockArgs,
    client: &Client,
    deadline: Option<Instant>,
) -> Result<Acquired, Failure> {
    let attempt = attempt(args, client);
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
async fn attempt(args: &LockArgs, client: &Client) -> Result<Option<Guard>, AcquireError> {
    let path = &args.path;
    if let Some(permits) = args.semaphore {
        let semaphore =
            set_up(Semaphore::builder(client, path), args).build().with_permits(permits);
        return match args.try_once {
            true => semaphore.try_acquire().await,
            false => semaphore.acquire().await.map(Some),
        };
    }
    let rw_lock = || set_up(RwLock::builder(client, path), args).build();
    match (args.shared, args.write, args.try_once) {
        (true, _, true) => Ok(rw_lock().try_read().await?.map(Guard::from)),
        (true, _, false) => Ok(Some(rw_lock().read().await?.into())),
        (_, true, true) => Ok(rw_lock().try_write().await?.map(Guard::from)),
        (_, true, false) => Ok(Some(rw_lock().write().await?.into())),
        (_, _, true) => set_up(Lock::builder(client, path), args).build().try_acquire().await,
        (_, _, false) => {
            set_up(Lock::builder(client, path), args).build().acquire().await.map(Some)
        }
    }
}

fn set_up<R>(builder: Builder<R>, args: &LockArgs) -> Builder<R> {
    let builder = builder.layout(match args.mode {
        Mode::Curator => Layout::Curator,
        Mode::Kazoo => Layout::Kazoo,
        Mode::Go => Layout::Go,
        Mode::Recipe => Layout::Recipe,
    });
    match &args.description {
        Some(description) => builder.description(description),
        None => builder,
    }
}

/// Runs the command, under the lock and no longer than that.
async fn hold(
    args: &LockArgs,
    client: &Client,
    guard: &Guard,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let LockArgs { path, margin, .. } = args;
    let session = client.session();
    let margin_max = session.timeout() / 2;
    if *margin > margin_max {
        let max = humantime::format_duration(margin_max);
        let why = format!("--margin: at most {max}, half of the session timeout");
        return Err(Failure::new(Exit::Usage, why));
    }
    let environment =
        [("ZK_LOCK_TOKEN", guard.token().to_string()), ("ZK_LOCK_PATH", guard.path().to_owned())];
    let group = Group::choose();
    if group == Group::Own {
        // Before it runs. In our own group it is stopped and continued together with us.
        signals.catch(JOB_CONTROL)?;
    }
    let mut job = Job::start(&args.command, environment, group)?;
    let loss = pin!(loss(guard, &session, *margin, args.revocable));
    let (loss, grace) = match attend(loss, &mut job, signals).await? {
        Ended::ByItself(status) => {
            let Status::Lost(lost) = guard.status() else { return Ok(job::exit(status)) };
            let why = format!("{path}: {lost}, before the command has ended");
            return Err(Failure::new(Exit::LockLost, why));
        }
        Ended::MustEnd(Loss::Revoked) => ("asked for by somebody else".to_owned(), args.grace),
        Ended::MustEnd(Loss::Lost(lost)) => (lost.to_string(), args.grace),
        // All of the time that is left, and no more.
        Ended::MustEnd(Loss::Near) => {
            ("servers not heard of, lock nearly lost".to_owned(), args.grace.min(*margin))
        }
    };
    complain(&format_args!("{path}: {loss}; ending the command"));
    job.end(grace).await;
    Err(Failure::new(Exit::LockLost, format_args!("{path}: the command has been ended")))
}

/// Why the command must not go on.
#[derive(Debug)]
enum Loss {
    Lost(Lost),
    /// The margin has been reached.
    Near,
    /// Somebody has asked for the lock back.
    Revoked,
}

/// Waits until the lock is lost, or may be after the margin.
async fn loss(guard: &Guard, session: &Session, margin: Duration, revocable: bool) -> Loss {
    let near = async {
        if margin.is_zero() {
            return std::future::pending().await;
        }
        loop {
            // With servers that answer, it never falls much below two thirds of the session timeout.
            match session.lease_left().saturating_sub(margin) {
                Duration::ZERO => return,
                left => sleep(left).await,
            }
        }
    };
    tokio::select! {
        biased;
        lost = guard.lost() => Loss::Lost(lost),
        () = near => Loss::Near,
        // A loss is heard of above.
        Ok(()) = guard.revoked(), if revocable => Loss::Revoked,
    }
}

#[derive(Debug)]
enum Ended {
    ByItself(ExitStatus),
    /// It has not yet.
    MustEnd(Loss),
}

/// Passes on signals until the command has ended, or must.
async fn attend(
    mut loss: Pin<&mut impl Future<Output = Loss>>,
    job: &mut Job,
    signals: &mut Signals,
) -> Result<Ended, Failure> {
    loop {
        tokio::select! {
            biased;
            // First: whoever has been stopped for long must not do anything else.
            loss = &mut loss => return Ok(Ended::MustEnd(loss)),
            status = job.ended() => return Ok(Ended::ByItself(status?)),
            signal = signals.next() => match signal {
                Signal::TSTP => stop(job),
                signal => job.pass_on(signal),
            },
        }
    }
}

/// Stops the command, and us: a command that goes on without us would outlive its lock.
fn stop(job: &Job) {
    job.signal(Signal::STOP);
    // Who may not signal himself?
    let _ = kill_process(getpid(), Signal::STOP);
}
