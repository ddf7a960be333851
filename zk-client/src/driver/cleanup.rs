//! Work by tasks that must be done before a session is left.

use std::sync::Arc;

use crate::driver::command::{Command, Commands};

/// Keeps the session from being left until dropped. The driver counts these; beginning and end are ordinary commands,
/// so that a task that begins one and then leaves the session is handled in this order.
#[derive(Debug)]
pub(crate) struct Cleanup {
    commands: Commands,
}

impl Cleanup {
    pub(crate) fn begin(commands: &Commands) -> Arc<Self> {
        // Without a driver there is no session to leave.
        let _ = commands.send(Command::CleanupBegins);
        Arc::new(Self { commands: commands.clone() })
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::CleanupEnds);
    }
}
