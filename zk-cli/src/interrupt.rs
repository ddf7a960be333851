//! Being told to end, by commands that run until they are.

use crate::exit::{Exit, Failure};
#[cfg(unix)]
use crate::lock::signals::{FOR_THE_COMMAND, Signals};

/// Catches what ends a command, from its making on.
#[derive(Debug)]
pub(crate) struct Interrupt {
    #[cfg(unix)]
    signals: Signals,
}

impl Interrupt {
    #[cfg(unix)]
    pub(crate) fn catch() -> Result<Self, Failure> {
        let mut signals = Signals::default();
        signals.catch(FOR_THE_COMMAND)?;
        Ok(Self { signals })
    }

    #[cfg(not(unix))]
    pub(crate) fn catch() -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// How to end.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Exit {
        Exit::Signal(self.signals.next().await.as_raw())
    }

    /// How to end.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Exit {
        match tokio::signal::ctrl_c().await {
            // As shells say it of an interrupt.
            Ok(()) => Exit::Signal(2),
            Err(_) => std::future::pending().await,
        }
    }
}
