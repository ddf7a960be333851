//! Acquires that are given up, wherever they are: they leave no node, and nobody waits for one.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    time::Duration,
};

use tokio::sync::oneshot;
use zk_locks::{AcquireError, Client, Guard, Lock};
use zk_proto::OpCode;
use zk_testkit::proxy::{Match, Proxy, RuleHandle};

use crate::support::{
    Stage, dropped_after, dropped_on_waking, dropped_when, emptied, joined, on_each_release,
    options_for, within,
};

/// How often an acquire is given up after each number of polls.
const TIMES: usize = 50;

/// An acquire needs far fewer polls.
const POLLS_MAX: usize = 40;

/// Gives acquires up after one poll, after two, and so on until they are through by then. Returns how many
/// polls that takes.
///
/// `acquire` makes one attempt, of which `dropped_after` decides how far it gets.
async fn give_up_everywhere(
    zk: &Client,
    path: impl Fn(usize) -> String,
    mut acquire: impl AsyncFnMut(&Lock, usize) -> Option<Guard>,
) -> usize {
    let mut attempts = 0;
    for polls in 0..POLLS_MAX {
        let mut through = 0;
        for _ in 0..TIMES {
            let path = path(attempts);
            attempts += 1;
            let lock = Lock::new(zk, &path);
            let guard = within(acquire(&lock, polls)).await;
            through += usize::from(guard.is_some());
            drop(guard);
            nothing_left(zk, &path).await;
        }
        if through == TIMES {
            println!("through after {polls} polls; {attempts} attempts");
            return polls;
        }
    }
    panic!("an acquire is not through after {POLLS_MAX} polls");
}

/// Whether the queue is empty although the session lives, and the lock can be had.
async fn nothing_left(zk: &Client, path: &str) {
    emptied(zk, path).await;
    within(Lock::new(zk, path).acquire()).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn an_acquire_of_a_free_lock_can_be_dropped_after_any_number_of_polls() {
    on_each_release(async |stage: Stage| {
        let zk = stage.client().await;
        let path = stage.existing("free").await;
        let acquire = async |lock: &Lock, polls| {
            dropped_after(polls, lock.acquire()).await.map(Result::unwrap)
        };
        let polls = give_up_everywhere(&zk, |_| path.clone(), acquire).await;
        assert!(polls > 1);
    })
    .await;
}

#[tokio::test]
async fn an_acquire_with_missing_parents_can_be_dropped_after_any_number_of_polls() {
    on_each_release(async |stage: Stage| {
        let zk = stage.client().await;
        let path = |attempt| stage.path(&format!("{attempt}/lock"));
        let acquire = async |lock: &Lock, polls| {
            dropped_after(polls, lock.acquire()).await.map(Result::unwrap)
        };
        let polls = give_up_everywhere(&zk, path, acquire).await;
        assert!(polls > 2);
    })
    .await;
}

#[tokio::test]
async fn a_waiting_acquire_can_be_dropped_after_any_number_of_polls() {
    on_each_release(async |stage: Stage| {
        let zk = stage.client().await;
        let path = stage.existing("busy").await;
        let held = Lock::new(&stage.outsider, &path);
        let acquire = async |lock: &Lock, polls| {
            let holder = held.acquire().await.unwrap();
            let (over, mut given_up) = oneshot::channel::<()>();
            let acquire = async {
                let _over = over;
                dropped_after(polls, lock.acquire()).await.map(Result::unwrap)
            };
            // The holder goes on until it sees the waiter, or the waiter is gone.
            let release = async {
                tokio::select! {
                    () = joined(&stage.outsider, &path, 2) => {}
                    _ = &mut given_up => {}
                }
                holder.release().await.unwrap();
            };
            tokio::join!(acquire, release).0
        };
        let polls = give_up_everywhere(&zk, |_| path.clone(), acquire).await;
        assert!(polls > 2);
    })
    .await;
}

/// What becomes of the reply that an acquire was waiting for when it was dropped.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    /// With the connection.
    IsLost,
}

/// A client behind a proxy.
struct Stall {
    proxy: Proxy,
    zk: Client,
}

impl Stall {
    async fn new(stage: &Stage) -> Self {
        let proxy = stage.proxy().await;
        // A client that has lost its connection waits for up to a twentieth of this.
        let options = options_for(&proxy).session_timeout(Duration::from_secs(4));
        let zk = options.connect().await.unwrap();
        Self { proxy, zk }
    }

