//! A bounded queue of commands for one task, in the order of their submission.
//!
//! It uses a lock instead of a channel, because the task takes all commands in one step: two buffers are swapped, and
//! both are only as long as the queue. Sending is one push, if a permit is available: see `room`.

mod permits;
mod ticket;

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use self::permits::{Amount, Permits};

#[cfg(feature = "metrics")]
use crate::report::level::Level;

pub(crate) use self::{
    permits::{NeedsPermit, Number, Permit},
    ticket::Ticket,
};

/// A sender of commands. The driver is informed when the last one has been dropped.
#[derive(Debug)]
pub(crate) struct CommandSender<C>(Arc<Sender<C>>);

/// A sender that the driver does not wait for.
#[derive(Debug)]
pub(crate) struct WeakCommandSender<C>(Weak<Sender<C>>);

/// The driver's end.
#[derive(Debug)]
pub(crate) struct CommandReceiver<C: NeedsPermit> {
    shared: Arc<Shared<C>>,
    /// Commands that the driver has taken and not yet carried out.
    taken: VecDeque<C>,
    /// Permits to be given back.
    freed: Amount,
}

/// Why a command is returned to its sender.
#[derive(Debug)]
pub(crate) enum SendError<C> {
    NoPermit(C),
    /// The driver has ended.
    Closed(C),
}

/// A place in the line for a permit. Dropping it withdraws the command that waits there; if that has been sent, nothing
/// happens.
#[derive(Debug)]
pub(crate) struct PermitWait<C: NeedsPermit> {
    commands: WeakCommandSender<C>,
    number: Number,
}

/// The shared sender behind all `CommandSender`, dropped with the last of them.
#[derive(Debug)]
pub(crate) struct Sender<C>(Arc<Shared<C>>);

#[derive(Debug)]
struct Shared<C>(Mutex<State<C>>);

/// Nothing that is dropped while it is locked sends commands: neither commands nor wakers do.
#[derive(Debug)]
struct State<C> {
    commands: VecDeque<C>,
    /// The waker of a waiting driver.
    waker: Option<Waker>,
    /// Whether all senders have been dropped.
    abandoned: bool,
    /// Whether the driver accepts no more.
    closed: bool,
    permits: Permits<C>,
}

/// Creates a queue with permits for `requests_max` requests and `bytes_max` bytes, and its first sender.
pub(crate) fn receiver<C: NeedsPermit>(
    requests_max: usize,
    bytes_max: usize,
) -> (CommandSender<C>, CommandReceiver<C>) {
    let shared = Arc::new(Shared::new(requests_max, bytes_max));
    let sender = Sender(shared.clone());
    let receiver = CommandReceiver { shared, taken: VecDeque::new(), freed: Amount::default() };
    (CommandSender(Arc::new(sender)), receiver)
}

impl<C> Clone for CommandSender<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Clone for WeakCommandSender<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Sender<C> {
    /// Sends a command; returns it if the driver has ended.
    pub(crate) fn send(&self, command: C) -> Result<(), C> {
        let state = self.0.lock();
        if state.closed {
            return Err(command);
        }
        push(state, command);
        Ok(())
    }

    /// As [`send`](Self::send), behind all commands that wait for a permit. It needs none itself.
    pub(crate) fn send_in_turn(&self, command: C) -> Result<(), C> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(command);
        }
        if let Some(command) = state.permits.follow(command) {
            push(state, command);
        }
        Ok(())
    }
}

impl<C: NeedsPermit> CommandSender<C> {
    /// Sends a command of `len` bytes, if a permit is available.
    pub(crate) fn submit(&self, mut command: C, len: usize) -> Result<(), SendError<C>> {
        let mut state = self.0.0.lock();
        if state.closed {
            return Err(SendError::Closed(command));
        }
        let Some(permit) = state.permits.take_now(len) else {
            return Err(SendError::NoPermit(command));
        };
        command.permit_granted(permit);
        push(state, command);
        Ok(())
    }

    /// Sends a command of `len` bytes as soon as a permit is available, behind all that wait for one. Returns its
    /// number in the line, if it waits.
    pub(crate) fn submit_in_turn(&self, mut command: C, len: usize) -> Result<Option<Number>, C> {
        let mut state = self.0.0.lock();
        if state.closed {
            return Err(command);
        }
        let Some(permit) = state.permits.take_now(len) else {
            return Ok(Some(state.permits.wait(len, command)));
        };
        command.permit_granted(permit);
        push(state, command);
        Ok(None)
    }

