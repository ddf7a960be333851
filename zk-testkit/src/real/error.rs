use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::locate::LocateError;

/// What can go wrong with real servers.
///
/// A server that does not come up is quoted: the text ends with the last lines of its log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no ZooKeeper to start.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// There are no programs for Kerberos, or one of them refused something.
    #[error("cannot {action}: {why}")]
    Kerberos {
        /// What was attempted.
        action: &'static str,
        /// What is missing, or what the program said.
        why: String,
    },
    /// The operating system refused something.
    #[error("cannot {action}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The refusal.
        source: io::Error,
    },
    /// The server ended instead of serving.
    #[error("the server ended with {status}; its log ends with\n{log}")]
    Exited {
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// The server runs, but did not begin to serve in time.
    #[error("the server did not serve within {waited:?}; its log ends with\n{log}")]
    NotServing {
        /// How long was waited.
        waited: Duration,
        /// The last lines of its log.
        log: String,
    },
    /// The ensemble did not reach the wanted state in time.
    #[error("the ensemble did not get {wanted} within {waited:?}\n{report}")]
    Ensemble {
        /// The wanted state.
        wanted: &'static str,
        /// How long was waited.
        waited: Duration,
        /// Each member's mode, and the last lines of its log.
        report: String,
    },
    /// The operation needs a running server.
    #[error("the server is not running")]
    NotRunning,
}

impl Error {
    /// Names the attempt that an I/O error belongs to.
    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    /// Whether the server failed because something else has its port.
    pub(super) fn is_port_taken(&self) -> bool {
        let said_so = |log: &str| log.contains("Address already in use");
        match self {
            Self::Exited { log, .. } | Self::NotServing { log, .. } => said_so(log),
            Self::Ensemble { report, .. } => said_so(report),
            Self::Io { .. } | Self::Kerberos { .. } | Self::Locate(_) | Self::NotRunning => false,
        }
    }
}
