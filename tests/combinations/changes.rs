//! What else can be asked of what is held: whether it still is, another kind of it, without waiting, the holder.

use std::time::Duration;

use zk_client::{Client, WriteError};
use zk_locks::{
    AcquireError, CheckError, CohortLock, Election, Guard, Lock, Lost, MultiLock, RwLock,
    Semaphore, SimpleLock,
};
use zk_tests::network::pass;

use crate::combinations::{
    cell::{Named, Play},
    holds::{Hold, Later},
    scene::{IN_TROUBLE, SOON, Scene, ensure, well, within},
    trouble::Stage,
};

/// Asks for something that is to be had at once, or not at all.
type Try = fn(Client, String) -> Later<Result<Option<Box<dyn Hold>>, AcquireError>>;

macro_rules! tries {
    ($($recipe:literal: |$client:ident, $path:ident| $made:expr, $method:ident, $theirs:ident;)*) => {
        [$(($recipe, tries!(|$client, $path| $made, $method), tries!(|$client, $path| $made, $theirs))),*]
    };
    (|$client:ident, $path:ident| $made:expr, $method:ident) => {
        (|$client, $path| {
            Box::pin(async move {
                let held = $made.$method().await?;
                Ok(held.map(|held| -> Box<dyn Hold> { Box::new(held) }))
            })
        }) as Try
    };
}

pub(crate) fn plays() -> impl Iterator<Item = Play> {
    let tries = tries! {
        "Lock": |client, path| Lock::new(&client, &path), try_acquire, try_acquire;
        "Lock in a herd": |client, path| Lock::builder(&client, &path).herd().build(), try_acquire, try_acquire;
        "RwLock::read": |client, path| RwLock::new(&client, &path), try_read, try_write;
        "RwLock::write": |client, path| RwLock::new(&client, &path), try_write, try_write;
        "MultiLock": |client, path| MultiLock::new(&client, [path.clone(), format!("{path}-too")]), try_acquire, try_acquire;
        "Semaphore": |client, path| Semaphore::new(&client, &path, 1), try_acquire, try_acquire;
        "SimpleLock": |client, path| SimpleLock::new(&client, &format!("{path}/node")), try_acquire, try_acquire;
    };
    let tries = tries.into_iter().map(|(recipe, ours, theirs)| Play {
        recipe,
        name: "tries",
        act: Box::new(move |scene| Box::pin(attempts(scene, ours, theirs))),
    });
    let plays: &[Named] = &[
        ("Lock", "checks", |scene| Box::pin(checks(scene))),
        ("Lock", "lists", |scene| Box::pin(lists(scene))),
        ("RwLock::write", "downgrades", |scene| Box::pin(downgrades(scene))),
        ("RwLock::read", "upgrades", |scene| Box::pin(upgrades(scene))),
        ("CohortLock", "passes on", |scene| Box::pin(passes_on(scene))),
        ("CohortLock", "passes nothing on", |scene| Box::pin(passes_nothing_on(scene))),
        ("Semaphore", "takes several", |scene| Box::pin(takes_several(scene))),
        ("Election", "proclaims", |scene| Box::pin(proclaims(scene))),
    ];
    tries.chain(plays.iter().map(Play::named))
}

/// Free, it is had; taken, it is not, and nothing is left of the attempt.
async fn attempts(scene: &Scene, ours: Try, theirs: Try) -> Result<(), String> {
    let (subject, path) = (scene.subject.clone(), scene.path.clone());
    scene.stage(Stage::Acquiring);
    let held = well(IN_TROUBLE, "a try", ours(subject.clone(), path.clone())).await?;
    let held = held.ok_or("it is free, and not had")?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "the release", held.release()).await?;
    scene.stage(Stage::Before);
    let theirs = well(SOON, "a rival's try", theirs(scene.rivals[0].clone(), path.clone())).await?;
    let theirs = theirs.ok_or("it was released, and is not free")?;
    scene.stage(Stage::Waiting);
    let none = well(IN_TROUBLE, "a try", ours(subject, path)).await?;
    ensure(none.is_none(), "it is taken, and had")?;
    scene.rest().await;
    scene.stage(Stage::After);
    scene.nothing_is_left().await?;
    well(SOON, "the rival's release", theirs.release()).await
}

