//! A bounded queue of commands for one task, in the order of their submission.
//!
//! It uses a lock instead of a channel, because the task takes all commands in one step: two buffers are swapped, and
//! both are only as long as the queue. Sending is one push, if a permit is available: see `permits`.

mod permits;
mod receiver;
mod sender;
mod shared;
mod ticket;

use std::sync::Arc;

use self::shared::Shared;

pub(crate) use self::{
    permits::{NeedsPermit, Number, Permit},
    receiver::CommandReceiver,
    sender::{CommandSender, PermitWait, SendError, Sender, WeakCommandSender},
    ticket::Ticket,
};

/// Creates a queue with permits for `requests_max` requests and `bytes_max` bytes, and its first sender.
pub(crate) fn receiver<C: NeedsPermit>(
    requests_max: usize,
    bytes_max: usize,
) -> (CommandSender<C>, CommandReceiver<C>) {
    let shared = Arc::new(Shared::new(requests_max, bytes_max));
    (CommandSender::first(shared.clone()), CommandReceiver::new(shared))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
        task::{Context, Poll, Wake, Waker},
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

    /// The driver does not know yet that the last sender is gone.
    #[test]
    fn withdrawal_needs_no_sender() {
        let (commands, mut receiver) = receiver::<u32>(1, 9);
        commands.submit(1, 1).unwrap();
        let [first, second] = [2, 3].map(|n| commands.submit_in_turn(n, 1).unwrap().unwrap());
        let (first, _second) = (commands.permit_wait(first), commands.permit_wait(second));
        drop(commands);
        drop(first);
        assert_eq!(receiver.poll(&Context::from_waker(Waker::noop())), Poll::Ready(true));
        let sent: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
        assert_eq!((sent, receiver.open().collect()), (vec![1], vec![3]));
    }

    /// Those behind it may have a permit then, though the driver has found that there is nothing left.
    #[test]
    fn withdrawal_behind_the_last_look_loses_nothing() {
        let (commands, mut receiver) = receiver::<u32>(9, 9);
        commands.submit(1, 5).unwrap();
        let [first, second] =
            [9, 1].map(|n| commands.submit_in_turn(n, n as usize).unwrap().unwrap());
        let (first, _second) = (commands.permit_wait(first), commands.permit_wait(second));
        let cx = &Context::from_waker(Waker::noop());
        assert_eq!((receiver.poll(cx), receiver.next()), (Poll::Ready(true), Some(1)));
        drop(commands);
        assert_eq!(receiver.poll(cx), Poll::Ready(false));
        drop(first);
        assert_eq!(receiver.open().collect::<Vec<_>>(), [1]);
    }

    /// They come behind what has been taken, whose turn it is.
    #[test]
    fn opening_takes_nothing_but_the_line() {
        let (commands, mut receiver) = receiver::<u32>(1, 9);
        let cx = &Context::from_waker(Waker::noop());
        commands.submit(1, 1).unwrap();
        commands.submit_in_turn(3, 1).unwrap();
        assert_eq!(receiver.poll(cx), Poll::Ready(true));
        commands.send(2).unwrap();
        assert_eq!(receiver.open().collect::<Vec<_>>(), [3]);
        assert_eq!((receiver.next(), receiver.poll(cx)), (Some(1), Poll::Ready(true)));
        assert_eq!(receiver.next(), Some(2));
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
