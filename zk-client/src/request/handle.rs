//! A caller's connection to the driver.

use std::{
    any::Any,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex},
    task::Waker,
};

use futures_core::future::BoxFuture;
use zk_proto::AclList;

use crate::{
    carry::{attempt::ProtectedCreate, known::Known, session::Session},
    chroot::Chroot,
    driver::{
        command::{Cleanup, Command, CommandSender, Purpose, Submission},
        frames::Frames,
    },
    error::SessionEnd,
    ids::Ids,
    queue::{NeedsPermit as _, Number, SendError},
    report::stats::Counters,
    request::{call_options::CallOptions, held::Held},
};

/// A caller's connection to the driver. A clone copies one pointer.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) options: CallOptions,
    view: Arc<View>,
}

/// The state in which clients of one session may differ.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) shared: Arc<Shared>,
    pub(crate) chroot: Chroot,
    /// Present if the client is for cleaning up.
    pub(crate) cleanup: Option<Arc<Cleanup>>,
    /// The options as they were before the client was made patient.
    pub(crate) told: CallOptions,
    /// The access control list of nodes created without their own.
    pub(crate) acl: AclList,
    /// The submissions held back, if any.
    pub(crate) held: Option<Arc<Held>>,
}

/// The state shared by all clients of one session.
pub(crate) struct Shared {
    pub(crate) commands: CommandSender,
    pub(crate) session: Session,
    pub(crate) ids: Ids,
    pub(crate) counters: Arc<Counters>,
    pub(crate) frames: Arc<Frames>,
    /// Events kept for a listener, by default.
    pub(crate) watch_items_max: usize,
    pub(crate) spawn: Spawn,
    pub(crate) extensions: Extensions,
}

impl Shared {
    pub(crate) const fn known(&self) -> &Arc<Known> {
        self.session.known()
    }
}

impl Deref for Handle {
    type Target = View;
    fn deref(&self) -> &View {
        &self.view
    }
}

/// Which session it is of; not what is queued and counted there.
impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("session", &self.shared.session)
            .field("chroot", &self.chroot)
            .finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(options: CallOptions, view: View) -> Self {
        Self { options, view: Arc::new(view) }
    }

    /// Changes this client without affecting others of the same session.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut View)) {
        change(Arc::make_mut(&mut self.view));
    }

    /// Passes a submission on, or holds it back. If the driver has ended, its caller gets an error.
    pub(crate) fn send(&self, submission: Submission) {
        let submission = match &self.held {
            None => submission,
            Some(held) => match held.keep(submission) {
                None => return,
                Some(submission) => submission,
            },
        };
        // Another cork may hold some that come before.
        self.send_held_so_far();
        self.command(Command::Submit(self.purpose(), submission));
    }

    /// As `send`, for a submission of `len` bytes. Returns it if there is no room.
    pub(crate) fn submit(&self, mut submission: Submission, len: usize) -> Result<(), Command> {
        if self.held.is_some() {
            let Some(permit) = self.shared.commands.take_permit(len) else {
                return Err(Command::Submit(self.purpose(), submission));
            };
            submission.permit_granted(permit);
            self.send(submission);
            return Ok(());
        }
        match self.shared.commands.submit(Command::Submit(self.purpose(), submission), len) {
            Ok(()) => Ok(()),
            Err(SendError::NoPermit(command)) => Err(command),
            Err(SendError::Closed(command)) => {
                command.refuse(self.end(), &self.shared.counters);
                Ok(())
            }
        }
    }

    /// Passes on a protected create, as soon as there is room for it.
    pub(crate) fn create(&self, create: Box<ProtectedCreate>) {
        let len = create.len();
        if let Err(command) = self.submit(Submission::Create(create, None), len) {
            self.submit_in_turn(command, len);
        }
    }

    /// Passes on a command of `len` bytes as soon as there is room for it, behind all that wait. Returns its number in
    /// the line, if it waits.
    pub(crate) fn submit_in_turn(&self, command: Command, len: usize) -> Option<Number> {
        // The driver may make room for it at any moment, and it comes behind what is held back.
        self.send_held_so_far();
        self.shared.commands.submit_in_turn(command, len).unwrap_or_else(|refused| {
            refused.refuse(self.end(), &self.shared.counters);
            None
        })
    }

    /// Passes on a command that needs no room and cannot be held back, behind all that wait or are held back.
    pub(crate) fn command_in_turn(&self, command: Command) {
        self.send_held_so_far();
        if let Err(refused) = self.shared.commands.send_in_turn(command) {
            refused.refuse(self.end(), &self.shared.counters);
        }
    }

    /// Sends the submissions held back so far, for something that comes behind them and cannot be held back.
    pub(crate) fn send_held_so_far(&self) {
        let Some(held) = &self.held else { return };
        // Under the cork's lock, and others are woken behind it.
        let sent = held.pass_on(|batch| {
            self.shared.commands.send_asleep(Command::Batch(self.purpose(), batch))
        });
        match sent {
            None => {}
            Some(Ok(driver)) => driver.into_iter().for_each(Waker::wake),
            Some(Err(refused)) => refused.refuse(self.end(), &self.shared.counters),
        }
    }

    /// Sends all submissions held back, in one write, and holds no more back.
    pub(crate) fn send_held(&self) {
        if let Some(held) = &self.held {
            held.stop();
        }
        self.send_held_so_far();
    }

    /// Why the driver has ended.
    fn end(&self) -> SessionEnd {
        self.shared.session.end().unwrap_or(SessionEnd::Closed)
    }

    pub(super) fn purpose(&self) -> Purpose {
        if self.cleanup.is_some() { Purpose::Cleanup } else { Purpose::Use }
    }

    pub(crate) fn command(&self, command: Command) {
        if let Err(refused) = self.shared.commands.send(command) {
            refused.refuse(self.end(), &self.shared.counters);
        }
    }
}

/// Values of libraries built on the session: one per type.
#[derive(Debug, Default)]
pub(crate) struct Extensions(pub(crate) Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

/// Spawns tasks.
pub(crate) struct Spawn(Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>);

impl Spawn {
    pub(crate) fn new(chosen: Option<Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>>) -> Self {
        Self(chosen.unwrap_or_else(|| {
            let runtime = tokio::runtime::Handle::current();
            Arc::new(move |task| drop(runtime.spawn(task)))
        }))
    }

    pub(crate) fn run(&self, task: BoxFuture<'static, ()>) {
        (self.0)(task);
    }
}

impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawn")
    }
}
