//! Room for requests: so many, and so many bytes. Whoever finds none waits behind all who came before.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

use tokio::sync::oneshot;

/// Of a word that counts both, the lower bits count bytes, up to a terabyte, and the upper ones requests. So both are
/// taken and given back in one step.
const BYTES_BITS: u32 = 40;
const BYTES_MAX: u64 = (1 << BYTES_BITS) - 1;
/// One bit less than there is: what is given back does not overflow.
const REQUESTS_MAX: u64 = (1 << (u64::BITS - BYTES_BITS - 1)) - 1;

/// What is left for requests of one session.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    left: AtomicU64,
    /// How many are in the queue: as long as it is 0, nobody locks it.
    waiting: AtomicUsize,
    queue: Mutex<VecDeque<Waiter>>,
    bytes_max: u64,
}

#[derive(Debug)]
struct Waiter {
    cost: u64,
    granted: oneshot::Sender<Share>,
}

/// A request's share; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<Shared>,
    cost: u64,
}

impl Room {
    pub(crate) fn new(requests_max: usize, bytes_max: usize) -> Self {
        let requests_max = (requests_max as u64).clamp(1, REQUESTS_MAX);
        let bytes_max = (bytes_max as u64).clamp(1, BYTES_MAX);
        Self(Arc::new(Shared {
            left: AtomicU64::new(requests_max << BYTES_BITS | bytes_max),
            waiting: AtomicUsize::new(0),
            queue: Mutex::default(),
            bytes_max,
        }))
    }

    /// One request and its bytes. One that is longer than everything there is room for gets all of it.
    fn cost(&self, len: usize) -> u64 {
        1 << BYTES_BITS | (len as u64).min(self.0.bytes_max)
    }

    fn share(&self, cost: u64) -> Share {
        Share { room: self.0.clone(), cost }
    }

    /// A share for a request of `len` bytes, if there is room and nobody waits for it.
    pub(crate) fn take_now(&self, len: usize) -> Option<Share> {
        let cost = self.cost(len);
        let is_free = self.0.waiting.load(SeqCst) == 0;
        (is_free && self.0.take(cost)).then(|| self.share(cost))
    }

    /// A share for a request of `len` bytes, as soon as there is room.
    pub(crate) fn take(&self, len: usize) -> Waiting {
        let (granted, share) = oneshot::channel();
        self.0.queue().push_back(Waiter { cost: self.cost(len), granted });
        // From here on, whoever gives something back looks at the queue. What was given back before is there to be
        // taken.
        self.0.waiting.fetch_add(1, SeqCst);
        self.0.serve();
        Waiting { share, room: self.0.clone() }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Waiter>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, cost: u64) -> bool {
        let rest = |left: u64| {
            let bytes = (left & BYTES_MAX).checked_sub(cost & BYTES_MAX)?;
            let requests = (left >> BYTES_BITS).checked_sub(cost >> BYTES_BITS)?;
            Some(requests << BYTES_BITS | bytes)
        };
        self.left.fetch_update(SeqCst, SeqCst, rest).is_ok()
    }

    fn give_back(self: &Arc<Self>, cost: u64) {
        self.left.fetch_add(cost, SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            self.serve();
        }
    }

    /// Gives what is left to those who wait, in their order.
    fn serve(self: &Arc<Self>) {
        let mut served = Vec::new();
        let mut queue = self.queue();
        while let Some(Waiter { cost, granted }) = queue.front() {
            let has_gone = granted.is_closed();
            if !has_gone && !self.take(*cost) {
                break;
            }
            let share = (!has_gone).then(|| Share { room: self.clone(), cost: *cost });
            served.extend(queue.pop_front().map(|waiter| (waiter.granted, share)));
            self.waiting.fetch_sub(1, SeqCst);
        }
        drop(queue);
        for (granted, share) in served {
            // Who has gone meanwhile gives it back, which is no business of the queue that was locked.
            drop(share.map(|share| granted.send(share)));
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.give_back(self.cost);
    }
}

/// Waiting for a share. Dropping it gives up the place.
#[derive(Debug)]
pub(crate) struct Waiting {
    share: oneshot::Receiver<Share>,
    room: Arc<Shared>,
}

impl Future for Waiting {
    /// Always a share: the queue lives as long as this.
    type Output = Option<Share>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.share).poll(cx).map(Result::ok)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.share.close();
        // There may be room for those behind.
        if self.room.waiting.load(SeqCst) > 0 {
            self.room.serve();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{task::Waker, thread};

    use super::*;

    fn poll(waiting: &mut Waiting) -> Poll<Option<Share>> {
        Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn those_who_wait_are_served_in_their_order_and_before_others() {
        let room = Room::new(10, 100);
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
        let room = Room::new(10, 100);
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
        let room = Room::new(2, 100);
        let (a, _b) = (room.take_now(1).unwrap(), room.take_now(1).unwrap());
        assert!(room.take_now(1).is_none());
        drop(a);
        assert!(room.take_now(1).is_some());
    }

    #[test]
    fn a_share_that_nobody_fetches_is_given_back() {
        let room = Room::new(1, 100);
        let one = room.take_now(1).unwrap();
        let waiting = room.take(1);
        drop(one);
        drop(waiting);
        assert!(room.take_now(1).is_some());
    }

    #[test]
    fn many_threads_leave_everything_as_it_was() {
        let room = Room::new(3, 100);
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
        assert_eq!(room.0.waiting.load(SeqCst), 0);
        assert_eq!(room.0.left.load(SeqCst), 3 << BYTES_BITS | 100);
    }
}
