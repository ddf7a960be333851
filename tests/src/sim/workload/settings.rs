//! Settings of recipes and of requests, drawn for each use.

use std::time::Duration;

use zk_client::{CallOptions, Client};
use zk_locks::{Builder, Layout, Lock};

use super::{Worker, description};

/// The longest delay after a holder that has not released, in milliseconds.
pub(crate) const LOCK_DELAY_MAX: u64 = 2_000;

/// How long a contender waits for a path to be empty that it wants to make anew, in milliseconds.
pub(crate) const ROTATION_MAX: u64 = 30_000;

/// Naming schemes with a place in every queue.
pub(super) const LAYOUTS: [Layout; 6] =
    [Layout::Curator, Layout::Kazoo, Layout::Go, Layout::Bare, Layout::Recipe, Layout::HostType];

/// What was drawn for one use of a recipe, as far as it is judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawn {
    /// The fewest that may be ahead.
    pub(crate) max_waiters: Option<usize>,
    /// The shortest time after which something is taken back, in milliseconds.
    pub(crate) release_after: Option<u64>,
    /// How long a lock stays unused, in milliseconds.
    pub(crate) lock_delay: Option<u64>,
    /// Whether something must be there.
    pub(crate) requires_parent: bool,
    /// Whether paths are made anew.
    pub(crate) rotates: bool,
}

impl Drawn {
    /// What holds for two at once.
    pub(crate) fn and(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            max_waiters: self.max_waiters.into_iter().chain(other.max_waiters).min(),
            release_after: least(self.release_after, other.release_after),
            lock_delay: None,
            requires_parent: self.requires_parent || other.requires_parent,
            rotates: self.rotates || other.rotates,
        }
    }
}

impl Worker {
    /// A client that waits in one of the ways there are.
    pub(super) fn waiting(&mut self, client: &Client) -> Client {
        let rng = &mut self.rng;
        let time = Duration::from_millis(rng.scaled(1, 5_000));
        match rng.below(8) {
            0 => client.patient(),
            1 => client.with(CallOptions::new().retry_throttled()),
            2 => client.with(CallOptions::new().timeout(time)),
            3 => client.with(CallOptions::new().fail_fast()),
            _ => client.clone(),
        }
    }

    /// A recipe with a description that is the same in any process; where a run draws settings, with some that every
    /// recipe has.
    pub(super) fn described<R>(&mut self, builder: Builder<R>) -> R {
        let mut builder = builder.description(&description(self));
        if !self.ctx.options.draws_settings {
            return builder.build();
        }
        let Self { rng, drawn, .. } = self;
        let drawn = drawn.get_or_insert_default();
        if rng.one_in(4) {
            builder = builder.look_ahead(true);
        }
        if rng.one_in(4) {
            let pause = rng.scaled(50, 20_000);
            builder = builder.recheck((!rng.one_in(3)).then_some(Duration::from_millis(pause)));
        }
        if rng.one_in(6) {
            let most = rng.index(6);
            drawn.max_waiters = Some(most);
            builder = builder.max_waiters(most);
        }
        if rng.one_in(6) {
            builder = builder.max_hold(Duration::from_millis(rng.scaled(200, 20_000)));
        }
        if rng.one_in(6) {
            let limit = rng.scaled(200, 20_000);
            drawn.release_after = Some(limit);
            builder = builder.release_after(Duration::from_millis(limit));
        }
        if rng.one_in(8) {
            drawn.requires_parent = true;
            builder = builder.require_parent();
        }
        builder.build()
    }

    /// An exclusive lock, in the same way; its nodes may have the names of any implementation.
    pub(super) fn exclusive(&mut self, mut lock: Builder<Lock>) -> Lock {
        if self.ctx.options.draws_settings {
            let Self { rng, drawn, .. } = &mut *self;
            let drawn = drawn.get_or_insert_default();
            if rng.one_in(3) {
                lock = lock.layout(*rng.pick(&LAYOUTS));
            }
            if rng.one_in(6) {
                lock = lock.herd();
            }
            if rng.one_in(8) {
                let delay = rng.scaled(10, LOCK_DELAY_MAX);
                drawn.lock_delay = Some(delay);
                lock = lock.lock_delay(Duration::from_millis(delay));
            }
            if rng.one_in(6) {
                drawn.rotates = true;
                lock = lock.rotate_at(rng.scaled(2, 500) as i32);
            }
        }
        self.described(lock)
    }
}
