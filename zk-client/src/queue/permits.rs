//! Permits for requests: a limited number of requests and of their bytes. A request without one waits in line.
//!
//! The submissions wait, not their callers: a permit reserved for a caller that is busy elsewhere would be missing for
//! the request that this caller is waiting for.

use std::{collections::BTreeMap, num::NonZeroU32};

use crate::report::level::Level;

/// Commands that may need a permit, and keep it.
pub(crate) trait NeedsPermit {
    /// Stores the permit that was granted.
    fn permit_granted(&mut self, permit: Permit);
}

/// The permits left for requests of one session.
#[derive(Debug)]
pub(super) struct Permits<C> {
    left: Amount,
    bytes_max: u64,
    line: BTreeMap<Number, Waiter<C>>,
    next: Number,
    /// How many are in the line, for whoever watches over that.
    len: Level,
}

/// A place in the line.
pub(crate) type Number = u64;

/// Requests, and bytes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    requests: u64,
    bytes: u64,
}

/// A command that is sent as soon as there is a permit for it.
#[derive(Debug)]
struct Waiter<C> {
    /// `None` if it only waits for those before it.
    permit: Option<Permit>,
    command: C,
}

/// A permit: the bytes of a request, besides its place among the requests. Given back when the request is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permit(NonZeroU32);

impl Amount {
    /// More than is ever taken, with headroom for what is given back.
    const ENDLESS: Self = Self { requests: u64::MAX / 2, bytes: u64::MAX / 2 };

    pub(super) const fn add(&mut self, Permit(bytes): Permit) {
        self.requests += 1;
        self.bytes += bytes.get() as u64;
    }

    pub(super) const fn is_none(self) -> bool {
        self.requests == 0
    }
}

impl<C> Permits<C> {
    pub(super) fn new(requests_max: usize, bytes_max: usize) -> Self {
        let bytes_max = (bytes_max as u64).max(1);
        let left = Amount { requests: (requests_max as u64).max(1), bytes: bytes_max };
        Self { left, bytes_max, line: BTreeMap::new(), next: 0, len: Level::default() }
    }

    /// Reports the length of the line there from now on.
    #[cfg(feature = "metrics")]
    pub(super) fn report_len(&mut self, level: Level) {
        self.len = level;
    }

    /// A request longer than the total limit is charged the total limit.
    fn permit(&self, len: usize) -> Permit {
        let bytes = (len as u64).clamp(1, self.bytes_max);
        Permit(u32::try_from(bytes).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX))
    }

    /// Takes a permit for a request of `len` bytes, if one is available and no request waits.
    pub(super) fn take_now(&mut self, len: usize) -> Option<Permit> {
        let permit = self.permit(len);
        (self.line.is_empty() && self.take(permit)).then_some(permit)
    }

    fn take(&mut self, Permit(bytes): Permit) -> bool {
        let bytes = u64::from(bytes.get());
        let is_enough = self.left.requests > 0 && self.left.bytes >= bytes;
        if is_enough {
            self.left.requests -= 1;
            self.left.bytes -= bytes;
        }
        is_enough
    }

    /// Adds a command of `len` bytes to the line. There is no permit for it now.
    pub(super) fn wait(&mut self, len: usize, command: C) -> Number {
        let permit = Some(self.permit(len));
        self.line_up(Waiter { permit, command })
    }

    /// Adds a command that needs no permit to the line; returns it if there is no line.
    pub(super) fn follow(&mut self, command: C) -> Option<C> {
        if self.line.is_empty() {
            return Some(command);
        }
        self.line_up(Waiter { permit: None, command });
        None
    }

    fn line_up(&mut self, waiter: Waiter<C>) -> Number {
        let number = self.next;
        self.next += 1;
        self.line.insert(number, waiter);
        self.len.set(self.line.len());
        number
    }

    /// Withdraws a command that still waits.
    pub(super) fn leave(&mut self, number: Number) -> Option<C> {
        let left = self.line.remove(&number);
        self.len.set(self.line.len());
        left.map(|waiter| waiter.command)
    }

    /// Gives permits back.
    pub(super) const fn give_back(&mut self, amount: Amount) {
        self.left.requests += amount.requests;
        self.left.bytes += amount.bytes;
    }

    /// Lifts the limits: the commands are refused elsewhere.
    pub(super) const fn open(&mut self) {
        self.left = Amount::ENDLESS;
    }
}

