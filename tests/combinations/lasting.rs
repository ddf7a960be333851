//! What is done with what outlives a session, or must not outlast a time: durable locks, services that are run again,
//! locks that are taken away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use zk_client::{Client, SessionId, Supervise};
use zk_locks::{AcquireError, DurableGuard, DurableLock, Group, Lock, Lost, Status};
use zk_tests::network::pass;

use crate::combinations::{
    cell::{Named, Play},
    scene::{Beside, IN_TROUBLE, SOON, Scene, ensure, well, within},
    trouble::Stage,
};

/// Of durable locks: longer than any trouble, and than what comes after it.
const LEASE: Duration = Duration::from_secs(30);

/// Within that a holder that renews its grant three times in a lease hears what the servers know.
const RENEWED: Duration = LEASE.saturating_add(IN_TROUBLE);

/// Within that others have what is not renewed any more: a tenth more than a lease, and looks at a quarter of it.
const BROKEN: Duration = LEASE.saturating_mul(2);

/// Of a lock that is taken away: longer than a rest.
const HOLD_MAX: Duration = Duration::from_secs(20);

/// Between two runs of a service, at most.
const PAUSE_MAX: Duration = Duration::from_secs(1);

pub(crate) fn plays() -> impl Iterator<Item = Play> {
    let plays: &[Named] = &[
        ("DurableLock", "waits", |scene| Box::pin(waits(scene))),
        ("DurableLock", "tries", |scene| Box::pin(tries(scene))),
        ("DurableLock", "gives up", |scene| Box::pin(gives_up(scene))),
        ("DurableLock", "hears that it is broken", |scene| Box::pin(hears(scene))),
        ("DurableLock", "dies", |scene| Box::pin(dies(scene))),
        ("DurableLock", "carries on", |scene| Box::pin(carries_on(scene))),
        ("DurableLock", "takes it up again", |scene| Box::pin(takes_it_up_again(scene))),
        ("Supervise", "registers again", |scene| Box::pin(registers_again(scene))),
        ("Lock", "is taken away", |scene| Box::pin(is_taken_away(scene))),
    ];
    plays.iter().map(Play::named)
}

type Granted = Result<DurableGuard, AcquireError>;

fn asks(client: &Client, scene: &Scene, owner: &str) -> Beside<Granted> {
    let lock = DurableLock::new(client, &scene.path, owner).lease(LEASE);
    Beside::new(async move { lock.acquire().await })
}

async fn first_holds(scene: &Scene) -> Result<DurableGuard, String> {
    asks(&scene.rivals[0], scene, "first").done(SOON, "a grant for the first").await
}

async fn subject_holds(scene: &Scene) -> Result<DurableGuard, String> {
    scene.stage(Stage::Acquiring);
    let subject = asks(&scene.subject, scene, "subject");
    let subject = subject.done(IN_TROUBLE, "a grant for the subject").await?;
    scene.stage(Stage::Held);
    Ok(subject)
}

/// Neither a grant nor a place in the queue, of any client.
async fn nothing_is_left(scene: &Scene) -> Result<(), String> {
    scene.stage(Stage::After);
    scene.nothing_is_left().await?;
    let left = || {
        let below = |name| scene.names_below(&format!("{}/{name}", scene.path));
        [below("grants"), below("locks")].concat()
    };
    let empty = async {
        while !left().is_empty() {
            pass(Duration::from_millis(50)).await;
        }
    };
    within(IN_TROUBLE, "that nothing is left", empty).await.map_err(|text| {
        let left = left();
        format!("{text}: {left:?}")
    })
}

/// The subject waits behind one client, and another waits behind it.
async fn waits(scene: &Scene) -> Result<(), String> {
    let first = first_holds(scene).await?;
    scene.stage(Stage::Acquiring);
    let subject = asks(&scene.subject, scene, "subject");
    scene.rest().await;
    ensure(!subject.is_done(), "the subject is answered while the first holds")?;
    let second = asks(&scene.rivals[1], scene, "second");
    pass(Duration::from_secs(1)).await;
    scene.stage(Stage::Waiting);
    // Longer than a lease, which the first renews.
    scene.rest().await;
    scene.rest().await;
    ensure(!subject.is_done(), "the subject is answered while the first holds")?;
    ensure(first.status() == Status::Held, "the first has lost it")?;
    let before = first.token();
    well(SOON, "the release of the first", first.release()).await?;
    let subject = subject.done(IN_TROUBLE, "a grant for the subject").await?;
    ensure(subject.token() > before, "a token that is no larger")?;
    scene.stage(Stage::Held);
    pass(BROKEN).await;
    ensure(!second.is_done(), "the second is answered while the subject holds")?;
    ensure(!matches!(subject.status(), Status::Lost(_)), "the subject has lost it")?;
    scene.stage(Stage::Releasing);
    let token = subject.token();
    well(IN_TROUBLE, "the release of the subject", subject.release()).await?;
    let second = second.done(IN_TROUBLE, "a grant for the second").await?;
    ensure(second.token() > token, "a token that is no larger")?;
    well(SOON, "the release of the second", second.release()).await?;
    nothing_is_left(scene).await
}

