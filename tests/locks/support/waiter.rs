//! A waiter for a lock, with every frame in a log.

use tokio::task::JoinHandle;
use zk_client::CreateMode;
use zk_locks::{AcquireError, Client, Guard, Lock};
use zk_proto::OpCode;
use zk_testkit::proxy::{Frames, Mark, Match, Proxy, RuleHandle};

use super::{
    setup::{Setup, client_behind},
    within,
};

/// A contender that waits for a guard behind a proxy of its own.
#[derive(Debug)]
pub(crate) struct Waiter<G = Guard> {
    pub(crate) proxy: Proxy,
    pub(crate) zk: Client,
    /// Counts the answers to its reads: the one in front and its own node first, then one for each time
    /// that the predecessor changes.
    reads: RuleHandle,
    acquire: JoinHandle<Result<G, AcquireError>>,
}

impl Waiter {
    /// Joins the queue, and has fallen asleep when this returns.
    pub(crate) async fn asleep(setup: &Setup, path: &str) -> Self {
        let waiter = Self::joining(setup.proxy().await, path).await;
        waiter.has_read(2).await;
        waiter
    }

    /// The same, behind a node that its own session has made.
    pub(crate) async fn asleep_behind_its_own_session(setup: &Setup, path: &str) -> Self {
        let proxy = setup.proxy().await;
        let zk = client_behind(&proxy).await;
        let ahead = format!("{path}/lock-");
        zk.create(&ahead, b"").mode(CreateMode::EphemeralSequential).await.unwrap();
        let waiter = Self::new(proxy, zk, path);
        waiter.has_read(2).await;
        waiter
    }

    /// Begins to join the queue through a proxy.
    pub(crate) async fn joining(proxy: Proxy, path: &str) -> Self {
        let zk = client_behind(&proxy).await;
        Self::new(proxy, zk, path)
    }

    /// Has a client behind a proxy begin to join the queue.
    pub(crate) fn new(proxy: Proxy, zk: Client, path: &str) -> Self {
        let lock = Lock::new(&zk, path);
        Self::of(proxy, zk, lock)
    }

    /// The same, for a lock with settings of its own.
    pub(crate) fn of(proxy: Proxy, zk: Client, lock: Lock) -> Self {
        Self::asking(proxy, zk, async move { lock.acquire().await })
    }
}

impl<G: Send + 'static> Waiter<G> {
    /// Has a client behind a proxy begin to ask for a guard.
    pub(crate) fn asking(
        proxy: Proxy,
        zk: Client,
        acquire: impl Future<Output = Result<G, AcquireError>> + Send + 'static,
    ) -> Self {
        let reads = proxy.on(Match::reply(OpCode::GET_DATA)).watch();
        Self { proxy, zk, reads, acquire: tokio::spawn(acquire) }
    }

    /// Waits until so many of its reads have been answered, and until it knows.
    pub(crate) async fn has_read(&self, nodes: u64) {
        within(self.reads.fired_times(nodes)).await;
        self.zk.sync("/").await.unwrap();
    }

    /// Waits until it lists the queue once more. It must not have an outcome before.
    pub(crate) async fn lists_since(&mut self, mark: Mark) {
        let Self { proxy, acquire, .. } = self;
        let lists = proxy.wait_for_since(mark, |frame| frame.is_request(OpCode::GET_CHILDREN2));
        tokio::select! {
            _ = within(lists) => {}
            outcome = acquire => panic!("{:?} without a listing", outcome.map(|it| it.map(drop))),
        }
    }

    /// Whether it still waits, after it has heard everything that there is to hear by now, has listed the
    /// queue because of that, and has read whatever it wanted to read then.
    pub(crate) async fn still_waits(&self) -> bool {
        for _ in 0..4 {
            within(async { self.zk.sync("/").await }).await.unwrap();
            tokio::task::yield_now().await;
        }
        !self.acquire.is_finished()
    }

    /// The path of its node, once it watches that.
    pub(crate) fn node(&self) -> String {
        let requests = self.frames();
        let mut reads = requests.iter().filter(|frame| frame.is_request(OpCode::GET_DATA));
        reads.nth(1).and_then(|own| own.path.clone()).expect("a waiter that has slept")
    }

    pub(crate) fn frames(&self) -> Frames {
        self.proxy.frames()
    }

    /// Its outcome. A caller that gets a guard keeps the waiter: its proxy is the guard's way to the server.
    pub(crate) async fn outcome(&mut self) -> Result<G, AcquireError> {
        within(&mut self.acquire).await.unwrap()
    }

    /// Gives up.
    pub(crate) async fn give_up(&mut self) {
        self.acquire.abort();
        let aborted = within(&mut self.acquire).await;
        assert!(aborted.is_err_and(|error| error.is_cancelled()), "it did not wait any more");
    }
}
