use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

use super::error::Error;
use super::process::{Process, Watchdog};

/// A server's process, while there is one, and the watchdog of all its processes.
#[derive(Debug)]
pub(super) struct Life {
    // Dropped before the watchdog, which so has nothing left to do.
    process: Option<Process>,
    watchdog: Watchdog,
    log_start: u64,
}

impl Life {
    /// Starts the watchdog of a server that lives in `directory`; the server is down.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self { process: None, watchdog: Watchdog::start(directory)?, log_start: 0 })
    }

    /// Starts the process, unless there is one.
    pub(super) fn launch(
        &mut self,
        java: &Path,
        arguments: &[OsString],
        log: &Path,
    ) -> io::Result<()> {
        if !self.reap()? {
            return Ok(());
        }
        let log = File::options().append(true).create(true).open(log)?;
        self.log_start = log.metadata()?.len();
        self.process = Some(Process::start(java, arguments, &log, &mut self.watchdog)?);
        Ok(())
    }

    /// How long the log was when the present process, or the last one, started.
    pub(super) fn log_start(&self) -> u64 {
        self.log_start
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// The process, which may have ended without our noticing.
    pub(super) fn running(&mut self) -> Result<&mut Process, Error> {
        self.process.as_mut().ok_or(Error::NotRunning)
    }

    /// Notices the end of the process; true if there is none (any more).
    pub(super) fn reap(&mut self) -> io::Result<bool> {
        let Some(process) = &mut self.process else {
            return Ok(true);
        };
        if process.ended()?.is_none() {
            return Ok(false);
        }
        self.forget();
        Ok(true)
    }

    /// Lets go of a process that has ended.
    pub(super) fn forget(&mut self) {
        self.process = None;
        self.watchdog.forget();
    }
}