/// It takes what is free, what is its own, and nothing else.
async fn tries(scene: &Scene) -> Result<(), String> {
    let lock = || DurableLock::new(&scene.subject, &scene.path, "subject").lease(LEASE);
    scene.stage(Stage::Acquiring);
    let free = well(IN_TROUBLE, "to try", lock().try_acquire()).await?;
    let token = free.ok_or("no grant of what is free")?.token();
    scene.stage(Stage::Held);
    let again = well(IN_TROUBLE, "to try once more", lock().try_acquire()).await?;
    let again = again.ok_or("no grant for its owner")?;
    ensure(again.token() > token, "a token that is no larger")?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "the release of the subject", again.release()).await?;
    let first = first_holds(scene).await?;
    scene.stage(Stage::Waiting);
    let held = well(IN_TROUBLE, "to try", lock().try_acquire()).await?;
    ensure(held.is_none(), "a grant of what somebody else holds")?;
    well(SOON, "the release of the first", first.release()).await?;
    nothing_is_left(scene).await
}

async fn gives_up(scene: &Scene) -> Result<(), String> {
    let first = first_holds(scene).await?;
    scene.stage(Stage::Acquiring);
    let patience = scene.draw(|rng| *rng.pick(&[2, 5, 700, 2_000].map(Duration::from_millis)));
    let subject = asks(&scene.subject, scene, "subject");
    pass(patience).await;
    ensure(!subject.is_done(), "the subject is answered while the first holds")?;
    scene.stage(Stage::GivingUp);
    drop(subject);
    scene.rest().await;
    scene.nothing_is_left().await?;
    let second = asks(&scene.rivals[1], scene, "second");
    pass(SOON).await;
    ensure(!second.is_done(), "the second is answered while the first holds")?;
    well(SOON, "the release of the first", first.release()).await?;
    let second = second.done(SOON, "a grant for the second").await?;
    well(SOON, "the release of the second", second.release()).await?;
    nothing_is_left(scene).await
}

/// An operator evicts it.
async fn hears(scene: &Scene) -> Result<(), String> {
    let subject = subject_holds(scene).await?;
    scene.rest().await;
    ensure(!matches!(subject.status(), Status::Lost(_)), "the subject has lost it")?;
    let lock = DurableLock::new(&scene.rivals[0], &scene.path, "first").lease(LEASE);
    let holder = well(SOON, "a look at the holder", lock.holder()).await?.ok_or("no holder")?;
    ensure(holder.owner == "subject" && holder.token == subject.token(), "another holder")?;
    ensure(well(SOON, "to break it", lock.evict(&holder)).await?, "nothing to break")?;
    let lost = within(RENEWED, "word of it", subject.lost()).await?;
    ensure(lost == Lost::NodeDeleted, &format!("word of {lost:?}"))?;
    drop(subject);
    let first = well(SOON, "a grant for the first", lock.acquire()).await?;
    well(SOON, "the release of the first", first.release()).await?;
    nothing_is_left(scene).await
}

/// Its session is ended by the servers, and nothing carries on.
async fn dies(scene: &Scene) -> Result<(), String> {
    let subject = subject_holds(scene).await?;
    let first = asks(&scene.rivals[0], scene, "first");
    scene.rest().await;
    ensure(!first.is_done(), "the first is answered while the subject holds")?;
    scene.network.expire(scene.subject.session().id());
    // Whether the subject listens or asks: the first is not granted anything before the subject knows.
    let first = first.done(BROKEN + IN_TROUBLE, "a grant for the first").await?;
    let status = subject.status();
    ensure(matches!(status, Status::Lost(_)), &format!("two hold: {status:?}"))?;
    let lost = within(Duration::ZERO, "word of it", subject.lost()).await?;
    ensure(lost == Lost::LeaseRanOut, &format!("word of {lost:?}"))?;
    ensure(first.token() > subject.token(), "a token that is no larger")?;
    drop(subject);
    well(SOON, "the release of the first", first.release()).await
}

/// Its session is ended by the servers, and it goes on with another.
async fn carries_on(scene: &Scene) -> Result<(), String> {
    let mut subject = subject_holds(scene).await?;
    let first = asks(&scene.rivals[0], scene, "first");
    scene.rest().await;
    scene.network.expire(scene.subject.session().id());
    let next = well(IN_TROUBLE, "another session", scene.options().connect()).await?;
    subject.carry_on(&next);
    pass(BROKEN).await;
    ensure(!first.is_done(), "the first is answered while the subject holds")?;
    well(IN_TROUBLE, "a check", subject.check()).await?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "the release of the subject", subject.release()).await?;
    let first = first.done(IN_TROUBLE, "a grant for the first").await?;
    well(SOON, "the release of the first", first.release()).await
}

