//! Requests of recipes, whatever the client was told and whatever befalls them.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use zk_client::{CallOptions, Cause, CreateMode, EventType, PathError, SessionState, WriteError};
use zk_locks::{
    AcquireError, Barrier, Client, CohortLock, DoubleBarrier, Election, Group, HerdLock, Lock,
    MultiLock, Queue, RwLock, Semaphore, SemaphoreMutex, SimpleLock,
};
use zk_proto::{ErrorCode, OpCode};
use zk_testkit::proxy::Match;
use zk_tests::{busy::too_busy_for, register::Register};

use crate::{
    refusals::answered_with,
    support::{Stage, Waiter, emptied, on_each_release, within},
};

/// The place in the queue is the session's, and an outage is shorter than that.
#[tokio::test]
async fn a_waiter_outlasts_an_outage_whatever_its_client_was_told() {
    on_each_release(async |stage: Stage| {
        for hasty in
            [CallOptions::new().timeout(Duration::from_millis(50)), CallOptions::new().fail_fast()]
        {
            let path = stage.path("outage");
            let held = within(Lock::new(&stage.outsider, &path).acquire()).await.unwrap();
            let (proxy, zk) = stage.proxied().await;
            let mut waiter = Waiter::new(proxy, zk.with(hasty), &path);
            waiter.has_read(2).await;
            let mut session = zk.session();
            waiter.proxy.refuse_connections().await;
            waiter.proxy.reset_all();
            while session.state() != SessionState::Disconnected {
                within(session.changed()).await;
            }
            // It hears of this when it is back, and has to look then.
            within(held.release()).await.unwrap();
            let slow = waiter
                .proxy
                .on(Match::reply(OpCode::GET_CHILDREN2))
                .delay(Duration::from_millis(100));
            waiter.proxy.accept_connections().await;
            let guard = waiter.outcome().await.unwrap();
            assert!(slow.times_fired() > 0);
            within(guard.release()).await.unwrap();
        }
    })
    .await;
}

/// What the connection string ends in is part of what is missing.
#[tokio::test]
async fn a_chroot_that_is_missing_is_created_by_recipes() {
    on_each_release(async |stage: Stage| {
        for chroot in ["one", "two/levels"] {
            let zk = stage.outsider.chrooted(&stage.path(chroot)).unwrap();
            for (lock, path) in [("/", stage.path(chroot)), ("/lock", stage.path(chroot) + "/lock")]
            {
                within(within(Lock::new(&zk, lock).acquire()).await.unwrap().release())
                    .await
                    .unwrap();
                emptied_or_only(&stage, &path).await;
                stage
                    .outsider
                    .delete_recursive(&stage.path(chroot.split('/').next().unwrap()))
                    .await
                    .unwrap();
            }
            within(within(SimpleLock::new(&zk, "/node").acquire()).await.unwrap().release())
                .await
                .unwrap();
            stage
                .outsider
                .delete_recursive(&stage.path(chroot.split('/').next().unwrap()))
                .await
                .unwrap();
            assert!(within(Barrier::new(&zk, "/deep/barrier").set()).await.unwrap());
            stage
                .outsider
                .delete_recursive(&stage.path(chroot.split('/').next().unwrap()))
                .await
                .unwrap();
            drop(within(Semaphore::new(&zk, "/s", 1).acquire()).await.unwrap());
            drop(within(Group::new(&zk, "/g").join(b"")).await.unwrap());
        }
    })
    .await;
}

async fn emptied_or_only(stage: &Stage, path: &str) {
    assert!(stage.outsider.exists(path).await.unwrap().is_some());
    emptied(&stage.outsider, path).await;
}

/// The create reply is lost, and then the server is busy: nothing may stand that nobody knows of.
#[tokio::test]
async fn a_simple_lock_leaves_nothing_behind_two_troubles() {
    on_each_release(async |stage: Stage| {
        let path = stage.path("orphan");
        let (proxy, zk) = stage.proxied().await;
        let created = |frame: &zk_testkit::proxy::Frame| {
            frame.is_reply(OpCode::CREATE2) || frame.is_reply(OpCode::MULTI)
        };
        let lost = proxy.on(Match::replies().when(created).once()).reset();
        let busy =
            answered_with(&proxy, Match::reply(OpCode::SYNC).once(), ErrorCode::THROTTLED_OP);
        let lock = SimpleLock::new(&zk, &path);
        let guard = within(lock.acquire()).await.unwrap();
        assert_eq!((lost.times_fired(), busy.times_fired()), (1, 1));
        assert!(within(lock.try_acquire()).await.unwrap().is_none());
        within(guard.release()).await.unwrap();
        assert!(stage.outsider.exists(&path).await.unwrap().is_none());
        within(within(lock.acquire()).await.unwrap().release()).await.unwrap();
    })
    .await;
}

