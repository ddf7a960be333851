//! Submissions that a cork holds back.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::driver::command::Submission;

/// Submissions that are held back, in their order: corks that are made of one another share them.
pub(crate) struct Held<S = Submission> {
    submissions: Arc<Mutex<Vec<S>>>,
    /// Whether this cork holds back. Changes under the lock of what it holds.
    holds: AtomicBool,
}

impl<S> Held<S> {
    /// What a cork holds that is made of a client with this one, if any.
    pub(crate) fn within(outer: Option<&Self>) -> Self {
        let submissions = outer.map(|outer| outer.submissions.clone()).unwrap_or_default();
        Self { submissions, holds: AtomicBool::new(true) }
    }

    /// Holds a submission back. Returns it if this cork holds nothing back any more.
    pub(crate) fn keep(&self, submission: S) -> Option<S> {
        let mut submissions = self.lock();
        if !self.holds.load(Relaxed) {
            return Some(submission);
        }
        submissions.push(submission);
        None
    }

    /// Passes on what is held back, if anything is. No other thread's submission, held back or not, comes in between, as
    /// `send` is called under the lock: it must neither wake nor drop what may use a client.
    pub(crate) fn pass_on<T>(&self, send: impl FnOnce(Vec<S>) -> T) -> Option<T> {
        let mut submissions = self.lock();
        if submissions.is_empty() { None } else { Some(send(mem::take(&mut *submissions))) }
    }

    /// Holds nothing back from here on, but what is held back already.
    pub(crate) fn stop(&self) {
        let _submissions = self.lock();
        self.holds.store(false, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<S>> {
        self.submissions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// What another thread submits while something is passed on, through this cork or one that is made of it, comes
    /// behind it.
    #[test]
    fn nothing_overtakes_what_is_being_passed_on() {
        for stops in [false, true] {
            let outer = Held::within(None);
            let inner = Held::within(Some(&outer));
            assert_eq!(outer.keep(1), None);
            if stops {
                outer.stop();
            }
            let (sent, order) = mpsc::channel();
            let submit = |held: &Held<u32>, submission| {
                if let Some(submission) = held.keep(submission) {
                    held.pass_on(|batch| sent.send(batch).unwrap());
                    sent.send(vec![submission]).unwrap();
                }
            };
            thread::scope(|threads| {
                outer.pass_on(|batch| {
                    let (begun, begins) = mpsc::channel();
                    let (submit, inner, outer) = (&submit, &inner, &outer);
                    threads.spawn(move || {
                        begun.send(()).unwrap();
                        submit(inner, 2);
                        submit(outer, 3);
                    });
                    begins.recv().unwrap();
                    assert!(outer.submissions.try_lock().is_err(), "another thread may submit");
                    sent.send(batch).unwrap();
                });
            });
            inner.stop();
            inner.pass_on(|batch| sent.send(batch).unwrap());
            drop(sent);
            assert_eq!(order.iter().flatten().collect::<Vec<_>>(), [1, 2, 3], "stopped: {stops}");
        }
    }
}
