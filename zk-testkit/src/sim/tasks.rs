//! The scheduler: processes made of tasks, run one at a time in an order that the seed chooses.
//!
//! It runs inside a single future on a paused tokio runtime, which supplies the time. Among the tasks
//! that can go on any may be next, so that a program that relies on an order of wake-ups is found out;
//! and since the choice does not depend on the order in which they were woken, neither does the run.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use super::Rng;

/// How seldom a task is polled although nothing has woken it.
const SPURIOUS_POLL: u64 = 500;

/// A group of tasks that stand still together, and die together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process(pub u32);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The tasks of a simulation. Clones share them.
#[derive(Clone)]
pub struct Tasks(Arc<Mutex<State>>);

struct State {
    rng: Rng,
    tasks: Vec<Option<Task>>,
    free: Vec<usize>,
    /// Those that can go on, in ascending order.
    ready: Vec<usize>,
    processes: Vec<Gate>,
    /// Wakes the future that runs all this.
    parent: Option<Waker>,
    /// Whether that future is at work, and will look at `ready` before it rests.
    running: bool,
    live: usize,
}

struct Task {
    /// `None` while it is being polled.
    work: Option<Work>,
    process: Process,
    waker: Arc<TaskWaker>,
}

#[derive(Default)]
struct Gate {
    stalled: bool,
    /// Tasks of a stalled process that could go on.
    held: Vec<usize>,
}

struct TaskWaker {
    index: usize,
    /// Whether the task is in `ready` or `held` already.
    queued: AtomicBool,
    tasks: Tasks,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.tasks.enqueue(self.index);
        }
    }
}

