//! Futures that are given up at a chosen point.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use tokio::sync::Notify;

/// Polls a future until it has been pending so often, and then drops it. Its output, if it was ready
/// before.
pub async fn dropped_after<F: Future>(pending: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = pending;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        let polled = future.as_mut().poll(cx).map(Some);
        left -= 1;
        if polled.is_pending() && left == 0 { Poll::Ready(None) } else { polled }
    })
    .await
}

/// Polls a future until something else has happened, and then drops it.
pub async fn dropped_when<F: Future>(happened: impl Future<Output = ()>, future: F) {
    tokio::select! {
        biased;
        () = happened => {}
        _ = future => panic!("the future was ready before it was to be dropped"),
    }
}

/// Polls a future until it is `asleep`, lets something `happen`, and drops the future as soon as it wants to
/// be polled because of that, without doing so.
pub async fn dropped_on_waking<F: Future>(
    future: F,
    asleep: impl Future<Output = ()>,
    happen: impl Future<Output = ()>,
) {
    let mut future = pin!(future);
    let mut asleep = pin!(asleep);
    loop {
        let alarm = pending(future.as_mut());
        tokio::select! {
            biased;
            () = &mut asleep => break,
            () = alarm.0.notified() => {}
        }
    }
    // It may have been woken before it was said to be asleep; from here on only what happens wakes it.
    let alarm = pending(future.as_mut());
    happen.await;
    alarm.0.notified().await;
}

/// Polls a future until it has been woken so often, and drops it then: what it was woken for goes with it. Its output,
/// if it was ready before.
pub async fn dropped_when_woken<F: Future>(wakes: u64, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..wakes {
        match poll_once(future.as_mut()) {
            Ok(output) => return Some(output),
            Err(alarm) => alarm.0.notified().await,
        }
    }
    None
}

fn pending<F: Future>(future: Pin<&mut F>) -> Arc<Alarm> {
    poll_once(future).err().expect("the future was ready before it was to be dropped")
}

/// Polls a future. What it is woken by if it is pending.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Result<F::Output, Arc<Alarm>> {
    let alarm = Arc::new(Alarm::default());
    match future.poll(&mut Context::from_waker(&Waker::from(alarm.clone()))) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err(alarm),
    }
}

#[derive(Default)]
struct Alarm(Notify);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}
