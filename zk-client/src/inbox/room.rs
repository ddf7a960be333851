//! Room for requests: so many, and so many bytes. Whoever finds none waits behind all who came before.

use std::{
    collections::VecDeque,
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::oneshot;

use super::Shared;

/// What is left for requests of one session.
#[derive(Debug)]
pub(super) struct Room {
    left: Amount,
    bytes_max: u64,
    queue: VecDeque<Waiter>,
}

/// Requests, and bytes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    requests: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Waiter {
    cost: Cost,
    granted: oneshot::Sender<Share>,
}

/// Bytes that a request takes up, besides a place among the requests. To be given back when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost(NonZeroU32);

/// Room that was waited for; given back when it is dropped, unless it was used.
#[derive(Debug)]
pub(crate) struct Share {
    shared: Arc<Shared>,
    cost: Option<Cost>,
}

/// Those who have room now, to be told so when nothing is locked.
#[must_use = "they wait"]
#[derive(Debug)]
pub(super) struct Granted(Vec<Waiter>);

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
        Self { left, bytes_max, queue: VecDeque::new() }
    }

    /// One that is longer than everything there is room for gets all of it.
    fn cost(&self, len: usize) -> Cost {
        let bytes = (len as u64).clamp(1, self.bytes_max);
        Cost(u32::try_from(bytes).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX))
    }

    /// Room for a request of `len` bytes, if there is some and nobody waits for it.
    pub(super) fn take_now(&mut self, len: usize) -> Option<Cost> {
        let cost = self.cost(len);
        (self.queue.is_empty() && self.take(cost)).then_some(cost)
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

    /// A place in the line for room for `len` bytes.
    pub(super) fn wait(&mut self, len: usize) -> (oneshot::Receiver<Share>, Granted) {
        let (granted, share) = oneshot::channel();
        let cost = self.cost(len);
        self.queue.push_back(Waiter { cost, granted });
        (share, self.serve())
    }

    /// Room is given back.
    pub(super) fn give_back(&mut self, amount: Amount) -> Granted {
        self.left.requests += amount.requests;
        self.left.bytes += amount.bytes;
        self.serve()
    }

    /// Lets everybody in: what they want is refused elsewhere.
    pub(super) fn close(&mut self) -> Granted {
        self.left = Amount::ENDLESS;
        self.serve()
    }

    /// Gives what is left to those who wait, in their order.
    fn serve(&mut self) -> Granted {
        let mut served = Vec::new();
        while let Some(waiter) = self.queue.pop_front() {
            if !waiter.granted.is_closed() {
                if !self.take(waiter.cost) {
                    self.queue.push_front(waiter);
                    break;
                }
                served.push(waiter);
            }
        }
        Granted(served)
    }
}

impl Granted {
    pub(super) fn tell(self, shared: &Arc<Shared>) {
        for Waiter { cost, granted } in self.0 {
            // Who has gone meanwhile gives it back.
            let _ = granted.send(Share { shared: shared.clone(), cost: Some(cost) });
        }
    }
}

impl Share {
    /// Uses it.
    pub(crate) fn into_cost(mut self) -> Option<Cost> {
        self.cost.take()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(cost) = self.cost else { return };
        let mut amount = Amount::default();
        amount.add(cost);
        let granted = self.shared.lock().room.give_back(amount);
        granted.tell(&self.shared);
    }
}

/// Waiting for room. Dropping it gives up the place.
#[derive(Debug)]
pub(crate) struct Waiting {
    share: oneshot::Receiver<Share>,
    shared: Arc<Shared>,
}

impl Waiting {
    pub(super) fn new(shared: &Arc<Shared>, len: usize) -> Self {
        let (share, granted) = shared.lock().room.wait(len);
        granted.tell(shared);
        Self { share, shared: shared.clone() }
    }
}