impl Tasks {
    /// No tasks yet.
    #[must_use]
    pub fn new(rng: Rng) -> Self {
        Self(Arc::new(Mutex::new(State {
            rng,
            tasks: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            processes: Vec::new(),
            parent: None,
            running: false,
            live: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task of a process.
    pub fn spawn(&self, process: Process, work: impl Future<Output = ()> + Send + 'static) {
        let work: Work = Box::pin(work);
        let index = {
            let mut state = self.state();
            state.live += 1;
            let index = state.free.pop().unwrap_or(state.tasks.len());
            let queued = AtomicBool::new(true);
            let waker = Arc::new(TaskWaker { index, queued, tasks: self.clone() });
            let task = Some(Task { work: Some(work), process, waker });
            if index == state.tasks.len() {
                state.tasks.push(task);
            } else {
                state.tasks[index] = task;
            }
            index
        };
        self.enqueue(index);
    }

    fn enqueue(&self, index: usize) {
        let parent = {
            let mut state = self.state();
            let Some(Some(task)) = state.tasks.get(index) else { return };
            let process = task.process;
            let gate = state.gate(process);
            if gate.stalled {
                gate.held.push(index);
                return;
            }
            if let Err(place) = state.ready.binary_search(&index) {
                state.ready.insert(place, index);
            }
            if state.running { None } else { state.parent.clone() }
        };
        if let Some(parent) = parent {
            parent.wake();
        }
    }

    /// Stops polling a process's tasks, whatever wakes them, until [`Tasks::resume`].
    pub fn stall(&self, process: Process) {
        let mut state = self.state();
        let State { ready, tasks, .. } = &mut *state;
        let of_process =
            |index: &usize| tasks[*index].as_ref().is_some_and(|task| task.process == process);
        let held: Vec<usize> = ready.iter().copied().filter(of_process).collect();
        ready.retain(|index| !held.contains(index));
        let gate = state.gate(process);
        gate.stalled = true;
        gate.held.extend(held);
    }

    /// Lets a stalled process go on.
    pub fn resume(&self, process: Process) {
        let held = {
            let mut state = self.state();
            let gate = state.gate(process);
            gate.stalled = false;
            std::mem::take(&mut gate.held)
        };
        for index in held {
            self.enqueue(index);
        }
    }

    /// Whether a process is stalled.
    #[must_use]
    pub fn is_stalled(&self, process: Process) -> bool {
        self.state().gate(process).stalled
    }

    /// Ends a process: its tasks are dropped where they are.
    pub fn kill(&self, process: Process) {
        let dead: Vec<Work> = {
            let mut state = self.state();
            let mut dead = Vec::new();
            for index in 0..state.tasks.len() {
                if state.tasks[index].as_ref().is_some_and(|task| task.process == process) {
                    dead.extend(state.remove(index).and_then(|task| task.work));
                }
            }
            let gate = state.gate(process);
            *gate = Gate::default();
            dead
        };
        // Outside of the lock: dropping them wakes others.
        drop(dead);
    }

    /// Tasks that have not ended.
    #[must_use]
    pub fn live(&self) -> usize {
        self.state().live
    }

    /// Tasks of a process that have not ended.
    #[must_use]
    pub fn live_in(&self, process: Process) -> usize {
        self.state().tasks.iter().flatten().filter(|task| task.process == process).count()
    }

    /// Runs the tasks until `main` is done; the others are left as they are then.
    ///
    /// To be awaited at the top of a paused runtime, outside of its cooperative budget:
    /// `tokio::task::unconstrained(tasks.run(main))`.
    pub async fn run<T>(&self, main: impl Future<Output = T>) -> T {
        let mut main = std::pin::pin!(main);
        std::future::poll_fn(|cx| {
            {
                let mut state = self.state();
                state.parent = Some(cx.waker().clone());
                state.running = true;
            }
            // The first poll starts things; later ones are cheap if nothing has changed.
            let done = loop {
                if let Poll::Ready(output) = main.as_mut().poll(cx) {
                    break Poll::Ready(output);
                }
                if !self.poll_ready() {
                    break Poll::Pending;
                }
            };
            self.state().running = false;
            done
        })
        .await
    }

    /// Drops all tasks, and what those start in going.
    pub fn clear(&self) {
        loop {
            let dead = {
                let mut state = self.state();
                let State { tasks, free, ready, processes, live, .. } = &mut *state;
                free.clear();
                ready.clear();
                processes.iter_mut().for_each(|gate| gate.held.clear());
                *live = 0;
                std::mem::take(tasks)
            };
            if dead.is_empty() {
                return;
            }
            // Outside of the lock: dropping them wakes others, or starts them.
            drop(dead);
        }
    }

    /// Polls ready tasks until there are none. Returns whether there was any.
    fn poll_ready(&self) -> bool {
        let mut any = false;
        loop {
            // Not locked while a task is polled.
            let next = self.state().take_next();
            let Some((index, mut work, waker)) = next else { return any };
            any = true;
            let waker = Waker::from(waker);
            let ended = work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            let mut state = self.state();
            if ended {
                let task = state.remove(index);
                drop(state);
                drop((task, work));
                continue;
            }
            let slot = state.tasks.get_mut(index).and_then(Option::as_mut);
            match slot {
                // It may have been killed meanwhile, and its place taken.
                Some(task) if Arc::as_ptr(&task.waker).cast::<()>() == waker.data() => {
                    task.work = Some(work);
                }
                _ => {
                    drop(state);
                    drop(work);
                }
            }
        }
    }
}

impl State {
    fn gate(&mut self, process: Process) -> &mut Gate {
        let index = process.0 as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, Gate::default);
        }
        &mut self.processes[index]
    }

    fn remove(&mut self, index: usize) -> Option<Task> {
        let task = self.tasks[index].take()?;
        self.live -= 1;
        self.free.push(index);
        if let Ok(place) = self.ready.binary_search(&index) {
            self.ready.remove(place);
        }
        for gate in &mut self.processes {
            gate.held.retain(|&held| held != index);
        }
        Some(task)
    }

    /// The next task to be polled: any of those that are ready, now and then one that is not.
    fn take_next(&mut self) -> Option<(usize, Work, Arc<TaskWaker>)> {
        if self.ready.is_empty() {
            return None;
        }
        if self.rng.one_in(SPURIOUS_POLL) {
            let index = self.rng.index(self.tasks.len());
            let process = self.tasks[index].as_ref().map(|task| task.process);
            if process.is_some_and(|process| !self.gate(process).stalled)
                && let_queued(&self.tasks, index)
            {
                if let Err(place) = self.ready.binary_search(&index) {
                    self.ready.insert(place, index);
                }
            }
        }
        let chosen = self.rng.index(self.ready.len());
        let index = self.ready.remove(chosen);
        let task = self.tasks[index].as_mut()?;
        task.waker.queued.store(false, Ordering::Release);
        let work = task.work.take()?;
        Some((index, work, task.waker.clone()))
    }
}

/// Marks a task as queued, if it was not.
fn let_queued(tasks: &[Option<Task>], index: usize) -> bool {
    tasks[index].as_ref().is_some_and(|task| !task.waker.queued.swap(true, Ordering::AcqRel))
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("live", &self.live()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn run<T>(main: impl Future<Output = T>, tasks: &Tasks) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let output = runtime.block_on(tokio::task::unconstrained(tasks.run(main)));
        let _inside = runtime.enter();
        tasks.clear();
        output
    }

    /// Which process counted in which order, with a stall of the second one in between.
    fn order(seed: u64) -> Vec<(u32, u64)> {
        let tasks = Tasks::new(Rng::new(seed));
        let log = Arc::new(Mutex::new(Vec::new()));
        let main = async {
            let begin = tokio::time::Instant::now();
            for process in 1..=3 {
                let log = log.clone();
                tasks.spawn(Process(process), async move {
                    for _ in 0..5 {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        let at = begin.elapsed().as_millis() as u64;
                        log.lock().unwrap().push((process, at));
                    }
                });
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
            tasks.stall(Process(2));
            assert!(tasks.is_stalled(Process(2)));
            tokio::time::sleep(Duration::from_millis(100)).await;
            tasks.resume(Process(2));
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(tasks.live(), 0);
        };
        run(main, &tasks);
        std::mem::take(&mut *log.lock().unwrap())
    }

    #[test]
    fn stalled_process_pauses_and_resumes() {
        let log = order(1);
        let times = |process| log.iter().filter(move |(who, _)| *who == process).map(|(_, at)| *at);
        assert_eq!(times(1).collect::<Vec<_>>(), [10, 20, 30, 40, 50]);
        assert_eq!(times(2).collect::<Vec<_>>(), [10, 115, 125, 135, 145]);
    }

    #[test]
    fn order_depends_on_the_seed_alone() {
        assert_eq!(order(1), order(1));
        let orders: std::collections::BTreeSet<_> = (0..20).map(order).collect();
        assert!(orders.len() > 5, "only {} orders", orders.len());
    }

    #[test]
    fn clearing_drops_what_the_dropped_start() {
        /// Starts a task in going.
        struct Restarts(Tasks);
        impl Drop for Restarts {
            fn drop(&mut self) {
                let looks = Looks(self.0.clone());
                self.0.spawn(Process(1), async move {
                    let _looks = looks;
                    std::future::pending::<()>().await;
                });
            }
        }
        /// Has something to do with the tasks in going, as who wakes one has.
        struct Looks(Tasks);
        impl Drop for Looks {
            fn drop(&mut self) {
                assert_eq!(self.0.live(), 0);
            }
        }
        let tasks = Tasks::new(Rng::new(1));
        let restarts = Restarts(tasks.clone());
        let main = async {
            // Their places are free again.
            tasks.spawn(Process(1), async {});
            tasks.spawn(Process(1), async {});
            tokio::time::sleep(Duration::from_millis(1)).await;
            tasks.spawn(Process(1), async move {
                let _restarts = restarts;
                std::future::pending::<()>().await;
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        run(main, &tasks);
        assert_eq!(tasks.live(), 0);
        run(async { tasks.spawn(Process(1), async {}) }, &tasks);
    }

    #[test]
    fn killed_process_is_dropped_and_others_run() {
        struct Told(Arc<AtomicBool>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let tasks = Tasks::new(Rng::new(1));
        let told = Arc::new(AtomicBool::new(false));
        let in_task = Told(told.clone());
        let main = async {
            tasks.spawn(Process(1), async move {
                let _told = in_task;
                std::future::pending::<()>().await;
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(tasks.live_in(Process(1)), 1);
            tasks.kill(Process(1));
            assert!(told.load(Ordering::Relaxed));
            tasks.spawn(Process(1), async {});
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(tasks.live(), 0);
        };
        run(main, &tasks);
    }
}
