//! So many requests on their way at all times; or as many as become due.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    mem,
    task::{Context, Poll, ready},
    time::Instant,
};

use tokio::{sync::mpsc::UnboundedReceiver, task::JoinSet};
use tokio_util::sync::ReusableBoxFuture;

use crate::{
    client::Failure,
    window::{Tally, Until},
};

/// What one operation comes to.
pub(crate) type Done = Result<(), Failure>;

/// A request on its way.
struct Slot {
    future: ReusableBoxFuture<'static, Done>,
    begun: Option<Instant>,
    state: State,
}

enum State {
    /// Nothing is under way.
    Idle,
    UnderWay,
    /// It has come to this before it was awaited.
    Done(Done),
}

impl Slot {
    fn idle() -> Self {
        let future = ReusableBoxFuture::new(async { Ok(()) });
        Self { future, begun: None, state: State::Idle }
    }

    /// Begins an operation; clients that do nothing before they are polled do it now.
    fn begin<F>(&mut self, cx: &mut Context<'_>, future: F, begun: Option<Instant>)
    where
        F: Future<Output = Done> + Send + 'static,
    {
        self.future.set(future);
        self.begun = begun;
        self.state = match self.future.poll(cx) {
            Poll::Ready(done) => State::Done(done),
            Poll::Pending => State::UnderWay,
        };
    }

    /// What it has come to; `None` if there was nothing.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Done>> {
        match mem::replace(&mut self.state, State::Idle) {
            State::Idle => Poll::Ready(None),
            State::Done(done) => Poll::Ready(Some(done)),
            State::UnderWay => {
                let polled = self.future.poll(cx);
                if polled.is_pending() {
                    self.state = State::UnderWay;
                }
                polled.map(Some)
            }
        }
    }
}

/// One task has them all and waits for the oldest, since answers come in order.
///
/// Does not allocate for an operation, whatever the client does.
pub(crate) async fn ring<F, Fut>(
    in_flight: usize,
    mut tally: Tally,
    op: F,
) -> Result<Tally, Failure>
where
    F: Fn(u64) -> Fut,
    Fut: Future<Output = Done> + Send + 'static,
{
    let mut slots: Vec<Slot> = (0..in_flight.max(1)).map(|_| Slot::idle()).collect();
    let (mut begun, mut oldest) = (0, 0);
    let mut begin = |cx: &mut Context<'_>, slot: &mut Slot, tally: &mut Tally| {
        if let Some(at) = tally.next() {
            slot.begin(cx, op(begun), at);
            begun += 1;
        }
    };
    poll_fn(|cx| {
        slots.iter_mut().for_each(|slot| begin(cx, slot, &mut tally));
        Poll::Ready(())
    })
    .await;
    poll_fn(|cx| {
        loop {
            let slot = &mut slots[oldest];
            // The oldest is idle only once all are.
            let Some(done) = ready!(slot.poll(cx)) else { return Poll::Ready(Ok(())) };
            if let Err(failure) = done {
                return Poll::Ready(Err(failure));
            }
            tally.ended(slot.begun);
            begin(cx, slot, &mut tally);
            oldest = (oldest + 1) % slots.len();
        }
    })
    .await
    .map(|()| tally)
}

/// One task begins each when it hears that it is due, and waits for the oldest; what is timed is from when it was due.
pub(crate) async fn paced<F, Fut>(
    mut due: UnboundedReceiver<Instant>,
    op: F,
) -> Result<Tally, Failure>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Done> + Send + 'static,
{
    let (mut under_way, mut idle) = (VecDeque::new(), Vec::new());
    let mut tally = Tally::of(0);
    poll_fn(|cx| {
        let over = loop {
            let Poll::Ready(heard) = due.poll_recv(cx) else { break false };
            let Some(at) = heard else { break true };
            let mut slot = idle.pop().unwrap_or_else(Slot::idle);
            slot.begin(cx, op(), Some(at));
            under_way.push_back(slot);
        };
        while let Some(slot) = under_way.front_mut() {
            let Poll::Ready(done) = slot.poll(cx) else { return Poll::Pending };
            if let Some(Err(failure)) = done {
                return Poll::Ready(Err(failure));
            }
            tally.ended(slot.begun);
            idle.extend(under_way.pop_front());
        }
        if over { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
    .map(|()| tally)
}

/// As many tasks, each with one under way and a tally of its own.
pub(crate) async fn tasks<F, Fut>(
    in_flight: usize,
    tally: fn(Until) -> Tally,
    until: Until,
    op: F,
) -> Result<Tally, Failure>
where
    F: Fn(u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Done> + Send + 'static,
{
    let mut set = JoinSet::new();
    let workers = in_flight.max(1);
    for worker in 0..workers {
        let until = until.share(worker, workers);
        let op = op.clone();
        set.spawn(async move {
            let mut tally = tally(until);
            let mut number = worker as u64;
            while let Some(begun) = tally.next() {
                op(number).await?;
                tally.ended(begun);
                number += workers as u64;
            }
            Ok::<_, Failure>(tally)
        });
    }
    let mut all = Tally::new(until);
    while let Some(joined) = set.join_next().await {
        all.add(joined??);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    };

    use super::*;

    /// Counts how many are under way, and the most that ever were.
    async fn counted(now: Arc<AtomicU64>, most: Arc<AtomicU64>) -> Done {
        most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
        tokio::task::yield_now().await;
        now.fetch_sub(1, Relaxed);
        Ok(())
    }

    #[tokio::test]
    async fn both_styles_finish_the_count_in_flight() {
        for style in ["ring", "tasks"] {
            let (now, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let until = Until::Count(1000);
            let (a, b) = (now.clone(), most.clone());
            let op = move |_| counted(a.clone(), b.clone());
            let tally = match style {
                "ring" => ring(16, Tally::new(until), op).await.unwrap(),
                _ => tasks(16, Tally::new, until, op).await.unwrap(),
            };
            assert_eq!(tally.operations, 1000, "{style}");
            assert_eq!((now.load(Relaxed), most.load(Relaxed)), (0, 16), "{style}");
        }
    }

    #[tokio::test]
    async fn a_failure_ends_the_measurement() {
        let op = |number| async move { if number == 5 { Err("no".into()) } else { Ok(()) } };
        assert!(ring(4, Tally::new(Until::Count(9)), op).await.is_err());
        assert!(tasks(4, Tally::new, Until::Count(9), op).await.is_err());
    }
}