/// The waiter of the first article: it asks once whether the node exists, and waits for its end.
#[tokio::test]
async fn who_listens_once_hears_that_a_simple_lock_is_free() {
    on_each_release(async |stage: Stage| {
        let path = stage.path("once");
        let guard = within(SimpleLock::new(&stage.outsider, &path).acquire()).await.unwrap();
        let theirs = stage.client().await;
        let create = || theirs.create(&path, b"them").mode(CreateMode::Ephemeral);
        assert!(create().await.is_err());
        let (there, heard) = theirs.exists(&path).watch().await.unwrap();
        assert!(there.is_some());
        within(guard.release()).await.unwrap();
        assert_eq!(within(heard).await.unwrap().kind, EventType::NODE_DELETED);
        create().await.unwrap();
        // And the other way round: it gives its lock back by a delete of whatever version.
        let lock = SimpleLock::new(&stage.outsider, &path);
        let waiting = tokio::spawn(async move { lock.acquire().await });
        theirs.sync("/").await.unwrap();
        theirs.delete(&path).await.unwrap();
        within(within(waiting).await.unwrap().unwrap().release()).await.unwrap();
    })
    .await;
}

/// One error for all, and it names what the caller has written.
#[tokio::test]
async fn a_slash_at_the_end_is_one_error_that_names_the_path() {
    on_each_release(async |stage: Stage| {
        let path = stage.path("slash/");
        let expected: PathError = path.parse::<zk_client::ZkPath>().unwrap_err();
        let zk = &stage.outsider;
        let expected = AcquireError::InvalidPath(expected);
        let errors = [
            Lock::new(zk, &path).acquire().await.err(),
            Lock::new(zk, &path).try_acquire().await.err(),
            HerdLock::new(zk, &path).acquire().await.err(),
            RwLock::new(zk, &path).read().await.err(),
            Semaphore::new(zk, &path, 1).acquire().await.err(),
            SimpleLock::new(zk, &path).acquire().await.err(),
            SimpleLock::new(zk, &path).try_acquire().await.err(),
            Group::new(zk, &path).join(b"").await.err(),
            Barrier::new(zk, &path).set().await.err(),
            Queue::new(zk, &path).contenders().await.err().map(AcquireError::from),
        ];
        for error in errors {
            assert_eq!(error.as_ref(), Some(&expected));
            assert!(error.unwrap().to_string().contains(&path));
        }
    })
    .await;
}

/// What only one has at a time, and what several do together.
const ALONE: [&str; 11] = [
    "lock",
    "named",
    "delay",
    "herd",
    "write",
    "semaphore",
    "mutex",
    "several",
    "cohort",
    "lead",
    "simple",
];
const TOGETHER: [&str; 4] = ["read", "group", "double barrier", "barrier"];

/// Something that was had: its token, and how it is looked at and given back.
type Taken<'a> = (i64, Pin<Box<dyn Future<Output = ()> + 'a>>);

async fn take<'a>(zk: &'a Client, recipe: &str, path: &'a str) -> Result<Taken<'a>, AcquireError> {
    macro_rules! had {
        ($acquire:expr) => {{
            let guard = $acquire.await?;
            let token = guard.token().get();
            let give_back = async move {
                within(guard.check()).await.unwrap();
                within(guard.release()).await.unwrap();
            };
            Ok((token, Box::pin(give_back)))
        }};
    }
    match recipe {
        "lock" => had!(Lock::new(zk, path).acquire()),
        "named" => had!(Lock::named(zk, path, "one").build().acquire()),
        "delay" => {
            had!(Lock::builder(zk, path).lock_delay(Duration::from_millis(5)).build().acquire())
        }
        "herd" => had!(HerdLock::new(zk, path).acquire()),
        "read" => had!(RwLock::new(zk, path).read()),
        "write" => had!(RwLock::new(zk, path).write()),
        "semaphore" => had!(Semaphore::new(zk, path, 1).acquire()),
        "mutex" => had!(SemaphoreMutex::new(zk, path).acquire()),
        "simple" => had!(SimpleLock::new(zk, path).acquire()),
        "cohort" => {
            let guard = CohortLock::new(zk, path).acquire().await?;
            let token = guard.token().get();
            Ok((token, Box::pin(async move { guard.release().await.unwrap() })))
        }
        "lead" => {
            let lead = Election::new(zk, path).campaign(b"who").await?;
            let token = lead.token().get();
            let give_back = async move {
                within(lead.proclaim(b"we")).await.unwrap();
                within(lead.resign()).await.unwrap();
            };
            Ok((token, Box::pin(give_back)))
        }
        "several" => {
            let guards = MultiLock::new(zk, [path, &format!("{path}-too")]).acquire().await?;
            let token = guards.iter().next().unwrap().token().get();
            let give_back = async move {
                within(guards.check()).await.unwrap();
                within(guards.release()).await.unwrap();
            };
            Ok((token, Box::pin(give_back)))
        }
        "group" => {
            let group = Group::new(zk, path);
            let member = group.join(b"who").await?;
            let members = within(group.members()).await.unwrap();
            assert!(members.iter().any(|it| member.path().ends_with(&it.name)));
            Ok((0, Box::pin(async move { within(member.leave()).await.unwrap() })))
        }
        "double barrier" => {
            let entered = DoubleBarrier::new(zk, path, 2).enter().await?;
            Ok((0, Box::pin(async move { within(entered.leave()).await.unwrap() })))
        }
        "barrier" => {
            let barrier = Barrier::new(zk, path);
            barrier.set().await?;
            let give_back = async move {
                within(barrier.remove()).await.unwrap();
                within(barrier.wait()).await.unwrap();
            };
            Ok((0, Box::pin(give_back)))
        }
        other => panic!("no recipe {other}"),
    }
}

