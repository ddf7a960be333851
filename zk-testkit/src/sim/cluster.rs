//! The handle on clients, network and ensemble, and what makes them go on.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

use super::{
    Tasks,
    state::{Clock, Setup, State},
    trace::Actor,
};

/// Clients, network and ensemble. Clones share them.
#[derive(Clone)]
pub struct Cluster(Arc<Mutex<State>>);

impl Cluster {
    /// Sets up a cluster in the present moment of a paused runtime.
    #[must_use]
    pub fn new(setup: Setup, tasks: &Tasks) -> Self {
        Self(Arc::new(Mutex::new(State::new(setup, tasks, Clock::Runtime(Instant::now()), 1))))
    }

    /// Everything, for as long as it has no other user.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`state`](Cluster::state), and the ensemble and network are looked at afterwards.
    pub fn act<T>(&self, act: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut state = self.state();
        let now = state.now();
        let output = act(&mut state, now);
        let pump = state.pump.take();
        drop(state);
        if let Some(pump) = pump {
            pump.wake();
        }
        output
    }

    /// Milliseconds since the beginning.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.state().now()
    }

    /// Notes an event.
    pub fn note(&self, actor: Actor, what: &'static str, argument: u64) {
        let mut state = self.state();
        let now = state.now();
        state.trace.note(now, actor, what, argument);
    }

    /// What moves bytes, servers and faults on; never ends. Must be polled by a task that never stands still.
    #[must_use]
    pub fn pump(&self) -> Pump {
        Pump { cluster: self.clone(), sleep: Box::pin(tokio::time::sleep(Duration::ZERO)) }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// See [`Cluster::pump`].
#[derive(Debug)]
pub struct Pump {
    cluster: Cluster,
    sleep: Pin<Box<Sleep>>,
}

impl Future for Pump {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let cluster = self.cluster.clone();
        let mut state = cluster.state();
        loop {
            let next = state.step();
            state.pump = Some(cx.waker().clone());
            let Some(next) = next else { return Poll::Pending };
            let Clock::Runtime(epoch) = state.clock else { return Poll::Pending };
            let at = epoch + Duration::from_millis(next);
            if self.sleep.deadline() != at {
                self.sleep.as_mut().reset(at);
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
