//! The end of the command if this process is killed, which it cannot see to itself: a second process does, which waits for
//! the end of the first.

use std::{
    io::{self, BufRead as _, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdin, Command, Stdio},
    thread::{sleep, spawn},
    time::{Duration, Instant},
};
#[cfg(target_os = "linux")]
use std::{os::fd::AsRawFd as _, path::PathBuf};

use clap::ValueEnum as _;
use rustix::{
    io::Errno,
    process::{
        Pid, Signal, kill_process, kill_process_group, test_kill_process, test_kill_process_group,
    },
};

use super::processes::{GONE_POLL, Group};
use crate::{
    args::GuardArgs,
    exit::{Exit, Failure},
    render::complain,
};

/// What `ps` shows of it. It is not called like this program: what kills all of those by name is to spare it.
const NAME: &str = "lock-guardian";

/// What it is told when the command has ended, and nothing is left to be done.
const DONE: &str = "done";

/// A process that ends a command when this process has died without doing it.
#[derive(Debug)]
pub(crate) struct Guardian {
    process: Child,
    input: ChildStdin,
}

impl Guardian {
    /// Starts it, with the time that the command is to have from being asked to end to being killed.
    pub(crate) fn start(grace: Duration) -> io::Result<Self> {
        let program = match cfg!(target_os = "linux") {
            // What runs, also when another file has its name by now.
            true => "/proc/self/exe".into(),
            false => std::env::current_exe()?,
        };
        let mut command = Command::new(program);
        command.arg0(NAME).args(["guard", &grace.as_millis().to_string()]);
        // Not in the group of this process, which Ctrl-C is for; standard output may be read to its end.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut process = command.spawn()?;
        let input = process.stdin.take().ok_or_else(|| io::Error::other("no pipe to it"))?;
        Ok(Self { process, input })
    }

    /// Tells it which process to end, with its group if that is its own.
    pub(crate) fn watch(&mut self, pid: Pid, group: Group) -> io::Result<()> {
        writeln!(self.input, "{group} {}", pid.as_raw_pid())
    }

    /// Where the command can tell it so itself.
    #[cfg(target_os = "linux")]
    pub(super) fn input(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.input.as_raw_fd()).into()
    }

    /// Tells it that the command has ended.
    pub(crate) fn dismiss(mut self) {
        // It is gone itself if it does not hear it.
        let _ = writeln!(self.input, "{DONE}");
        drop(self.input);
        // A shell has many of them, one after the other.
        let mut process = self.process;
        spawn(move || process.wait());
    }
}

/// What the second process does.
pub(crate) fn run(args: &GuardArgs) -> Result<Exit, Failure> {
    let mut target = None;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(Failure::local("standard input"))?;
        if line == DONE {
            return Ok(Exit::Done);
        }
        target = Target::parse(&line);
    }
    if let Some(target) = target.filter(Target::is_there) {
        complain(&"killed while its command ran; ending the command");
        target.end(Duration::from_millis(args.grace));
    }
    Ok(Exit::Done)
}

/// What to end. It stays what it is for as long as the first process lives, which reaps it; after that, its number is not
/// given to another process within seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    group: Group,
    pid: Pid,
}

impl Target {
    fn parse(line: &str) -> Option<Self> {
        let (group, pid) = line.split_once(' ')?;
        // Number 1 is the system's.
        let pid = Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 1)?)?;
        Some(Self { group: Group::from_str(group, false).ok()?, pid })
    }

    fn is_there(&self) -> bool {
        let there = match self.group {
            Group::Own => test_kill_process_group(self.pid),
            Group::Ours => test_kill_process(self.pid),
        };
        there != Err(Errno::SRCH)
    }

    fn signal(&self, signal: Signal) {
        // It fails if there is nothing left to signal, which is looked for anyway.
        let _ = match self.group {
            Group::Own => kill_process_group(self.pid, signal),
            Group::Ours => kill_process(self.pid, signal),
        };
    }

    fn end(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        self.signal(Signal::TERM);
        // One that is stopped would not hear the request.
        self.signal(Signal::CONT);
        while self.is_there() {
            if Instant::now() >= deadline {
                return self.signal(Signal::KILL);
            }
            sleep(GONE_POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_commands_are_ended() {
        let pid = Pid::from_raw(7).unwrap();
        assert_eq!(Target::parse("group 7"), Some(Target { group: Group::Own, pid }));
        assert_eq!(Target::parse("process 7"), Some(Target { group: Group::Ours, pid }));
        for line in ["", "group", "group 0", "group 1", "process -1", "all 7", "group x"] {
            assert_eq!(Target::parse(line), None, "{line:?}");
        }
    }
}
