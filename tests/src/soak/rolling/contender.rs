//! A session whose tasks take one recipe's locks again and again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};
use zk_locks::{AcquireError, ConnectError, Guard, ReleaseError, SessionEnd};

use super::{
    connect,
    recipes::{Kit, Recipe},
    shared::{SessionOver, Shared},
};
use crate::{
    faults::last,
    fenced::{Access, FencedResource},
};

/// A session whose tasks take one recipe's locks again and again; a new one when that has ended.
pub(in crate::soak) struct Contender {
    shared: Arc<Shared>,
    recipe: Recipe,
    number: usize,
}

impl Contender {
    pub(in crate::soak) const fn new(shared: Arc<Shared>, recipe: Recipe, number: usize) -> Self {
        Self { shared, recipe, number }
    }

    pub(in crate::soak) async fn run(self) {
        let tasks = self.recipe.tasks();
        while !self.shared.is_over() {
            let Shared { servers, pace, .. } = &*self.shared;
            let zk = match connect(servers, pace.session_timeout).await {
                Ok(zk) => zk,
                // Between the handshake and the first answer.
                Err(ConnectError::SessionEnded(SessionEnd::Expired)) => continue,
                Err(error) => return self.shared.unexpected(format!("connect: {error}")),
            };
            let kit = Arc::new(Kit::new(&zk, self.recipe));
            let mut running = JoinSet::new();
            for task in 0..tasks {
                let number = self.number * tasks + task;
                let shared = self.shared.clone();
                running.spawn(Turns { shared, kit: kit.clone(), number, turn: number }.take());
            }
            let mut ended = false;
            while let Some(task) = running.join_next().await {
                match task {
                    Ok(outcome) => ended |= outcome.is_err(),
                    Err(panic) => self.shared.unexpected(panic.to_string()),
                }
            }
            if ended {
                self.shared.session_over();
            }
            drop(kit);
            // Behind everything that was dropped. Not confirmed if the session is over.
            let _ = zk.close().await;
        }
    }
}

/// The turns of one task.
pub(super) struct Turns {
    pub(super) shared: Arc<Shared>,
    pub(super) kit: Arc<Kit>,
    /// Among all tasks of the recipe.
    pub(super) number: usize,
    pub(super) turn: usize,
}

impl Turns {
    async fn take(mut self) -> Result<(), SessionOver> {
        while !self.shared.is_over() {
            self.turn += 1;
            if let Err(error) = self.take_one().await {
                self.shared.refused(self.kit.recipe, &error)?;
            }
            if !self.shared.pace.pause.is_zero() {
                last(self.shared.pace.pause).await;
            }
        }
        Ok(())
    }

    /// Whether this is one of so many turns.
    pub(super) const fn is_one_in(&self, turns: usize) -> bool {
        self.turn % turns == 0
    }

    /// Asks for a lock; now and then without patience, in which case the attempt is dropped wherever it is.
    pub(super) async fn ask<G>(
        &self,
        acquire: impl Future<Output = Result<G, AcquireError>>,
    ) -> Result<G, AcquireError> {
        let asked = Instant::now();
        let guard = if self.is_one_in(16) {
            let patience = Duration::from_millis((self.turn % 23) as u64);
            timeout(patience, acquire).await.unwrap_or(Err(AcquireError::TimedOut))?
        } else {
            acquire.await?
        };
        self.shared.granted(self.kit.recipe, asked);
        Ok(guard)
    }

    /// Uses what the lock protects, and asks the servers now and then whether it is still held.
    pub(super) async fn hold(&self, guard: &Guard, resource: &FencedResource, access: Access) {
        let used = guard.scope(async {
            let _inside = resource.visit(guard.token(), access);
            match self.is_one_in(8) {
                true => self.shared.checked(guard.check().await),
                false => self.shared.pace.hold().await,
            }
        });
        if let Err(lost) = used.await {
            self.shared.lost(lost);
        }
    }

    /// Waits for a release; or leaves it to the session, now and then.
    pub(super) async fn finish(
        &self,
        release: impl Future<Output = Result<(), ReleaseError>>,
    ) -> Result<(), AcquireError> {
        if self.is_one_in(4) {
            return Ok(());
        }
        // The next turn hears of a session that has ended.
        self.shared.released(release.await).or(Ok(()))
    }
}