impl Future for Waiting {
    /// Always a share: the line lives as long as this.
    type Output = Option<Share>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.share).poll(cx).map(Result::ok)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.share.close();
        // There may be room for those behind.
        let granted = self.shared.lock().room.serve();
        granted.tell(&self.shared);
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Waker, thread};

    use super::*;

    /// Where requests come from.
    struct Entrance(Arc<Shared>);

    impl Entrance {
        fn new(requests_max: usize, bytes_max: usize) -> Self {
            Self(Arc::new(Shared::new(requests_max, bytes_max)))
        }

        fn take_now(&self, len: usize) -> Option<Share> {
            let cost = self.0.lock().room.take_now(len);
            cost.map(|cost| Share { shared: self.0.clone(), cost: Some(cost) })
        }

        fn take(&self, len: usize) -> Waiting {
            Waiting::new(&self.0, len)
        }
    }

    fn poll(waiting: &mut Waiting) -> Poll<Option<Share>> {
        Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn those_who_wait_are_served_in_their_order_and_before_others() {
        let room = Entrance::new(10, 100);
        let all = room.take_now(100).unwrap();
        let (mut long, mut short) = (room.take(60), room.take(10));
        assert!(poll(&mut long).is_pending() && poll(&mut short).is_pending());
        drop(all);
        assert!(room.take_now(70).is_none(), "only what is left");
        let (Poll::Ready(long), Poll::Ready(short)) = (poll(&mut long), poll(&mut short)) else {
            panic!("there is room for both");
        };
        drop((long, short));
        assert!(room.take_now(1000).is_some(), "a longer one gets everything");
    }

    #[test]
    fn nobody_overtakes_one_who_waits_for_more() {
        let room = Entrance::new(10, 100);
        let half = room.take_now(50).unwrap();
        let mut long = room.take(60);
        assert!(poll(&mut long).is_pending());
        assert!(room.take_now(10).is_none(), "there is room, and a queue");
        let mut behind = room.take(10);
        assert!(poll(&mut behind).is_pending());
        drop(long);
        assert!(poll(&mut behind).is_ready(), "the one in front has given up");
        drop((half, behind));
        assert!(room.take_now(100).is_some());
    }

    #[test]
    fn requests_are_counted_too() {
        let room = Entrance::new(2, 100);
        let (a, _b) = (room.take_now(1).unwrap(), room.take_now(1).unwrap());
        assert!(room.take_now(1).is_none());
        drop(a);
        assert!(room.take_now(1).is_some());
    }

    #[test]
    fn a_share_that_nobody_fetches_is_given_back() {
        let room = Entrance::new(1, 100);
        let one = room.take_now(1).unwrap();
        let waiting = room.take(1);
        drop(one);
        drop(waiting);
        assert!(room.take_now(1).is_some());
    }

    #[test]
    fn many_threads_leave_everything_as_it_was() {
        let room = Entrance::new(3, 100);
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        thread::scope(|scope| {
            for thread in 0..4 {
                let room = &room;
                scope.spawn(move || {
                    runtime().block_on(async {
                        for turn in 0..2_000 {
                            let len = (turn * 7 + thread * 31) % 90;
                            if let Some(share) = room.take_now(len) {
                                drop(share);
                            } else if turn % 3 == 0 {
                                drop(room.take(len));
                            } else {
                                drop(room.take(len).await.unwrap());
                            }
                        }
                    });
                });
            }
        });
        let state = room.0.lock();
        assert!(state.room.queue.is_empty());
        assert_eq!(state.room.left, Amount { requests: 3, bytes: 100 });
    }

    #[test]
    fn who_waits_when_nobody_is_left_to_ask_is_let_in() {
        let room = Entrance::new(1, 100);
        let _one = room.take_now(1).unwrap();
        let mut waiting = room.take(1);
        assert!(poll(&mut waiting).is_pending());
        room.0.lock().room.close().tell(&room.0);
        assert!(poll(&mut waiting).is_ready());
        assert!(room.take_now(1).is_some(), "and whoever comes later");
    }
}