async fn checks(scene: &Scene) -> Result<(), String> {
    let lock = Lock::new(&scene.subject, &scene.path);
    let guard = well(SOON, "acquire", lock.acquire()).await?;
    scene.stage(Stage::Held);
    well(IN_TROUBLE, "a check", guard.check()).await?;
    well(SOON, "a delete", scene.rivals[1].delete(guard.path())).await?;
    let checked = within(IN_TROUBLE, "a check", guard.check()).await?;
    ensure(matches!(checked, Err(CheckError::Lost(_))), &format!("a check says {checked:?}"))?;
    drop(guard);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn lists(scene: &Scene) -> Result<(), String> {
    let theirs = well(SOON, "acquire", Lock::new(&scene.rivals[0], &scene.path).acquire()).await?;
    let lock = Lock::new(&scene.subject, &scene.path);
    scene.stage(Stage::Waiting);
    let contenders = well(IN_TROUBLE, "contenders", lock.queue().contenders()).await?;
    let tokens: Vec<i64> = contenders.iter().map(|contender| contender.token.get()).collect();
    ensure(tokens == [theirs.token().get()], &format!("contenders are {contenders:?}"))?;
    let queue = lock.queue();
    let revoked = async {
        // What is in doubt can be said again.
        loop {
            match queue.revoke(&contenders[0]).await {
                Err(WriteError::InDoubt { .. }) => {}
                revoked => return revoked,
            }
        }
    };
    ensure(well(IN_TROUBLE, "revoke", revoked).await?, "revoked, and not there")?;
    ensure(within(SOON, "word of it", theirs.revoked()).await?.is_ok(), "a loss")?;
    drop(theirs);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn downgrades(scene: &Scene) -> Result<(), String> {
    let lock = RwLock::new(&scene.subject, &scene.path);
    let guard = well(SOON, "write", lock.write()).await?;
    let reader = RwLock::new(&scene.rivals[0], &scene.path);
    let reader = tokio::spawn(async move { reader.read().await });
    pass(Duration::from_secs(1)).await;
    ensure(!reader.is_finished(), "a reader beside a writer")?;
    scene.stage(Stage::Held);
    let guard = well(IN_TROUBLE, "downgrade", guard.downgrade()).await?;
    let reader = within(IN_TROUBLE, "the reader", reader).await?.expect("no task panics");
    let writer = RwLock::new(&scene.rivals[1], &scene.path);
    let writer = tokio::spawn(async move { writer.write().await });
    drop(reader);
    scene.rest().await;
    ensure(!writer.is_finished(), "a writer beside a reader")?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "release", guard.release()).await?;
    let writer = within(IN_TROUBLE, "the writer", writer).await?.expect("no task panics");
    drop(writer);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn upgrades(scene: &Scene) -> Result<(), String> {
    let reader = well(SOON, "read", RwLock::new(&scene.rivals[0], &scene.path).read()).await?;
    let guard = well(SOON, "read", RwLock::new(&scene.subject, &scene.path).read()).await?;
    scene.stage(Stage::Waiting);
    let upgrade = tokio::spawn(guard.try_upgrade());
    scene.rest().await;
    ensure(!upgrade.is_finished(), "an upgrade beside a reader")?;
    well(SOON, "release", reader.release()).await?;
    let upgraded = within(IN_TROUBLE, "the upgrade", upgrade).await?.expect("no task panics");
    let guard = upgraded.map_err(|error| format!("the upgrade ends with {error:?}"))?;
    let reader = RwLock::new(&scene.rivals[0], &scene.path);
    let reader = tokio::spawn(async move { reader.read().await });
    scene.stage(Stage::Held);
    scene.rest().await;
    ensure(!reader.is_finished(), "a reader beside a writer")?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "release", guard.release()).await?;
    let reader = within(IN_TROUBLE, "the reader", reader).await?.expect("no task panics");
    drop(reader.map_err(|error| format!("the reader gets {error:?}"))?);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

/// A task waits for another of its process.
async fn passes_on(scene: &Scene) -> Result<(), String> {
    let lock = CohortLock::new(&scene.subject, &scene.path);
    scene.stage(Stage::Acquiring);
    let one = well(IN_TROUBLE, "acquire", lock.acquire()).await?;
    let token = Guard::token(&one);
    scene.stage(Stage::Held);
    let other = lock.clone();
    let other = tokio::spawn(async move { other.acquire().await });
    scene.rest().await;
    ensure(!other.is_finished(), "two tasks hold")?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "release", one.release()).await?;
    let other = within(IN_TROUBLE, "the other task", other).await?.expect("no task panics");
    let other = other.map_err(|error| format!("the other task gets {error:?}"))?;
    ensure(Guard::token(&other) > token, "a token that is no larger")?;
    well(IN_TROUBLE, "release", other.release()).await?;
    drop(lock);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

/// What is known to be lost is not passed on: another client holds it.
async fn passes_nothing_on(scene: &Scene) -> Result<(), String> {
    let lock = CohortLock::new(&scene.subject, &scene.path);
    scene.stage(Stage::Acquiring);
    let one = well(IN_TROUBLE, "acquire", lock.acquire()).await?;
    let rival = Lock::new(&scene.rivals[0], &scene.path);
    let rival = tokio::spawn(async move { rival.acquire().await });
    pass(Duration::from_secs(1)).await;
    scene.stage(Stage::Held);
    let other = lock.clone();
    let other = tokio::spawn(async move { other.acquire().await });
    scene.rest().await;
    ensure(!other.is_finished(), "two tasks hold")?;
    well(SOON, "a delete", scene.rivals[1].delete(one.path())).await?;
    let lost = within(SOON, "word of it", one.lost()).await?;
    ensure(lost == Lost::NodeDeleted, &format!("word of {lost:?}"))?;
    scene.stage(Stage::Releasing);
    drop(one);
    let rival = within(SOON, "the rival", rival).await?.expect("no task panics");
    let rival = rival.map_err(|error| format!("the rival gets {error:?}"))?;
    scene.rest().await;
    ensure(!other.is_finished(), "a task holds beside a rival")?;
    scene.stage(Stage::Waiting);
    let token = rival.token().get();
    well(SOON, "release", rival.release()).await?;
    let other = within(IN_TROUBLE, "the other task", other).await?.expect("no task panics");
    let other = other.map_err(|error| format!("the other task gets {error:?}"))?;
    ensure(other.token() > token, "a token that is no larger")?;
    drop((other, lock));
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

/// Two permits of three beside a holder of one, and a wait for the other.
async fn takes_several(scene: &Scene) -> Result<(), String> {
    let of = |client: &Client, path: &str| Semaphore::new(client, path, 3);
    let rival = of(&scene.rivals[0], &scene.path);
    let theirs = well(SOON, "two of three", rival.acquire_many(2)).await?;
    scene.stage(Stage::Acquiring);
    let semaphore = of(&scene.subject, &scene.path);
    let ours = tokio::spawn(async move { semaphore.acquire_many(2).await });
    scene.rest().await;
    ensure(!ours.is_finished(), "four of three")?;
    scene.stage(Stage::Waiting);
    well(SOON, "release", theirs.release()).await?;
    let ours = within(IN_TROUBLE, "two of three", ours).await?.expect("no task panics");
    let ours = ours.map_err(|error| format!("two of three: {error:?}"))?;
    scene.stage(Stage::Held);
    let one = well(SOON, "the third", rival.acquire()).await?;
    let holders = well(IN_TROUBLE, "holders", of(&scene.subject, &scene.path).holders()).await?;
    ensure(holders.len() == 3, &format!("holders are {holders:?}"))?;
    scene.stage(Stage::Releasing);
    well(IN_TROUBLE, "release", ours.release()).await?;
    drop(one);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}

async fn proclaims(scene: &Scene) -> Result<(), String> {
    let election = Election::new(&scene.subject, &scene.path);
    let leadership = well(SOON, "campaign", election.campaign(b"old")).await?;
    scene.stage(Stage::Held);
    let proclaimed = async {
        loop {
            match leadership.proclaim(b"new").await {
                Err(CheckError::Unavailable(WriteError::InDoubt { .. })) => {}
                proclaimed => return proclaimed,
            }
        }
    };
    well(IN_TROUBLE, "proclaim", proclaimed).await?;
    let queue = Election::new(&scene.rivals[0], &scene.path).queue();
    let seen = well(SOON, "candidates", queue.contenders());
    let seen: Vec<String> =
        seen.await?.into_iter().map(|it| it.description().into_owned()).collect();
    ensure(seen == ["new"], &format!("candidates say {seen:?}"))?;
    drop(leadership);
    scene.stage(Stage::After);
    scene.nothing_is_left().await
}
