//! Holders hear of what becomes of their lock, whatever becomes of single reads and whether or not it is awaited.

use std::{
    future::{Future as _, pending, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use tokio::time::sleep;
use zk_client::{AclList, BoxFuture, CreateMode, Id, Perms};
use zk_locks::{
    AcquireError, Client, CohortLock, Election, Guard, Lock, Lost, Metrics, MultiLock, RwLock,
    Status,
};
use zk_proto::OpCode;
use zk_testkit::proxy::{Match, Proxy};
use zk_tests::test_with;

use crate::locks::support::{
    Setup, Waiter, closed, dropped_after, on_each_release, on_each_release_threaded, within,
};

/// A read that fails is asked again, whatever made it fail.
#[test_with(on_each_release)]
async fn news_is_heard_despite_a_failed_read(setup: Setup) {
    for is_revoked in [false, true] {
        let (proxy, zk) = setup.proxied().await;
        let path = setup.existing(&format!("failed-{is_revoked}")).await;
        let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
        let reply = Match::reply(OpCode::GET_DATA).once();
        let garbled = proxy.on(reply).rewrite(|reply| reply.truncate(20));
        let news = async {
            garbled.fired().await;
            if is_revoked {
                let queue = Lock::new(&setup.outsider, &path).queue();
                let holder = queue.contenders().await.unwrap().remove(0);
                assert!(queue.revoke(&holder).await.unwrap());
            } else {
                setup.outsider.delete(guard.path()).await.unwrap();
            }
        };
        let (heard, ()) = within(async { tokio::join!(guard.revoked(), news) }).await;
        assert_eq!(heard, if is_revoked { Ok(()) } else { Err(Lost::NodeDeleted) });
    }
}

/// However many reads fail, and however they do: what was asked before the first of them makes no event any more.
#[test_with(on_each_release)]
async fn earlier_revocation_is_heard_despite_failed_reads(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.existing("failed-twice").await;
    // On a slow machine it is held for so long that its node is read in any case.
    let early = proxy.on(Match::request(OpCode::GET_DATA)).hold();
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    let queue = Lock::new(&setup.outsider, &path).queue();
    let holder = within(queue.contenders()).await.unwrap().remove(0);
    assert!(within(queue.revoke(&holder)).await.unwrap());
    let garble = |reply: Match| proxy.on(reply).rewrite(|reply| reply.truncate(20));
    // The first time its existence is all that can be read, the second time not even that.
    let data = garble(Match::reply(OpCode::GET_DATA).times(2));
    let existence = garble(Match::reply(OpCode::EXISTS).nth(2));
    early.release();
    assert_eq!(within(guard.revoked()).await, Ok(()));
    assert_eq!((data.times_fired(), existence.times_fired()), (2, 1));
}

/// Its watch is the one that it had while it waited, and nothing waits for its event.
#[test_with(on_each_release)]
async fn first_look_shows_what_the_session_has_heard(setup: Setup) {
    let path = setup.existing("first-look").await;
    let holder = within(Lock::new(&setup.outsider, &path).acquire()).await.unwrap();
    let mut waiter = Waiter::asleep(&setup, &path).await;
    within(holder.release()).await.unwrap();
    let guard = waiter.outcome().await.unwrap();
    assert_eq!(guard.status(), Status::Held);
    setup.outsider.delete(guard.path()).await.unwrap();
    // What comes behind this was told behind the event.
    waiter.zk.sync("/").await.unwrap();
    waiter.zk.exists("/").await.unwrap();
    assert_eq!(guard.status(), Status::Lost(Lost::NodeDeleted));
}

/// Neither its data nor its existence: the pauses grow.
#[test_with(on_each_release)]
async fn holder_asks_ever_more_rarely_for_what_it_cannot_read(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.existing("rarely").await;
    let mark = proxy.mark();
    let reads = |op| proxy.on(Match::reply(op)).rewrite(|reply| reply.truncate(20));
    let [data, existence] = [OpCode::GET_DATA, OpCode::EXISTS].map(reads);
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    tokio::select! {
        lost = guard.lost() => panic!("{lost}"),
        _ = within(existence.fired_times(4)) => {}
    }
    let frames = proxy.frames_since(mark);
    let asked: Vec<_> = frames.iter().filter(|it| it.is_request(OpCode::EXISTS)).collect();
    for (pause, pair) in [100, 200, 400].into_iter().zip(asked.windows(2)) {
        let waited = pair[1].at - pair[0].at;
        assert!(waited >= Duration::from_millis(pause), "{waited:?} instead of {pause} ms");
    }
    drop((data, existence));
    assert!(within(guard.release()).await.is_ok());
}

/// A client that may not read its own node may still ask whether it is there.
#[test_with(on_each_release)]
async fn loss_of_an_unreadable_node_is_reported(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.existing("unreadable").await;
    let blind = Perms::CREATE | Perms::WRITE | Perms::DELETE | Perms::ADMIN;
    let acl = AclList::from_iter([Id::anyone().may(blind)]);
    let lock = Lock::builder(&zk, &path).acl(&acl).build();
    let guard = within(lock.acquire()).await.unwrap();
    let mut scope = pin!(guard.scope(pending::<()>()));
    assert_eq!(dropped_after(1, scope.as_mut()).await, None);
    setup.outsider.delete(guard.path()).await.unwrap();
    assert_eq!(within(scope).await, Err(Lost::NodeDeleted));
}

/// An outsider has written so much into it that its holder does not take the answer.
#[test_with(on_each_release)]
async fn loss_of_an_oversized_node_is_reported(setup: Setup) {
    let zk = setup.options().reply_len_max(4096).connect().await.unwrap();
    let epoch = zk.session().epoch();
    let path = setup.existing("large").await;
    let guard = within(Lock::new(&zk, &path).acquire()).await.unwrap();
    setup.outsider.set(guard.path(), &[b'x'; 8192]).await.unwrap();
    let mut scope = pin!(guard.scope(pending::<()>()));
    let reconnected = async {
        while zk.session().epoch() == epoch {
            sleep(Duration::from_millis(10)).await;
        }
        setup.outsider.delete(guard.path()).await.unwrap();
    };
    let (ended, ()) = within(async { tokio::join!(scope.as_mut(), reconnected) }).await;
    assert_eq!(ended, Err(Lost::NodeDeleted));
}

/// Nor does another node of the same name deceive it.
#[test_with(on_each_release)]
async fn replacement_by_an_oversized_node_is_reported(setup: Setup) {
    let zk = setup.options().reply_len_max(4096).connect().await.unwrap();
    let path = setup.existing("replaced").await;
    let guard = within(Lock::named(&zk, &path, "report").build().acquire()).await.unwrap();
    let mut scope = pin!(guard.scope(pending::<()>()));
    assert_eq!(dropped_after(1, scope.as_mut()).await, None);
    let own = guard.path();
    let multi = setup.outsider.multi().delete(own);
    let multi = multi.create(own, &[b'x'; 8192], CreateMode::Persistent);
    within(multi).await.unwrap().unwrap();
    assert_eq!(within(scope).await, Err(Lost::NodeDeleted));
}

/// Waits until a server keeps a watch on the node of a guard.
async fn watched(setup: &Setup, guard: &Guard) {
    within(async {
        while !setup.watched().await.iter().any(|path| path == guard.path()) {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// A node ahead that only changes is still ahead.
#[test_with(on_each_release)]
async fn waiter_behind_a_revoked_holder_waits_on(setup: Setup) {
    let path = setup.existing("asked").await;
    let (zk, queue) = (setup.client().await, Lock::new(&setup.outsider, &path).queue());
    let guard = within(Lock::new(&setup.client().await, &path).acquire()).await.unwrap();
    let waiting = Lock::new(&zk, &path);
    let waiting = tokio::spawn(async move { waiting.acquire().await });
    watched(&setup, &guard).await;
    let holder = within(queue.contenders()).await.unwrap().remove(0);
    assert!(within(queue.revoke(&holder)).await.unwrap());
    assert_eq!(within(guard.revoked()).await, Ok(()));
    // Behind whatever the waiter was told of that, and what it asked then.
    for _ in 0..3 {
        within(zk.sync("/").into_future()).await.unwrap();
    }
    assert!(!waiting.is_finished(), "granted beside the holder");
    assert_eq!(guard.status(), Status::Held);
    within(guard.release()).await.unwrap();
    within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
}

#[test_with(on_each_release)]
async fn long_held_lock_reports_loss_unasked(setup: Setup) {
    let zk = setup.client().await;
    let path = setup.existing("unasked").await;
    let metrics = Arc::new(Metrics::default());
    let lock = Lock::builder(&zk, &path).observer(metrics.clone()).build();
    let guard = within(lock.acquire()).await.unwrap();
    watched(&setup, &guard).await;
    assert_eq!(guard.status(), Status::Held);
    setup.outsider.delete(guard.path()).await.unwrap();
    // A client that is answered from behind the event has received it.
    zk.sync("/").await.unwrap();
    zk.sync("/").await.unwrap();
    assert_eq!(guard.status(), Status::Lost(Lost::NodeDeleted));
    drop(guard);
    assert_eq!(metrics.losses(), 1);
}

/// What the session has heard of is known, whether or not the future that waits for it has been polled since.
async fn deleted_unseen(setup: &Setup, zk: &Client, guard: &Guard, then: impl FnOnce(&Guard)) {
    let mut lost = Box::pin(guard.lost());
    assert_eq!(dropped_after(1, lost.as_mut()).await, None);
    watched(setup, guard).await;
    setup.outsider.delete(guard.path()).await.unwrap();
    setup.outsider.sync("/").await.unwrap();
    zk.sync("/").await.unwrap();
    then(guard);
}

#[test_with(on_each_release)]
async fn guards_know_deletions_their_session_saw(setup: Setup) {
    let zk = setup.client().await;
    let gone = Status::Lost(Lost::NodeDeleted);
    let path = |name: &str| setup.path(name);

    let shared = within(Lock::new(&zk, &path("shared")).acquire()).await.unwrap().share();
    deleted_unseen(&setup, &zk, &shared, |_| {
        assert_eq!(shared.reenter().err(), Some(Lost::NodeDeleted));
    })
    .await;

    let both = MultiLock::new(&zk, [path("one"), path("two")]);
    let both = within(both.acquire()).await.unwrap();
    let second = both.iter().nth(1).unwrap();
    deleted_unseen(&setup, &zk, second, |_| assert_eq!(both.status(), gone)).await;

    let writing = within(RwLock::new(&zk, &path("rw")).write()).await.unwrap();
    deleted_unseen(&setup, &zk, &writing, |_| assert_eq!(writing.status(), gone)).await;
    let refused = within(writing.downgrade()).await.unwrap_err();
    assert_eq!(refused.cause, AcquireError::NodeDeleted);

    let led = within(Election::new(&zk, &path("e")).campaign(b"")).await.unwrap();
    deleted_unseen(&setup, &zk, &led, |_| assert_eq!(led.status(), gone)).await;
}

/// Tasks that stand still while it is closed.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    fn close(&self, closed: bool) {
        let mut gate = self.0.lock().unwrap();
        gate.0 = closed;
        gate.1.drain(..).for_each(Waker::wake);
    }

    fn spawn(&self, mut task: BoxFuture<'static, ()>) {
        let gate = self.clone();
        tokio::spawn(poll_fn(move |cx| {
            let mut gate = gate.0.lock().unwrap();
            if gate.0 {
                gate.1.push(cx.waker().clone());
                return Poll::Pending;
            }
            drop(gate);
            task.as_mut().poll(cx)
        }));
    }
}

/// What the session has received counts before any task is notified of it.
#[test_with(on_each_release)]
async fn cohort_does_not_pass_on_a_deleted_node(setup: Setup) {
    for somebody_listens in [true, false] {
        let (gate, is_first) = (Gate::default(), AtomicBool::new(true));
        let options = setup.options().spawn_with({
            let gate = gate.clone();
            move |task| match is_first.swap(false, Ordering::Relaxed) {
                // The session's own task goes on.
                true => drop(tokio::spawn(task)),
                false => gate.spawn(task),
            }
        });
        let zk = options.connect().await.unwrap();
        let lock = CohortLock::new(&zk, &setup.path(&format!("c{somebody_listens}")));
        let guard = within(lock.acquire()).await.unwrap();
        let next = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire().await }
        });
        within(async {
            while lock.waiting() == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let old = guard.path().to_owned();
        let mut lost = Box::pin(guard.lost());
        assert_eq!(dropped_after(1, lost.as_mut()).await, None);
        watched(&setup, &guard).await;
        zk.sync("/").await.unwrap();
        let lost = somebody_listens.then_some(lost);
        gate.close(true);
        setup.outsider.delete(&old).await.unwrap();
        setup.outsider.sync("/").await.unwrap();
        zk.sync("/").await.unwrap();
        drop(lost);
        drop(guard);
        gate.close(false);
        let next = within(next).await.unwrap().unwrap();
        assert_ne!(next.path(), old, "on a node that is gone");
        assert!(setup.outsider.exists(next.path()).await.unwrap().is_some());
        within(next.release()).await.unwrap();
    }
}

/// Woken when work is cancelled: gives a delete that is on its way already a moment, and counts it.
struct Cancelled {
    proxy: Arc<Proxy>,
    woken: AtomicUsize,
    deletes: Mutex<Vec<u64>>,
}

impl Wake for Cancelled {
    fn wake(self: Arc<Self>) {
        let counted = || {
            let counts = self.proxy.counts();
            counts.requests(OpCode::DELETE) + counts.requests(OpCode::MULTI)
        };
        let woken = Instant::now();
        while counted() == 0 && woken.elapsed() < Duration::from_millis(100) {
            thread::sleep(Duration::from_millis(10));
        }
        self.deletes.lock().unwrap().push(counted());
        self.woken.fetch_add(1, Ordering::SeqCst);
    }
}

/// Gives guards up in some way; their work is cancelled before any node goes.
async fn cancels_first<G>(
    setup: &Setup,
    acquired: impl AsyncFn(&Client) -> G,
    guards: impl Fn(&G) -> Vec<&Guard>,
    give_up: impl Fn(G) + Sync,
) where
    G: Send,
{
    let (proxy, zk) = setup.proxied().await;
    let proxy = Arc::new(proxy);
    let held = acquired(&zk).await;
    proxy.clear_log();
    let (woken, deletes) = (AtomicUsize::new(0), Mutex::default());
    let waker = Arc::new(Cancelled { proxy: proxy.clone(), woken, deletes });
    let tokens: Vec<_> = guards(&held).iter().map(|guard| guard.cancellation_token()).collect();
    let mut work: Vec<_> = tokens.iter().map(|token| Box::pin(token.cancelled())).collect();
    for work in &mut work {
        let pending = work.as_mut().poll(&mut Context::from_waker(&Waker::from(waker.clone())));
        assert!(pending.is_pending());
    }
    tokio::task::block_in_place(|| give_up(held));
    closed(&zk).await;
    assert_eq!(waker.woken.load(Ordering::SeqCst), tokens.len());
    assert!(waker.deletes.lock().unwrap().iter().all(|deletes| *deletes == 0), "deleted before");
}

#[test_with(on_each_release_threaded)]
async fn work_is_cancelled_before_the_release(setup: Setup) {
    let lock = async |zk: &Client| within(Lock::new(zk, &setup.path("l")).acquire()).await.unwrap();
    cancels_first(&setup, lock, |guard| vec![guard], drop).await;
    cancels_first(&setup, lock, |guard| vec![guard], |guard| drop(guard.release())).await;
    let shared = async |zk: &Client| lock(zk).await.share();
    cancels_first(&setup, shared, |guard| vec![&**guard], drop).await;
    let both = async |zk: &Client| {
        let both = MultiLock::new(zk, [setup.path("a"), setup.path("b")]);
        within(both.acquire()).await.unwrap()
    };
    cancels_first(&setup, both, |both| both.iter().collect(), drop).await;
    cancels_first(&setup, both, |both| both.iter().collect(), |both| drop(both.release())).await;
    let write =
        async |zk: &Client| within(RwLock::new(zk, &setup.path("rw")).write()).await.unwrap();
    cancels_first(&setup, write, |guard| vec![&**guard], drop).await;
    let lead = async |zk: &Client| {
        within(Election::new(zk, &setup.path("e")).campaign(b"")).await.unwrap()
    };
    cancels_first(&setup, lead, |guard| vec![&**guard], drop).await;
    let cohort =
        async |zk: &Client| within(CohortLock::new(zk, &setup.path("c")).acquire()).await.unwrap();
    cancels_first(&setup, cohort, |guard| vec![&**guard], drop).await;
}