    /// Ties the command that waits at this place to the caller that wants it.
    pub(crate) fn permit_wait(&self, number: Number) -> PermitWait<C> {
        PermitWait { commands: self.downgrade(), number }
    }
}

impl<C> CommandSender<C> {
    /// Sends a command; returns it if the driver has ended.
    pub(crate) fn send(&self, command: C) -> Result<(), C> {
        self.0.send(command)
    }

    /// As [`send`](Self::send), behind all commands that wait for a permit.
    pub(crate) fn send_in_turn(&self, command: C) -> Result<(), C> {
        self.0.send_in_turn(command)
    }

    /// Reports there how many commands wait for a permit. Must not use this queue.
    #[cfg(feature = "metrics")]
    pub(crate) fn report_line(&self, level: Level) {
        self.0.0.lock().permits.report_len(level);
    }

    /// Takes a permit for `len` bytes, if available, for a command that is sent later.
    pub(crate) fn take_permit(&self, len: usize) -> Option<Permit> {
        self.0.0.lock().permits.take_now(len)
    }

    pub(crate) fn downgrade(&self) -> WeakCommandSender<C> {
        WeakCommandSender(Arc::downgrade(&self.0))
    }

    /// Returns the shared sender, without keeping it alive.
    pub(crate) fn sender(&self) -> Weak<Sender<C>> {
        Arc::downgrade(&self.0)
    }
}

impl<C> WeakCommandSender<C> {
    /// `None` if all other senders have been dropped.
    pub(crate) fn upgrade(&self) -> Option<CommandSender<C>> {
        self.0.upgrade().map(CommandSender)
    }
}

impl<C: NeedsPermit> CommandReceiver<C> {
    /// Takes new commands, if all taken before have been carried out: whether [`CommandReceiver::next`] has one. Pending
    /// if there is none yet, false if there will never be.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<bool> {
        if !self.taken.is_empty() {
            return Poll::Ready(true);
        }
        let mut state = self.shared.lock();
        mem::swap(&mut state.commands, &mut self.taken);
        if !self.taken.is_empty() {
            return Poll::Ready(true);
        }
        if state.abandoned {
            return Poll::Ready(false);
        }
        if state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        drop(state);
        // Cloning and dropping a waker runs foreign code: not under the lock.
        let waker = cx.waker().clone();
        let mut state = self.shared.lock();
        let waits = state.commands.is_empty() && !state.abandoned;
        // One that does not go to sleep is not to be woken.
        let unneeded = if waits { state.waker.replace(waker) } else { Some(waker) };
        drop(state);
        drop(unneeded);
        if waits { Poll::Pending } else { self.poll(cx) }
    }

    /// Returns the oldest of the commands taken.
    pub(crate) fn next(&mut self) -> Option<C> {
        self.taken.pop_front()
    }

    /// Marks a permit as free: it is available with the next [`CommandReceiver::give_back`].
    pub(crate) fn free(&mut self, permit: Option<Permit>) {
        permit.into_iter().for_each(|permit| self.freed.add(permit));
    }

    /// Gives all freed permits back in one step, which costs as much as giving back a single one.
    pub(crate) fn give_back(&mut self) {
        let freed = mem::take(&mut self.freed);
        if !freed.is_none() {
            let mut state = self.shared.lock();
            state.permits.give_back(freed);
            serve(state);
        }
    }

    /// Whether every command sent has been carried out.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.shared.lock().commands.is_empty()
    }

    /// Takes all commands that wait for permits. No more are needed from now on.
    pub(crate) fn open(&self) -> impl Iterator<Item = C> + use<C> {
        let mut state = self.shared.lock();
        state.permits.open();
        let line: Vec<C> = std::iter::from_fn(|| state.permits.serve()).collect();
        drop(state);
        line.into_iter()
    }

    /// Closes the queue, and returns the remaining commands.
    pub(crate) fn close(&mut self) -> impl Iterator<Item = C> + use<C> {
        let mut rest = mem::take(&mut self.taken);
        let mut state = self.shared.lock();
        state.closed = true;
        rest.append(&mut state.commands);
        state.permits.open();
        rest.extend(std::iter::from_fn(|| state.permits.serve()));
        drop(state);
        rest.into_iter()
    }

    /// Releases memory while the queue is idle.
    pub(crate) fn shrink(&mut self) {
        self.taken.shrink_to_fit();
        self.shared.lock().commands.shrink_to_fit();
    }
}

