//! What must be done before a session is left: the part of it that is done by tasks.

use std::sync::Arc;

use crate::driver::command::{Command, Commands};

/// Keeps the session from being left until it goes. The driver counts these; beginning and end are commands like
/// others, so that whoever begins one and then leaves the session is sure to be heard in this order.
#[derive(Debug)]
pub(crate) struct Cleanup {
    commands: Commands,
}

impl Cleanup {
    pub(crate) fn begin(commands: &Commands) -> Arc<Self> {
        // Without a driver there is no session to be left.
        let _ = commands.send(Command::CleanupBegins);
        Arc::new(Self { commands: commands.clone() })
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::CleanupEnds);
    }
}
