//! A command under a lock: it runs as long as that is held, and no longer.

use std::{
    ffi::OsString,
    future::Future,
    pin::{Pin, pin},
    process::ExitStatus,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};
use tokio::time::{Instant, sleep, sleep_until};
use zk_client::{Client, Session, WriteError};
use zk_locks::{Guard, Lost, Status};

use super::{
    job::{self, Job},
    processes::Group,
    signals::{FOR_THE_COMMAND, JOB_CONTROL, Signals},
};
use crate::{
    args::JobArgs,
    exit::{Exit, Failure},
    render::complain,
    shared::Shared,
};

/// How long a release may take before people are told of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What runs under a lock, and how it ends with that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) path: &'a str,
    pub(crate) command: &'a [OsString],
    pub(crate) job: &'a JobArgs,
}

impl Terms<'_> {
    /// Whether the session lasts long enough for the margin: before anything waits for the lock.
    pub(crate) fn check(self, session: &Session) -> Result<(), Failure> {
        // Of what the leader confirms, a third is left at least as long as it answers.
        let margin_max = session.timeout() / 4;
        if self.job.margin <= margin_max {
            return Ok(());
        }
        let max = humantime::format_duration(margin_max);
        let why = format!("--margin: at most {max}, a quarter of the session timeout");
        Err(Failure::new(Exit::Usage, why))
    }

    /// Runs the command, under the lock and no longer than that.
    pub(crate) async fn hold(
        self,
        client: &Client,
        guard: &Guard,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let Self { path, command, job: JobArgs { revocable, grace, margin, .. } } = self;
        let session = client.session();
        // Another server may have granted less since.
        self.check(&session)?;
        let environment = [
            ("ZK_LOCK_TOKEN", guard.token().to_string()),
            ("ZK_LOCK_PATH", guard.path().to_owned()),
        ];
        let group = Group::choose();
        if group == Group::Own {
            // Before it runs. In our own group it is stopped and continued together with us.
            signals.catch(JOB_CONTROL)?;
        }
        // Within what servers keep the session for, if it has been heard of when a third of that was over.
        let grace_if_killed = (*grace).min(session.timeout() / 3);
        let mut job = Job::start(command, environment, group, grace_if_killed)?;
        let loss = pin!(loss(guard, &session, *margin, *revocable));
        let (loss, grace) = match attend(loss, &mut job, signals).await? {
            Ended::ByItself(status) => {
                let Status::Lost(lost) = guard.status() else { return Ok(job::exit(status)) };
                let why = format!("{path}: {lost}, before the command has ended");
                return Err(lost_lock(path, why));
            }
            Ended::MustEnd(Loss::Revoked) => ("requested by another client".to_owned(), *grace),
            Ended::MustEnd(Loss::Lost(lost)) => (lost.to_string(), *grace),
            // All of the time that is left, and no more.
            Ended::MustEnd(Loss::Near) => {
                ("servers not heard from, lock nearly lost".to_owned(), *margin.min(grace))
            }
        };
        complain(&format_args!("{path}: {loss}; ending the command"));
        job.end(grace).await;
        Err(lost_lock(path, format_args!("{path}: the command has been ended")))
    }
}

fn lost_lock(path: &str, why: impl std::fmt::Display) -> Failure {
    let next = format!("zk holders {path} lists who has it now; zk health asks each server");
    Failure::new(Exit::LockLost, why).next(next)
}

/// Closes the session, and with it whatever is held: for as long as servers may keep it, or until a signal.
pub(crate) async fn closed(client: &Client, path: &str, signals: &mut Signals) {
    // The shell's session goes on, and with it the deletion, ahead of all that is asked for after this.
    if Shared::current().is_some() {
        return;
    }
    // What has ended the command, or the wait for the lock, does not end this wait.
    signals.forget().await;
    // The end of the session removes the node, if its deletion, which is on its way, has not.
    let mut closed = pin!(client.close_within(client.session().timeout()));
    let (tells_at, mut is_told) = (Instant::now() + PATIENCE, false);
    let closed = loop {
        tokio::select! {
            biased;
            closed = &mut closed => break Some(closed),
            signal = signals.next() => if FOR_THE_COMMAND.contains(&signal) {
                break None;
            },
            () = sleep_until(tells_at), if !is_told => {
                let told = "no server has confirmed the release yet; a signal ends the wait for that";
                complain(&format_args!("{path}: {told}"));
                is_told = true;
            }
        }
    };
    match closed {
        Some(Ok(())) => {}
        None | Some(Err(WriteError::InDoubt { .. })) => complain(&format_args!(
            "{path}: no server has confirmed the release; it comes with the end of the session"
        )),
        Some(Err(error)) => complain(&format_args!("{path}: {error}")),
    }
}

/// Why the command must not go on.
#[derive(Debug)]
enum Loss {
    Lost(Lost),
    /// The margin has been reached.
    Near,
    /// The lock was requested back.
    Revoked,
}

/// Waits until the lock is lost, or may be after the margin.
async fn loss(guard: &Guard, session: &Session, margin: Duration, revocable: bool) -> Loss {
    let near = async {
        if margin.is_zero() {
            return std::future::pending().await;
        }
        loop {
            // With servers that answer, it never falls much below a third of the session timeout.
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
            // First: a process that has been stopped for long must not do anything else.
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