/// Closes the queue and drops the commands, and with them the reply channels that callers may be waiting on.
impl<C: NeedsPermit> Drop for CommandReceiver<C> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<C> Shared<C> {
    fn new(requests_max: usize, bytes_max: usize) -> Self {
        Self(Mutex::new(State {
            commands: VecDeque::new(),
            waker: None,
            abandoned: false,
            closed: false,
            permits: Permits::new(requests_max, bytes_max),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a command, and wakes a waiting driver.
fn push<C>(mut state: MutexGuard<'_, State<C>>, command: C) {
    state.commands.push_back(command);
    let waker = state.waker.take();
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}

/// Sends every waiting command for which there is a permit, and wakes a waiting driver.
fn serve<C: NeedsPermit>(mut state: MutexGuard<'_, State<C>>) {
    let before = state.commands.len();
    while let Some(command) = state.permits.serve() {
        state.commands.push_back(command);
    }
    let waker = if state.commands.len() > before { state.waker.take() } else { None };
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}

impl<C: NeedsPermit> Drop for PermitWait<C> {
    fn drop(&mut self) {
        // With the last sender gone, all have been sent.
        let Some(commands) = self.commands.upgrade() else { return };
        let mut state = commands.0.0.lock();
        let left = state.permits.leave(self.number);
        if left.is_some() {
            // There may be permits for those behind.
            serve(state);
        }
    }
}

impl<C> Drop for Sender<C> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.abandoned = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
        task::Wake,
        thread,
    };

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    impl NeedsPermit for u32 {
        fn permit_granted(&mut self, _: Permit) {}
    }

    #[test]
    fn commands_keep_order_and_wake_task_once() {
        let (commands, mut receiver) = receiver::<u32>(9, 9);
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(woken.clone());
        let cx = &Context::from_waker(&waker);
        assert!(receiver.poll(cx).is_pending());
        (1..=3).for_each(|n| commands.send(n).unwrap());
        assert_eq!(woken.0.load(SeqCst), 1, "the first one wakes it");
        assert!(!receiver.is_empty());
        assert_eq!(receiver.poll(cx), Poll::Ready(true));
        commands.send(4).unwrap();
        assert_eq!(woken.0.load(SeqCst), 1, "it is awake");
        let mut seen = Vec::new();
        while receiver.poll(cx) == Poll::Ready(true) {
            seen.extend(receiver.next());
        }
        assert_eq!(seen, [1, 2, 3, 4]);
        assert!(receiver.is_empty());
    }

    #[test]
    fn last_sender_gone_is_seen_after_commands() {
        let (commands, mut receiver) = receiver::<u32>(9, 9);
        let weak = commands.downgrade();
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(woken.clone());
        let cx = &Context::from_waker(&waker);
        let other = weak.upgrade().unwrap();
        assert!(receiver.poll(cx).is_pending());
        drop(commands);
        assert_eq!(woken.0.load(SeqCst), 0, "there is another");
        other.send(1).unwrap();
        assert_eq!(receiver.poll(cx), Poll::Ready(true));
        drop(other);
        assert!(weak.upgrade().is_none());
        assert_eq!(receiver.poll(cx), Poll::Ready(true), "not before the last command");
        assert!(receiver.next().is_some());
        assert_eq!(receiver.poll(cx), Poll::Ready(false));
    }

    #[test]
    fn what_comes_too_late_comes_back() {
        let (commands, mut receiver) = receiver::<u32>(9, 9);
        commands.send(1).unwrap();
        assert_eq!(receiver.close().collect::<Vec<_>>(), [1]);
        assert_eq!(commands.send(2), Err(2));
        drop(receiver);
        assert!(commands.send(3).is_err());
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const EACH: usize = 2_000;
        let (commands, mut receiver) = receiver::<u32>(9, 9);
        let start = Barrier::new(3);
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(woken.clone());
        thread::scope(|scope| {
            for _ in 0..2 {
                let (commands, start) = (commands.clone(), &start);
                scope.spawn(move || {
                    start.wait();
                    (0..EACH).for_each(|_| commands.send(1).unwrap());
                });
            }
            drop(commands);
            start.wait();
            let (mut seen, mut asleep) = (0, 0);
            loop {
                let before = woken.0.load(SeqCst);
                match receiver.poll(&Context::from_waker(&waker)) {
                    Poll::Ready(true) => seen += usize::from(receiver.next().is_some()),
                    Poll::Ready(false) => break,
                    Poll::Pending => {
                        asleep += 1;
                        while woken.0.load(SeqCst) == before {
                            thread::yield_now();
                        }
                    }
                }
            }
            assert_eq!(seen, 2 * EACH);
            assert_eq!(woken.0.load(SeqCst), asleep, "woken as often as it slept");
        });
    }
}
