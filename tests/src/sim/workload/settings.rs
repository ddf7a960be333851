//! Settings of recipes, drawn for each use.

use std::time::Duration;

use zk_locks::{Builder, Layout, Lock};

use super::{Worker, description};

/// The longest delay after a holder that has not released, in milliseconds.
pub(crate) const LOCK_DELAY_MAX: u64 = 2_000;

/// How long a contender waits for a path to be empty that it wants to make anew, in milliseconds.
pub(crate) const ROTATION_MAX: u64 = 30_000;

/// Naming schemes with a place in every queue.
const LAYOUTS: [Layout; 6] =
    [Layout::Curator, Layout::Kazoo, Layout::Go, Layout::Bare, Layout::Recipe, Layout::HostType];

impl Worker {
    /// A recipe with a description that is the same in any process; where a run draws settings, with some that every
    /// recipe has.
    pub(super) fn described<R>(&mut self, builder: Builder<R>) -> R {
        let mut builder = builder.description(&description(self));
        if !self.ctx.options.draws_settings {
            return builder.build();
        }
        let rng = &mut self.rng;
        if rng.one_in(4) {
            builder = builder.look_ahead(true);
        }
        if rng.one_in(4) {
            let pause = rng.scaled(50, 20_000);
            builder = builder.recheck((!rng.one_in(3)).then_some(Duration::from_millis(pause)));
        }
        if rng.one_in(6) {
            builder = builder.max_waiters(rng.index(6));
        }
        if rng.one_in(6) {
            builder = builder.max_hold(Duration::from_millis(rng.scaled(200, 20_000)));
        }
        if rng.one_in(6) {
            builder = builder.release_after(Duration::from_millis(rng.scaled(200, 20_000)));
        }
        if rng.one_in(8) {
            builder = builder.require_parent();
        }
        builder.build()
    }

    /// An exclusive lock, in the same way; its nodes may have the names of any implementation.
    pub(super) fn exclusive(&mut self, mut lock: Builder<Lock>) -> Lock {
        if self.ctx.options.draws_settings {
            let rng = &mut self.rng;
            if rng.one_in(3) {
                lock = lock.layout(*rng.pick(&LAYOUTS));
            }
            if rng.one_in(6) {
                lock = lock.herd();
            }
            if rng.one_in(8) {
                lock = lock.lock_delay(Duration::from_millis(rng.scaled(10, LOCK_DELAY_MAX)));
            }
            if rng.one_in(6) {
                lock = lock.rotate_at(rng.scaled(2, 500) as i32);
            }
        }
        self.described(lock)
    }
}