/// A holder is dropped, and another one of the same owner gets it past all who wait.
async fn takes_it_up_again(scene: &Scene) -> Result<(), String> {
    let subject = subject_holds(scene).await?;
    let token = subject.token();
    let first = asks(&scene.rivals[0], scene, "first");
    pass(SOON).await;
    drop(subject);
    scene.stage(Stage::Waiting);
    let again = asks(&scene.subject, scene, "subject").done(IN_TROUBLE, "it once more").await?;
    ensure(again.token() > token, "a token that is no larger")?;
    ensure(!first.is_done(), "the first is answered while the subject holds")?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "the release of the subject", again.release()).await?;
    let first = first.done(IN_TROUBLE, "a grant for the first").await?;
    well(SOON, "the release of the first", first.release()).await?;
    nothing_is_left(scene).await
}

/// Whose node is below the path, if there is one.
fn member(scene: &Scene) -> Option<SessionId> {
    let top = format!("{}{}/", scene.root, scene.path);
    scene.tree(|tree| {
        let mut below = tree.iter().filter(|(path, _)| path.starts_with(&top));
        below.next().map(|(_, node)| node.stat().ephemeral_owner)
    })
}

async fn another_member(scene: &Scene, before: Option<SessionId>) -> Result<SessionId, String> {
    let there = async {
        loop {
            match member(scene) {
                Some(owner) if Some(owner) != before => return owner,
                _ => pass(Duration::from_millis(10)).await,
            }
        }
    };
    within(PAUSE_MAX + IN_TROUBLE, "that the service is a member", there).await
}

/// Tells that it is there, as long as it is.
struct Running(Arc<AtomicBool>);

impl Running {
    fn new(running: &Arc<AtomicBool>) -> Self {
        assert!(!running.swap(true, Ordering::SeqCst), "two at once");
        Self(running.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A service whose sessions end, one after the other, until it is done.
async fn registers_again(scene: &Scene) -> Result<(), String> {
    let (done, is_done) = watch::channel(false);
    let running = Arc::<AtomicBool>::default();
    scene.stage(Stage::Acquiring);
    let (options, path) = (scene.options(), scene.path.clone());
    let supervised = Supervise::<String>::new(options).pause_max(PAUSE_MAX).run(move |zk| {
        let (group, mut is_done) = (Group::new(&zk, &path), is_done.clone());
        let running = Running::new(&running);
        async move {
            let _running = running;
            let membership = group.join(b"service").await.map_err(|error| error.to_string())?;
            let _ = is_done.wait_for(|done| *done).await;
            drop(membership);
            Ok("done")
        }
    });
    let supervised = Beside::new(supervised);
    let mut session = another_member(scene, None).await?;
    scene.rest().await;
    ensure(member(scene) == Some(session), "another session without need")?;
    scene.stage(Stage::Held);
    for _ in 0..3 {
        scene.network.expire(session);
        session = another_member(scene, Some(session)).await?;
        scene.rest().await;
        ensure(member(scene) == Some(session), "another session without need")?;
    }
    scene.stage(Stage::Releasing);
    done.send_replace(true);
    let value = supervised.done(IN_TROUBLE, "the end of the service").await?;
    ensure(value == "done", "another value")?;
    ensure(member(scene).is_none(), "a member is left behind")
}

/// The subject holds it for too long.
async fn is_taken_away(scene: &Scene) -> Result<(), String> {
    let lock = Lock::builder(&scene.subject, &scene.path).release_after(HOLD_MAX).build();
    scene.stage(Stage::Acquiring);
    let subject = well(IN_TROUBLE, "a grant for the subject", lock.acquire()).await?;
    let rival = Lock::new(&scene.rivals[0], &scene.path);
    let first = Beside::new(async move { rival.acquire().await });
    scene.stage(Stage::Held);
    pass(HOLD_MAX - SOON).await;
    ensure(!first.is_done(), "the first is answered while the subject holds")?;
    ensure(!matches!(subject.status(), Status::Lost(_)), "the subject has lost it")?;
    let lost = within(SOON + SOON, "word of it", subject.lost()).await?;
    ensure(lost == Lost::HeldTooLong, &format!("word of {lost:?}"))?;
    let first = first.done(IN_TROUBLE, "a grant for the first").await?;
    scene.stage(Stage::Releasing);
    drop(subject);
    scene.rest().await;
    ensure(first.status() == Status::Held, "the first has lost it")?;
    well(SOON, "the release of the first", first.release()).await?;
    scene.stage(Stage::After);
    scene.nothing_is_left().await?;
    let again = well(SOON, "it once more", lock.acquire()).await?;
    well(SOON, "its release", again.release()).await
}
