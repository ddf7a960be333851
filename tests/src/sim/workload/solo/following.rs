//! States that are followed from outside: each differs from the one before.

use std::fmt;

use zk_locks::Follow;

use super::{Known, LOOK, Solo};
use crate::sim::pass;

pub(super) struct Following<T> {
    follow: Follow<T>,
    last: Option<T>,
}

impl<T: Clone + PartialEq + fmt::Debug> Following<T> {
    pub(super) const fn new(follow: Follow<T>) -> Self {
        Self { follow, last: None }
    }

    /// The next state.
    pub(super) async fn next(&mut self, solo: &Solo) -> Known<T> {
        let next = self.follow.next().await;
        let next = solo.read(next)?;
        let differs = self.last.as_ref() != Some(&next);
        solo.expect("E1", differs, format_args!("is told {next:?} twice"))?;
        self.last = Some(next.clone());
        Ok(next)
    }

    /// What is told by now.
    pub(super) async fn catch_up(&mut self, solo: &Solo) -> Known<()> {
        loop {
            tokio::select! {
                biased;
                next = self.next(solo) => drop(next?),
                () = pass(LOOK) => return Ok(()),
            }
        }
    }
}