/// Two who use a recipe on a path that is missing at first. One meets a server that is too busy for these requests
/// of its own. How many it has made.
async fn round(stage: &Stage, recipe: &str, path: &str, busy_for: &[u64]) -> usize {
    let register = Register::default();
    let (proxy, zk) = stage.proxied().await;
    let hasty = zk.with(CallOptions::new().timeout(Duration::from_millis(1)));
    let mark = proxy.mark();
    let wanted = busy_for.to_vec();
    let count = std::sync::atomic::AtomicU64::new(0);
    let is_one = move |_: &zk_testkit::proxy::Frame| {
        wanted.contains(&count.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    };
    let busy = too_busy_for(&proxy, Match::requests().when(is_one));
    let alone = ALONE.contains(&recipe);
    let turn = async |zk: &Client| {
        for _ in 0..2 {
            let taken = within(take(zk, recipe, path)).await;
            let (token, give_back) =
                taken.unwrap_or_else(|error| panic!("{path}, {busy_for:?}: {error}"));
            if alone {
                register.enter(token);
                stage.outsider.sync("/").await.unwrap();
                register.leave(token);
            }
            give_back.await;
        }
    };
    tokio::join!(turn(&hasty), turn(&stage.outsider));
    register.assert_clean();
    // What goes in the background has gone when this is answered; a throttled delete is asked for again.
    let asked = proxy.frames_since(mark).requests().len();
    drop(busy);
    within(zk.close()).await.unwrap();
    asked
}

/// Each request of each recipe on its own, and then two at a time as they are drawn. Its client has a timeout of
/// a millisecond, which is nothing to a recipe.
#[tokio::test]
async fn each_request_of_a_recipe_may_be_turned_away() {
    on_each_release(async |stage: Stage| {
        let mut cells: BTreeMap<&str, u64> = BTreeMap::new();
        let mut chance = 17_u64;
        let mut draw = |below: usize| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (chance >> 33) % below as u64
        };
        for recipe in ALONE.into_iter().chain(TOGETHER) {
            let path = |cell: u64| stage.path(&format!("{}/{cell}/x", recipe.replace(' ', "-")));
            let asked = Box::pin(round(&stage, recipe, &path(1000), &[])).await;
            for cell in 0..asked as u64 {
                Box::pin(round(&stage, recipe, &path(cell), &[cell])).await;
            }
            for cell in 100..104 {
                Box::pin(round(&stage, recipe, &path(cell), &[draw(asked), draw(asked)])).await;
            }
            cells.insert(recipe, asked as u64 + 4);
        }
        println!("{cells:?}");
    })
    .await;
}

/// It is the user's request: late or refused, as the user said.
#[tokio::test]
async fn a_transaction_of_a_guard_is_made_as_its_client_was_told() {
    on_each_release(async |stage: Stage| {
        let path = stage.path("told");
        let (proxy, zk) = stage.proxied().await;
        let limit = Duration::from_millis(50);
        let hasty = zk.with(CallOptions::new().timeout(limit));
        let lock = Lock::new(&hasty, &path);
        let guard = within(lock.acquire()).await.unwrap();
        let late = proxy.on(Match::reply(OpCode::MULTI).once()).hold();
        let written = within(guard.transaction().set(&path, b"late").into_future()).await;
        let overdue = |error: &WriteError| {
            matches!(error, WriteError::InDoubt(doubt) if doubt.cause == Cause::DeadlineExceeded)
        };
        assert!(written.as_ref().is_err_and(overdue), "{written:?}");
        late.release();
        let replies = Match::reply(OpCode::MULTI).once();
        let busy = answered_with(&proxy, replies, ErrorCode::THROTTLED_OP);
        let written = within(guard.transaction().set(&path, b"refused").into_future()).await;
        assert_eq!(written, Err(WriteError::NotApplied(Cause::Throttled)));
        assert_eq!(busy.times_fired(), 1);
        within(guard.release()).await.unwrap();
    })
    .await;
}
