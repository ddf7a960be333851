//! A caller's end of the way to the driver.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use zk_proto::AclList;

use crate::{
    carry::{attempt::ProtectedCreate, level::Level, published::Published},
    chroot::Chroot,
    driver::{
        cleanup::Cleanup,
        command::{Command, Commands, Purpose, Submission},
        frames::Frames,
    },
    ids::Ids,
    queue::{Charged as _, Number, Unsent},
    report::stats::Counters,
    request::call_options::CallOptions,
};

/// A caller's end of the way to the driver.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) commands: Commands,
    pub(crate) published: watch::Receiver<Published>,
    pub(crate) chroot: Chroot,
    pub(crate) level: Arc<Level>,
    pub(crate) ids: Arc<Ids>,
    /// Whether all of this is for cleaning up.
    pub(crate) cleanup: Option<Arc<Cleanup>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) options: CallOptions,
    /// The same as they were before the client was made patient.
    pub(crate) told: CallOptions,
    /// Of nodes that are created without a list of their own.
    pub(crate) acl: AclList,
    /// Events kept for a listener, unless it wants otherwise.
    pub(crate) watch_items_max: usize,
    /// Where submissions are held back, while they are.
    pub(crate) held: Option<Arc<Held>>,
}

/// Submissions that are held back; none once they have been let go.
pub(crate) type Held = Mutex<Option<Vec<Submission>>>;

impl Handle {
    /// Passes a submission on, or holds it back. If there is no driver any more, whoever waits for it is
    /// told so.
    pub(crate) fn send(&self, submission: Submission) {
        if let Some(held) = &self.held {
            if let Some(held) = &mut *held.lock().unwrap_or_else(PoisonError::into_inner) {
                held.push(submission);
                return;
            }
        }
        self.command(Command::Submit(self.purpose(), submission));
    }

    /// The same, of one of `len` bytes. It comes back if there is no room for it.
    pub(crate) fn submit(&self, mut submission: Submission, len: usize) -> Result<(), Command> {
        if self.held.is_some() {
            let Some(cost) = self.commands.take_room(len) else {
                return Err(Command::Submit(self.purpose(), submission));
            };
            submission.charge(cost);
            self.send(submission);
            return Ok(());
        }
        match self.commands.submit(Command::Submit(self.purpose(), submission), len) {
            Ok(()) => Ok(()),
            Err(Unsent::NoRoom(command)) => Err(command),
            Err(Unsent::Closed(command)) => {
                command.refuse(self.published.borrow().end());
                Ok(())
            }
        }
    }

    /// Passes on a protected create, as soon as there is room for it.
    pub(crate) fn create(&self, create: Box<ProtectedCreate>) {
        let len = create.len();
        let mut submission = Submission::Create(create, None);
        if self.held.is_some() {
            if let Some(cost) = self.commands.take_room(len) {
                submission.charge(cost);
                return self.send(submission);
            }
        }
        self.submit_in_turn(Command::Submit(self.purpose(), submission), len);
    }

    /// Passes on a command of `len` bytes as soon as there is room for it, behind all that wait for some. Returns its
    /// place among them, if it waits.
    pub(crate) fn submit_in_turn(&self, command: Command, len: usize) -> Option<Number> {
        self.commands.submit_in_turn(command, len).unwrap_or_else(|refused| {
            refused.refuse(self.published.borrow().end());
            None
        })
    }

    /// Passes on all that was held back, to leave in one write.
    pub(crate) fn send_held(&self) {
        let Some(held) = &self.held else { return };
        let batch = held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(batch) = batch.filter(|batch| !batch.is_empty()) {
            self.command(Command::Batch(self.purpose(), batch));
        }
    }

    const fn purpose(&self) -> Purpose {
        if self.cleanup.is_some() { Purpose::Cleanup } else { Purpose::Use }
    }

    pub(crate) fn command(&self, command: Command) {
        if let Err(refused) = self.commands.send(command) {
            refused.refuse(self.published.borrow().end());
        }
    }
}