impl<C: NeedsPermit> Permits<C> {
    /// Returns the first command in the line, if there is a permit for it.
    pub(super) fn serve(&mut self) -> Option<C> {
        let (_, first) = self.line.first_key_value()?;
        if first.permit.is_some_and(|permit| !self.take(permit)) {
            return None;
        }
        let (_, Waiter { permit, mut command }) = self.line.pop_first()?;
        self.len.set(self.line.len());
        if let Some(permit) = permit {
            command.permit_granted(permit);
        }
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Poll, Waker},
        thread,
    };

    use super::*;
    use crate::queue::{PermitWait, SendError, receiver};

    type CommandSender = crate::queue::CommandSender<One>;
    type CommandReceiver = crate::queue::CommandReceiver<One>;

    #[derive(Debug)]
    struct One {
        name: &'static str,
        permit: Option<Permit>,
    }

    impl NeedsPermit for One {
        fn permit_granted(&mut self, permit: Permit) {
            self.permit = Some(permit);
        }
    }

    const fn one(name: &'static str) -> One {
        One { name, permit: None }
    }

    fn submit(commands: &CommandSender, name: &'static str, len: usize) -> bool {
        match commands.submit(one(name), len) {
            Ok(()) => true,
            Err(SendError::NoPermit(_)) => false,
            Err(SendError::Closed(_)) => panic!("it is open"),
        }
    }

    fn wait(commands: &CommandSender, name: &'static str, len: usize) -> Option<PermitWait<One>> {
        let place = commands.submit_in_turn(one(name), len).unwrap();
        place.map(|place| commands.permit_wait(place))
    }

    /// The commands sent since, and their permits.
    fn sent(receiver: &mut CommandReceiver) -> (Vec<&'static str>, Vec<Permit>) {
        let mut commands = Vec::new();
        while receiver.poll(&Context::from_waker(Waker::noop())) == Poll::Ready(true) {
            commands.extend(receiver.next());
        }
        let granted = |One { name, permit }| (name, permit.expect("all are granted for"));
        commands.into_iter().map(granted).unzip()
    }

    fn free(receiver: &mut CommandReceiver, permits: Vec<Permit>) {
        permits.into_iter().for_each(|permit| receiver.free(Some(permit)));
        receiver.give_back();
    }

    #[test]
    fn waiting_requests_are_sent_first_in_order() {
        let (commands, mut receiver) = receiver(10, 100);
        assert!(submit(&commands, "all", 100));
        let _long = wait(&commands, "long", 60).unwrap();
        let _short = wait(&commands, "short", 10).unwrap();
        let (names, permits) = sent(&mut receiver);
        assert_eq!(names, ["all"]);
        free(&mut receiver, permits);
        assert!(!submit(&commands, "late", 70), "only what is left");
        let (names, permits) = sent(&mut receiver);
        assert_eq!(names, ["long", "short"], "whether anybody looks after them or not");
        free(&mut receiver, permits);
        assert!(submit(&commands, "longer", 1000), "a longer one gets everything");
        assert!(!submit(&commands, "more", 1));
    }

    #[test]
    fn nothing_overtakes_a_large_waiting_one() {
        let (commands, mut receiver) = receiver(10, 100);
        assert!(submit(&commands, "half", 50));
        let long = wait(&commands, "long", 60).unwrap();
        assert!(!submit(&commands, "little", 10), "there is room, and a line");
        let behind = wait(&commands, "behind", 10).unwrap();
        assert_eq!(sent(&mut receiver).0, ["half"]);
        drop(long);
        assert_eq!(sent(&mut receiver).0, ["behind"], "the one in front has been taken back");
        drop(behind);
        assert!(wait(&commands, "rest", 40).is_none(), "there is room at once");
    }

    #[test]
    fn requests_are_counted_too() {
        let (commands, mut receiver) = receiver(2, 100);
        assert!(submit(&commands, "a", 1) && submit(&commands, "b", 1));
        assert!(!submit(&commands, "c", 1));
        let mut permits = sent(&mut receiver).1;
        permits.truncate(1);
        free(&mut receiver, permits);
        assert!(submit(&commands, "c", 1));
    }

    /// Also if there is room for what waits before the driver gets that far.
    #[test]
    fn last_command_overtakes_none_that_waits() {
        let (commands, mut receiver) = receiver(1, 100);
        let next = |receiver: &mut CommandReceiver| {
            let is_any = receiver.poll(&Context::from_waker(Waker::noop())) == Poll::Ready(true);
            is_any.then(|| receiver.next().unwrap())
        };
        assert!(submit(&commands, "first", 1));
        let first = next(&mut receiver).unwrap();
        let _waits = wait(&commands, "waits", 1).unwrap();
        commands.send_last(one("last")).unwrap();
        receiver.free(first.permit);
        receiver.give_back();
        let names: Vec<_> =
            std::iter::from_fn(|| next(&mut receiver)).map(|one| one.name).collect();
        assert_eq!(names, ["waits", "last"]);
    }

    #[test]
    fn closed_queue_returns_waiting_requests() {
        let (commands, mut receiver) = receiver(1, 100);
        assert!(submit(&commands, "a", 1));
        commands.submit_in_turn(one("b"), 1).unwrap();
        let rest: Vec<_> = receiver.close().map(|one| one.name).collect();
        assert_eq!(rest, ["a", "b"]);
        assert_eq!(commands.submit_in_turn(one("c"), 1).unwrap_err().name, "c");
    }

    #[test]
    fn many_threads_leave_everything_as_it_was() {
        let (commands, mut receiver) = receiver(3, 100);
        thread::scope(|scope| {
            for thread in 0..4 {
                let commands = commands.clone();
                scope.spawn(move || {
                    for turn in 0..2_000 {
                        let len = (turn * 7 + thread * 31) % 90;
                        if !submit(&commands, "now", len) {
                            if turn % 3 == 0 {
                                drop(wait(&commands, "taken back", len));
                            } else {
                                commands.submit_in_turn(one("in turn"), len).unwrap();
                            }
                        }
                    }
                });
            }
            drop(commands);
            while receiver.poll(&Context::from_waker(Waker::noop())) != Poll::Ready(false) {
                let (_, permits) = sent(&mut receiver);
                free(&mut receiver, permits);
            }
        });
        let state = receiver.shared.lock();
        assert!(state.permits.line.is_empty());
        assert_eq!(state.permits.left, Amount { requests: 3, bytes: 100 });
    }
}
