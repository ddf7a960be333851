//! Room for requests: so many, and so many bytes. What finds none waits behind all that came before.
//!
//! It is the submissions that wait, and not their callers: room that were kept for a caller who is busy elsewhere would be
//! missing to whatever that one is waiting for.

use std::{collections::BTreeMap, num::NonZeroU32};

use crate::{
    call::{Command, Submission},
    cleanup::Purpose,
};

/// What is left for requests of one session.
#[derive(Debug)]
pub(super) struct Room {
    left: Amount,
    bytes_max: u64,
    line: BTreeMap<Number, Waiter>,
    next: Number,
}

/// A place in the line.
pub(crate) type Number = u64;

/// Requests, and bytes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    requests: u64,
    bytes: u64,
}

/// Something that is to be sent as soon as there is room for it.
#[derive(Debug)]
struct Waiter {
    cost: Cost,
    purpose: Purpose,
    submission: Submission,
}

/// Bytes that a request takes up, besides a place among the requests. To be given back when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost(NonZeroU32);

impl Amount {
    /// More than is ever taken; with what is given back it still can be counted.
    const ENDLESS: Self = Self { requests: u64::MAX / 2, bytes: u64::MAX / 2 };

    pub(super) const fn add(&mut self, Cost(bytes): Cost) {
        self.requests += 1;
        self.bytes += bytes.get() as u64;
    }

    pub(super) const fn is_none(self) -> bool {
        self.requests == 0
    }
}

impl Room {
    pub(super) fn new(requests_max: usize, bytes_max: usize) -> Self {
        let bytes_max = (bytes_max as u64).max(1);
        let left = Amount { requests: (requests_max as u64).max(1), bytes: bytes_max };
        Self { left, bytes_max, line: BTreeMap::new(), next: 0 }
    }