    /// Drops an acquire that waits for a reply, at the latest; the reply then meets its fate.
    async fn drop_waiting_for(&self, path: &str, reply: Match, fate: Fate) {
        let held = self.proxy.on(reply).hold();
        let lock = Lock::new(&self.zk, path);
        within(dropped_when(stalled(&held), lock.acquire())).await;
        match fate {
            Fate::Arrives => held.release(),
            Fate::IsLost => self.proxy.reset_all(),
        }
    }

    /// Drops acquires that wait for the reply to each of `ops`. So many nodes of others stay.
    async fn drop_at_each_of(&self, ops: &[OpCode], path: impl Fn(usize) -> String, others: usize) {
        let mut attempt = 0;
        for (number, op) in ops.iter().enumerate() {
            let earlier = ops[..number].iter().filter(|earlier| *earlier == op).count();
            for fate in [Fate::Arrives, Fate::IsLost].repeat(TIMES_STALLED) {
                let path = path(attempt);
                attempt += 1;
                let reply = Match::reply(*op).skip(earlier as u64).once();
                self.drop_waiting_for(&path, reply, fate).await;
                joined(&self.zk, &path, others).await;
            }
        }
    }
}

/// How often an acquire is given up at each reply, for each fate of the reply.
const TIMES_STALLED: usize = 5;

/// Waits until a reply is held, and gives the client every chance to take in what came before it.
async fn stalled(held: &RuleHandle) {
    held.fired().await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_acquire_of_a_free_lock_can_be_dropped_at_each_reply_whether_or_not_that_arrives() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("free").await;
        let stall = Stall::new(&stage).await;
        let ops = [OpCode::CREATE2, OpCode::GET_CHILDREN2];
        stall.drop_at_each_of(&ops, |_| path.clone(), 0).await;
        nothing_left(&stall.zk, &path).await;
    })
    .await;
}

#[tokio::test]
async fn an_acquire_with_missing_parents_can_be_dropped_at_each_reply_whether_or_not_that_arrives()
{
    on_each_release(async |stage: Stage| {
        let stall = Stall::new(&stage).await;
        let ops = [
            OpCode::CREATE2,
            OpCode::GET_CHILDREN2,
            OpCode::CREATE_CONTAINER,
            OpCode::CREATE_CONTAINER,
            OpCode::CREATE_CONTAINER,
            OpCode::CREATE2,
            OpCode::GET_CHILDREN2,
        ];
        let path = |attempt| stage.path(&format!("{attempt}/lock"));
        stall.drop_at_each_of(&ops, path, 0).await;
        nothing_left(&stall.zk, &path(0)).await;
    })
    .await;
}

#[tokio::test]
async fn a_waiting_acquire_can_be_dropped_at_each_reply_whether_or_not_that_arrives() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("busy").await;
        let holder = Lock::new(&stage.outsider, &path).acquire().await.unwrap();
        let stall = Stall::new(&stage).await;
        let ops = [OpCode::CREATE2, OpCode::GET_CHILDREN2, OpCode::GET_DATA, OpCode::GET_DATA];
        stall.drop_at_each_of(&ops, |_| path.clone(), 1).await;
        holder.release().await.unwrap();
        nothing_left(&stall.zk, &path).await;
    })
    .await;
}

/// The reply to the create is lost, and the acquire is dropped while the session looks for the node.
#[tokio::test]
async fn an_acquire_whose_create_is_in_doubt_can_be_dropped_at_each_step_of_the_search() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("doubt").await;
        let stall = Stall::new(&stage).await;
        for step in [OpCode::SYNC, OpCode::GET_CHILDREN, OpCode::EXISTS] {
            for fate in [Fate::Arrives, Fate::IsLost].repeat(TIMES_STALLED) {
                let lost = stall.proxy.on(Match::reply(OpCode::CREATE2).once()).reset();
                let reply = Match::reply(step).once();
                stall.drop_waiting_for(&path, reply, fate).await;
                assert_eq!(lost.times_fired(), 1);
                nothing_left(&stall.zk, &path).await;
            }
        }
    })
    .await;
}

