//! Several futures at once.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

/// Waits for all of these, or for the first one that fails.
pub(crate) async fn all<T, E>(
    futures: impl IntoIterator<Item = impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let mut running: Vec<_> =
        futures.into_iter().map(|future| (Some(Box::pin(future)), None)).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for (future, output) in &mut running {
            let Some(running) = future else { continue };
            match running.as_mut().poll(cx) {
                Poll::Ready(Ok(done)) => (*future, *output) = (None, Some(done)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(Ok(())) }
    })
    .await?;
    Ok(running.into_iter().filter_map(|(_, output)| output).collect())
}

/// Runs `work` until it is done or `lost` is, whichever comes first. Each step polls `lost` first.
///
/// Takes pinned work, because each call of an async function doubles the size of its arguments.
pub(crate) async fn unless<W: Future + Unpin, L>(
    lost: impl Future<Output = L>,
    work: W,
) -> Result<W::Output, L> {
    tokio::select! {
        biased;
        lost = lost => Err(lost),
        output = work => Ok(output),
    }
}

/// Runs `work` until it is done or `gone` is, whichever comes first: then drops it, and returns `None`. Each step polls
/// `gone` first.
///
/// Takes pinned work, because each call of an async function doubles the size of its arguments.
pub(crate) async fn unless_gone<W: Future>(
    gone: impl Future<Output = ()>,
    mut work: Pin<&mut Option<W>>,
) -> Option<W::Output> {
    let output = tokio::select! {
        biased;
        () = gone => None,
        output = poll_fn(|cx| match work.as_mut().as_pin_mut() {
            Some(work) => work.poll(cx).map(Some),
            None => Poll::Ready(None),
        }) => output,
    };
    work.set(None);
    output
}

/// Waits for the first of these; for ever, if there are none.
pub(crate) async fn first<F: Future>(futures: impl IntoIterator<Item = F>) -> F::Output {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|cx| {
        let ready = running.iter_mut().find_map(|future| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        });
        ready.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
