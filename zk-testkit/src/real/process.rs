//! A server's process, and the watchdog that outlives us to clean up.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Waits for one line on its input, then becomes the given command.
///
/// So the command does not exist before the watchdog knows its process id, and never exists if
/// this process dies in between.
const HELD_BACK: &str = r#"read -r go && exec "$0" "$@" </dev/null"#;

/// Reads process ids, one a line, of which the last one counts (an empty line: none). When its
/// input ends, because this process is gone however it went, it kills that process and removes
/// the directory.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then kill -KILL "$pid"; fi
rm -rf -- "$1"
"#;

/// A child process that is killed and reaped when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts a command whose output goes to `log`.
    pub(super) fn start(
        program: &Path,
        arguments: &[std::ffi::OsString],
        log: &File,
        watchdog: &mut Watchdog,
    ) -> io::Result<Self> {
        let mut child = Command::new("sh")
            .args(["-c", HELD_BACK])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            // A Ctrl-C at the terminal is for the tests; the watchdog does the rest.
            .process_group(0)
            .spawn()?;
        let go = child.stdin.take();
        // From here on an early return kills the child.
        let process = Self { child };
        watchdog.guard(process.id())?;
        go.ok_or_else(no_pipe)?.write_all(b"go\n")?;
        Ok(process)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, once the process has ended.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends a signal. The process is not reaped before `self` notices its end, so the id cannot
    /// belong to another process yet.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Stops all threads of the process, and waits until they have stopped.
    pub(super) fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        let this = WaitId::Pid(Pid::from_child(&self.child));
        // Returns within microseconds, and at once if the process has ended instead. An end is
        // not waited for, so it stays to be noticed by `ended`; nor is the news of the stop taken
        // away, which comes once: a process that has been stopped already is not waited for.
        waitid(this, WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT)?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and been reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A tiny shell process that kills the guarded process and removes its directory, if this
/// process ends without doing so: killed, aborted, or by `exit`.
#[derive(Debug)]
pub(super) struct Watchdog {
    child: Child,
    orders: ChildStdin,
}

impl Watchdog {
    /// Starts a watchdog for processes that live in `directory`.
    pub(super) fn start(directory: &Path) -> io::Result<Self> {
        let mut child = Command::new("sh")
            .args(["-c", WATCHDOG, "zk-testkit-watchdog"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Test runners kill the whole group of a test that takes too long.
            .process_group(0)
            .spawn()?;
        let orders = child.stdin.take().ok_or_else(no_pipe)?;
        Ok(Self { child, orders })
    }

    fn guard(&mut self, process: u32) -> io::Result<()> {
        writeln!(self.orders, "{process}")
    }

    /// To be called as soon as the process is reaped: its id may soon be another process's.
    pub(super) fn forget(&mut self) {
        // Fails only if the watchdog was killed by another process; then nothing is guarded anyway.
        let _ = writeln!(self.orders);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Both fail only if another process has killed it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn no_pipe() -> io::Error {
    io::Error::other("a child with piped input has no pipe")
}
