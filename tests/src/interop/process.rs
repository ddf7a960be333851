//! A contender's process.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

/// Between two looks at a process that is to end.
const LOOK: Duration = Duration::from_millis(20);

/// A contender's process, which is killed when this is dropped.
///
/// If this process is killed itself, the contender finds the end of its input, and ends. One that is stopped at that
/// time is woken by the kernel, which does that for orphaned process groups.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a contender, which appends what it has to say to `log`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn start(mut command: Command, log: &Path) -> io::Result<Self> {
        let output = File::options().append(true).create(true).open(log)?;
        let child = command
            // Held open as long as we live, and never written to.
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Lets go of it, as if this process had been killed.
    pub fn abandon(&mut self) {
        drop(self.child.stdin.take());
    }

    /// SIGKILL, and waits for its end.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn pause(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::STOP)?)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn resume(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::CONT)?)
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits for its end until `limit` after `begun`; returns what is wrong with that end, if anything is.
    ///
    /// # Errors
    /// The operating system refuses.
    pub async fn trouble_in_the_end(
        &mut self,
        begun: Instant,
        limit: Duration,
    ) -> io::Result<Option<String>> {
        let mut status = self.ended()?;
        while status.is_none() && begun.elapsed() < limit {
            sleep(LOOK).await;
            status = self.ended()?;
        }
        Ok(match status {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("ended with {status}")),
            None => Some("has not come to its end".to_owned()),
        })
    }

    /// The last lines that it, or one before it, has written.
    #[must_use]
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only for a process that has ended and been waited for.
        let _ = self.kill();
    }
}
