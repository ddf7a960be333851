//! Running other programs to completion, one process at a time.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

/// How much of a failed program's output an error message carries.
const OUTPUT_LEN_MAX: usize = 2_000;

/// How often a running program is asked whether it has ended.
const POLL: Duration = Duration::from_millis(20);

/// Runs a program; if it fails or outlives `limit`, the error tells the end of its output.
pub(super) fn run(mut command: Command, limit: Duration) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let unusable = |error: std::io::Error| format!("cannot run {program}: {error}");
    let mut output = tempfile::tempfile().map_err(unusable)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(unusable)?)
        .stderr(output.try_clone().map_err(unusable)?)
        .spawn()
        .map_err(unusable)?;
    let started = Instant::now();
    let outcome = loop {
        match child.try_wait().map_err(unusable)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => break format!("{program} ended with {status}"),
            None if started.elapsed() > limit => {
                // Both fail only if it has just ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                break format!("{program} did not end within {limit:?}");
            }
            None => thread::sleep(POLL),
        }
    };
    Err(format!("{outcome}: {}", tail(&mut output)))
}

fn tail(output: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = output.rewind().and_then(|()| output.read_to_end(&mut bytes));
    match read {
        Ok(_) => {
            let start = bytes.len().saturating_sub(OUTPUT_LEN_MAX);
            String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
        }
        Err(error) => format!("(its output is lost: {error})"),
    }
}

/// Keeps other processes from fetching or installing at the same time, until dropped.
#[derive(Debug)]
pub(super) struct CacheLock {
    // The kernel releases the lock with the file, even if the process is killed.
    file: File,
}

impl Drop for CacheLock {
    /// Closing the file is not enough: a process that another thread is just starting has it open too, until it executes its
    /// program.
    fn drop(&mut self) {
        // Without a lock there is nothing to release.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl CacheLock {
    /// Waits for the lock of this cache directory, which is created if it does not exist.
    pub(super) fn acquire(cache: &Path) -> Result<Self, String> {
        let unusable = |error| format!("cannot lock {}: {error}", cache.display());
        fs::create_dir_all(cache).map_err(unusable)?;
        let file = File::create(cache.join("lock")).map_err(unusable)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Self { file }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(unusable(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo alas >&2; exit 3"]);
        let why = run(command, Duration::from_secs(10)).expect_err("a failure");
        assert!(why.contains("alas") && why.contains('3'), "{why}");
    }

    #[test]
    fn program_past_its_time_limit_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "exec sleep 60"]);
        let why = run(command, Duration::from_millis(50)).expect_err("a failure");
        assert!(why.contains("did not end"), "{why}");
    }

    #[test]
    fn cache_lock_excludes_a_second_holder() {
        let cache = tempfile::tempdir().expect("a temporary directory");
        let first = CacheLock::acquire(cache.path()).expect("the lock");
        let other = File::open(cache.path().join("lock")).expect("the lock file");
        let attempt = || rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(attempt(), Err(rustix::io::Errno::WOULDBLOCK));
        // As a process has it that is being started.
        let _inherited = first.file.try_clone().expect("a descriptor");
        drop(first);
        assert_eq!(attempt(), Ok(()));
    }
}