/// There is nothing to find, in one case because the create never came to the server and in the other
/// because there is no such path.
#[tokio::test]
async fn a_create_in_doubt_that_nobody_waits_for_is_not_sent_again() {
    on_each_release(async |stage: Stage| {
        let unseen = (stage.existing("unseen").await, Match::request(OpCode::CREATE2));
        let refused = (stage.path("nowhere"), Match::reply(OpCode::CREATE2));
        for (path, lost) in [unseen, refused] {
            let (proxy, zk) = stage.proxied().await;
            let lost = proxy.on(lost.once()).reset();
            let listed = proxy.on(Match::reply(OpCode::GET_CHILDREN)).watch();
            let lock = Lock::new(&zk, &path);
            within(dropped_when(async { drop(lost.fired().await) }, lock.acquire())).await;
            within(listed.fired()).await;
            // Behind the listing, and behind what came of it.
            zk.sync("/").await.unwrap();
            zk.sync("/").await.unwrap();
            assert_eq!(proxy.counts().requests(OpCode::CREATE2), 1, "{}", proxy.frames());
        }
    })
    .await;
}

#[tokio::test]
async fn an_acquire_can_be_dropped_in_the_poll_in_which_it_is_granted() {
    on_each_release(async |stage: Stage| {
        let zk = stage.client().await;
        let path = stage.existing("granted").await;
        for _ in 0..TIMES {
            let holder = Lock::new(&stage.outsider, &path).acquire().await.unwrap();
            let lock = Lock::new(&zk, &path);
            let mut waiter = pin!(lock.acquire());
            let granted_and_gone = poll_fn(|cx| waiter.as_mut().poll(cx).map(drop));
            let release = async {
                joined(&stage.outsider, &path, 2).await;
                holder.release().await.unwrap();
            };
            within(async { tokio::join!(granted_and_gone, release) }).await;
            nothing_left(&zk, &path).await;
        }
    })
    .await;
}

/// The news that the one in front is gone has arrived, and nobody looks at it any more.
#[tokio::test]
async fn an_acquire_can_be_dropped_between_the_news_of_its_grant_and_the_next_poll() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("news").await;
        let (proxy, zk) = stage.proxied().await;
        for _ in 0..TIMES {
            let holder = Lock::new(&stage.outsider, &path).acquire().await.unwrap();
            let successor = Lock::new(&stage.outsider, &path);
            let armed = proxy.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
            let asleep = async {
                armed.fired().await;
                zk.sync("/").await.unwrap();
            };
            let release = async { holder.release().await.unwrap() };
            let lock = Lock::new(&zk, &path);
            within(dropped_on_waking(lock.acquire(), asleep, release)).await;
            within(successor.acquire()).await.unwrap().release().await.unwrap();
            nothing_left(&zk, &path).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_waiter_whose_time_is_over_leaves_the_queue_at_once_and_the_holder_alone() {
    on_each_release(async |stage: Stage| {
        let zk = stage.client().await;
        let path = stage.existing("timed").await;
        let mut holder = Lock::new(&stage.outsider, &path).acquire().await.unwrap();
        for millis in 0..20 {
            let time = Duration::from_millis(millis);
            let outcome = Lock::new(&zk, &path).acquire_timeout(time).await;
            assert_eq!(outcome.map(drop), Err(AcquireError::TimedOut));
            joined(&zk, &path, 1).await;
        }
        assert_eq!(holder.check().await, Ok(()));
        holder.release().await.unwrap();
        holder = within(Lock::new(&zk, &path).acquire_timeout(Duration::MAX)).await.unwrap();
        holder.release().await.unwrap();
        nothing_left(&zk, &path).await;
    })
    .await;
}

/// One future that is polled again and again keeps its place, whatever else a loop does meanwhile.
#[tokio::test]
async fn a_pinned_acquire_keeps_its_place_in_a_select_loop() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("select").await;
        let holder = Lock::new(&stage.outsider, &path).acquire().await.unwrap();
        let (proxy, zk) = stage.proxied().await;
        let lock = Lock::new(&zk, &path);
        let armed = proxy.on(Match::reply(OpCode::GET_DATA).nth(2)).watch();
        let mut acquire = pin!(lock.acquire());
        let mut holder = Some(holder);
        let guard = within(async {
            loop {
                tokio::select! {
                    guard = &mut acquire => return guard.unwrap(),
                    () = tokio::task::yield_now() => if armed.times_fired() > 0 {
                        drop(holder.take());
                    }
                }
            }
        })
        .await;
        assert_eq!(proxy.counts().requests(OpCode::CREATE2), 1);
        guard.release().await.unwrap();
    })
    .await;
}
