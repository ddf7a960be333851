//! The command: started, signalled, ended.

use std::{
    ffi::OsString, os::unix::process::ExitStatusExt as _, process::ExitStatus, time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

#[cfg(target_os = "linux")]
use super::launcher;
use super::{
    guardian::Guardian,
    processes::{GONE_POLL, Group, failed, in_foreground},
};
use crate::{
    exit::{Exit, Failure},
    render::complain,
};

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Job {
    child: Child,
    pid: Pid,
    group: Group,
    guardian: Option<Guardian>,
}

impl Job {
    /// Starts a command, with our own input and output, and with additions to our environment. If this process is killed,
    /// the command is ended within the given time.
    pub(crate) fn start(
        command: &[OsString],
        environment: [(&str, String); 2],
        group: Group,
        grace: Duration,
    ) -> Result<Self, Failure> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| Failure::new(Exit::Usage, "no command to run"))?;
        let unguarded = |error| {
            complain(&format_args!("the command would outlive a kill of zk, no guardian: {error}"));
        };
        let mut guardian = Guardian::start(grace).map_err(unguarded).ok();
        let mut starting = match &guardian {
            // It is this program at first, and tells the guardian of itself before it becomes the command.
            #[cfg(target_os = "linux")]
            Some(guardian) => launcher::command(&guardian.input(), group, program),
            _ => Command::new(program),
        };
        starting.args(arguments).envs(environment);
        if group == Group::Own {
            starting.process_group(0);
        }
        let child = starting.spawn().map_err(failed(program))?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pid = pid.expect("a child that was not waited for has a process id");
        if let Some(Err(error)) = guardian.as_mut().map(|guardian| guardian.watch(pid, group)) {
            unguarded(error);
        }
        Ok(Self { child, pid, group, guardian })
    }

    /// Waits until the command has ended by itself.
    pub(crate) async fn ended(&mut self) -> Result<ExitStatus, Failure> {
        let ended = self.child.wait().await;
        self.dismiss_guardian();
        ended.map_err(Failure::local("cannot wait for the command"))
    }

    /// Passes on a signal that we have been sent, unless the command has been sent it too.
    pub(crate) fn pass_on(&self, signal: Signal) {
        let by_terminal = matches!(signal, Signal::INT | Signal::QUIT);
        // Looked up anew: a shell may have put us into the background meanwhile.
        if self.group == Group::Ours && by_terminal && in_foreground() {
            return;
        }
        self.signal(signal);
    }

    /// Signals all of the command that can be distinguished from others.
    pub(crate) fn signal(&self, signal: Signal) {
        // It fails if there is no process left to signal, which is found out by waiting.
        let _ = match self.group {
            Group::Own => kill_process_group(self.pid, signal),
            // Its number may be another process's once it has been waited for.
            Group::Ours if self.child.id().is_some() => kill_process(self.pid, signal),
            Group::Ours => Ok(()),
        };
    }

    /// Ends the command: asks it to, and kills what has not ended after a time of grace.
    pub(crate) async fn end(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        // One that is stopped would not hear the request.
        self.signal(Signal::CONT);
        let gone = async {
            // There is nothing that could be done about an error, here and below.
            let _ = self.child.wait().await;
            while self.has_descendants() {
                sleep(GONE_POLL).await;
            }
        };
        if timeout(grace, gone).await.is_err() {
            self.signal(Signal::KILL);
            let _ = self.child.wait().await;
        }
        self.dismiss_guardian();
    }

    /// Only when the command has ended: in all other cases the guardian is to end it.
    fn dismiss_guardian(&mut self) {
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }

    /// Whether processes are left in the command's group. In our group they cannot be distinguished from others.
    ///
    /// A group's number stays taken as long as it has members, and is not given out again at once
    /// afterwards.
    fn has_descendants(&self) -> bool {
        self.group == Group::Own && test_kill_process_group(self.pid).is_ok()
    }
}

/// How we end when the command has ended so.
pub(crate) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Command(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Command(u8::MAX),
    }
}