    /// One that is longer than everything there is room for gets all of it.
    fn cost(&self, len: usize) -> Cost {
        let bytes = (len as u64).clamp(1, self.bytes_max);
        Cost(u32::try_from(bytes).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX))
    }

    /// Room for a request of `len` bytes, if there is some and nobody waits for it.
    pub(super) fn take_now(&mut self, len: usize) -> Option<Cost> {
        let cost = self.cost(len);
        (self.line.is_empty() && self.take(cost)).then_some(cost)
    }

    fn take(&mut self, Cost(bytes): Cost) -> bool {
        let bytes = u64::from(bytes.get());
        let is_enough = self.left.requests > 0 && self.left.bytes >= bytes;
        if is_enough {
            self.left.requests -= 1;
            self.left.bytes -= bytes;
        }
        is_enough
    }

    /// A place in the line for a submission of `len` bytes. There is no room for it now.
    pub(super) fn wait(&mut self, len: usize, purpose: Purpose, submission: Submission) -> Number {
        let number = self.next;
        self.next += 1;
        self.line.insert(number, Waiter { cost: self.cost(len), purpose, submission });
        number
    }

    /// Takes back what still waits.
    pub(super) fn leave(&mut self, number: Number) -> Option<Submission> {
        self.line.remove(&number).map(|waiter| waiter.submission)
    }

    /// Room is given back.
    pub(super) const fn give_back(&mut self, amount: Amount) {
        self.left.requests += amount.requests;
        self.left.bytes += amount.bytes;
    }

    /// Lets everybody in: what they want is refused elsewhere.
    pub(super) const fn open(&mut self) {
        self.left = Amount::ENDLESS;
    }

    /// What comes next in the line, if there is room for it.
    pub(super) fn serve(&mut self) -> Option<Command> {
        let (_, first) = self.line.first_key_value()?;
        if !self.take(first.cost) {
            return None;
        }
        let (_, Waiter { cost, purpose, mut submission }) = self.line.pop_first()?;
        submission.pay(Some(cost));
        Some(Command::Submit(purpose, submission))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Poll, Waker},
        thread,
    };

    use tokio::sync::oneshot;
    use zk_proto::{
        OpCode, Str,
        frame::RequestFrame,
        request::GetDataRequest,
        session::{OnLoss, Outcome, Outgoing, Over, Patience},
    };

    use super::*;
    use crate::{
        call::{Caller, Token},
        inbox::{Commands, InLine, Inbox, Unsent, inbox},
    };

    fn submission(path: &str) -> (Submission, oneshot::Receiver<Outcome>) {
        let (reply, outcome) = oneshot::channel();
        let request = Outgoing {
            frame: RequestFrame::of(&GetDataRequest { path: Str::from(path), watch: false }),
            token: Token::Caller(Caller::new(OpCode::GET_DATA, reply, None)),
            watch: None,
            on_loss: OnLoss::Resend,
            patience: Patience::Connections,
        };
        (Submission::Request(request), outcome)
    }

    fn len_of(path: &str) -> usize {
        RequestFrame::of(&GetDataRequest { path: Str::from(path), watch: false }).len()
    }

    fn submit(commands: &Commands, path: &str, len: usize) -> bool {
        match commands.submit(Purpose::Use, submission(path).0, len) {
            Ok(()) => true,
            Err(Unsent::NoRoom(_)) => false,
            Err(Unsent::Closed(_)) => panic!("nobody has closed it"),
        }
    }

    fn wait(commands: &Commands, path: &str, len: usize) -> Option<InLine> {
        let place = commands.submit_in_turn(Purpose::Use, submission(path).0, len).unwrap();
        place.map(|place| commands.in_line(place))
    }

    /// What has been sent since: the paths, by their lengths, and the room.
    fn sent(inbox: &mut Inbox) -> (Vec<usize>, Vec<Cost>) {
        let mut commands = Vec::new();
        while inbox.poll(&Context::from_waker(Waker::noop())) == Poll::Ready(true) {
            commands.extend(inbox.next());
        }
        let one = |command: Command| match command {
            Command::Submit(_, submission) => {
                let cost = submission.cost().expect("all are paid for");
                let Submission::Request(request) = submission else { panic!("a request") };
                (request.frame.len() - len_of(""), cost)
            }
            _ => panic!("another command"),
        };
        commands.into_iter().map(one).unzip()
    }

    fn free(inbox: &mut Inbox, costs: Vec<Cost>) {
        costs.into_iter().for_each(|cost| inbox.free(Some(cost)));
        inbox.give_back();
    }

    #[test]
    fn those_that_wait_are_sent_in_their_order_and_before_others() {
        let (commands, mut inbox) = inbox(10, 100);
        assert!(submit(&commands, "/all", 100));
        let _long = wait(&commands, "/long", 60).unwrap();
        let _short = wait(&commands, "/short", 10).unwrap();
        let (paths, costs) = sent(&mut inbox);
        assert_eq!(paths, ["/all".len()]);
        free(&mut inbox, costs);
        assert!(!submit(&commands, "/late", 70), "only what is left");
        let (paths, costs) = sent(&mut inbox);
        assert_eq!(
            paths,
            ["/long".len(), "/short".len()],
            "whether anybody looks after them or not"
        );
        free(&mut inbox, costs);
        assert!(submit(&commands, "/longer", 1000), "a longer one gets everything");
        assert!(!submit(&commands, "/more", 1));
    }

    #[test]
    fn nothing_overtakes_what_waits_for_more_unless_that_is_taken_back() {
        let (commands, mut inbox) = inbox(10, 100);
        assert!(submit(&commands, "/half", 50));
        let long = wait(&commands, "/long", 60).unwrap();
        assert!(!submit(&commands, "/little", 10), "there is room, and a line");
        let behind = wait(&commands, "/behind", 10).unwrap();
        assert_eq!(sent(&mut inbox).0, ["/half".len()]);
        drop(long);
        assert_eq!(sent(&mut inbox).0, ["/behind".len()], "the one in front has been taken back");
        drop(behind);
        assert!(wait(&commands, "/rest", 40).is_none(), "there is room at once");
    }

    #[test]
    fn requests_are_counted_too() {
        let (commands, mut inbox) = inbox(2, 100);
        assert!(submit(&commands, "/a", 1) && submit(&commands, "/b", 1));
        assert!(!submit(&commands, "/c", 1));
        let mut costs = sent(&mut inbox).1;
        costs.truncate(1);
        free(&mut inbox, costs);
        assert!(submit(&commands, "/c", 1));
    }

    #[test]
    fn what_waits_for_a_driver_that_has_gone_is_refused() {
        let (commands, mut inbox) = inbox(1, 100);
        assert!(submit(&commands, "/a", 1));
        let (waiting, mut outcome) = submission("/b");
        commands.submit_in_turn(Purpose::Use, waiting, 1).unwrap();
        for command in inbox.close() {
            let Command::Submit(_, submission) = command else { panic!("another command") };
            submission.refuse(crate::SessionEnd::Closed);
        }
        let why = zk_proto::session::Cause::SessionOver(Over::Closed);
        assert_eq!(outcome.try_recv().unwrap(), Outcome::NotSent(why));
        assert!(commands.submit_in_turn(Purpose::Use, submission("/c").0, 1).is_err());
    }

    #[test]
    fn many_threads_leave_everything_as_it_was() {
        let (commands, mut inbox) = inbox(3, 100);
        thread::scope(|scope| {
            for thread in 0..4 {
                let commands = commands.clone();
                scope.spawn(move || {
                    for turn in 0..2_000 {
                        let len = (turn * 7 + thread * 31) % 90;
                        if !submit(&commands, "/now", len) {
                            if turn % 3 == 0 {
                                drop(wait(&commands, "/taken-back", len));
                            } else {
                                let one = submission("/in-turn").0;
                                commands.submit_in_turn(Purpose::Use, one, len).unwrap();
                            }
                        }
                    }
                });
            }
            drop(commands);
            while inbox.poll(&Context::from_waker(Waker::noop())) != Poll::Ready(false) {
                let (_, costs) = sent(&mut inbox);
                free(&mut inbox, costs);
            }
        });
        let state = inbox.shared.lock();
        assert!(state.room.line.is_empty());
        assert_eq!(state.room.left, Amount { requests: 3, bytes: 100 });
    }
}
