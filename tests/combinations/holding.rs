//! What is done with recipes by which something is held, and what must come of it.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;
use zk_client::Client;
use zk_locks::{AcquireError, Lost, Queue, Status};
use zk_tests::network::pass;

use crate::combinations::{
    cell::Play,
    holds::{Hold, ROWS, Row},
    scene::{IN_TROUBLE, SESSION_TIMEOUT, SOON, Scene, ensure, within},
    trouble::Stage,
};

/// How a holder is to hear that it holds no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hears {
    /// Its node is deleted while it listens.
    Deletion,
    /// Its node is deleted, and it asks only then.
    DeletionWhenAsked,
    /// It is asked to give it back.
    Revocation,
    /// Its session is ended by the servers.
    Expiry,
}

/// Everything that is played with all of them.
pub(crate) fn plays() -> impl Iterator<Item = Play> {
    ROWS.iter().flat_map(|row| {
        let row = *row;
        let hears = [
            ("hears a deletion", Hears::Deletion),
            ("knows of a deletion", Hears::DeletionWhenAsked),
            ("hears an expiry", Hears::Expiry),
            ("is asked for it", Hears::Revocation),
        ];
        let hears = hears
            .into_iter()
            .filter(move |(_, hears)| row.revocable || *hears != Hears::Revocation);
        let hears = hears.map(move |(name, hears)| Play {
            recipe: row.name,
            name,
            act: Box::new(move |scene| Box::pin(holds(scene, row, hears))),
        });
        let others = [
            Play {
                recipe: row.name,
                name: "waits",
                act: Box::new(move |scene| Box::pin(waits(scene, row))),
            },
            Play {
                recipe: row.name,
                name: "gives up",
                act: Box::new(move |scene| Box::pin(gives_up(scene, row))),
            },
            Play {
                recipe: row.name,
                name: "closes",
                act: Box::new(move |scene| Box::pin(closes(scene, row))),
            },
        ];
        hears.chain(others)
    })
}

type Granted = Result<Box<dyn Hold>, AcquireError>;

/// An additional contender, beside everything else.
struct Asker(JoinHandle<Granted>);

impl Asker {
    fn is_done(&self) -> bool {
        self.0.is_finished()
    }

    /// It has to wait as long as another client holds.
    async fn must_wait(&mut self, who: &str) -> Result<(), String> {
        if !self.is_done() {
            return Ok(());
        }
        let answer = (&mut self.0).await.expect("no task panics");
        let answer = answer.map_or_else(|error| format!("{error:?}"), |_| "a grant".to_owned());
        Err(format!("{who} gets {answer} while somebody else holds"))
    }

    /// What was asked for, which is to be had by now.
    async fn granted(self, who: &str, time: Duration) -> Result<Box<dyn Hold>, String> {
        let granted = within(time, &format!("a grant for {who}"), self.0).await?;
        granted.expect("no task panics").map_err(|error| format!("{who} gets {error:?}"))
    }
}

impl Scene {
    fn subject_asks(&self, row: Row) -> Asker {
        Asker(tokio::spawn((row.ask)(self.subject.clone(), self.path.clone(), None)))
    }

    fn rival_asks(&self, row: Row, number: usize) -> Asker {
        Asker(tokio::spawn((row.rival)(self.rivals[number].clone(), self.path.clone(), None)))
    }

    /// The subject gets it once more, for a moment.
    async fn once_more(&self, row: Row) -> Result<(), String> {
        self.stage(Stage::After);
        self.nothing_is_left().await?;
        let again = self.subject_asks(row).granted("the subject, once more", SOON).await?;
        released(again, "the subject, once more").await?;
        self.nothing_is_left().await
    }
}

async fn released(held: Box<dyn Hold>, who: &str) -> Result<(), String> {
    let released = within(IN_TROUBLE, &format!("the release of {who}"), held.release()).await?;
    released.map_err(|error| format!("the release of {who} ends with {error:?}"))
}

/// The subject waits behind one client, and another waits behind it.
async fn waits(scene: &Scene, row: Row) -> Result<(), String> {
    let first = scene.rival_asks(row, 0).granted("the first", SOON).await?;
    scene.stage(Stage::Acquiring);
    let mut subject = scene.subject_asks(row);
    scene.rest().await;
    subject.must_wait("the subject").await?;
    let mut second = scene.rival_asks(row, 1);
    pass(Duration::from_secs(1)).await;
    scene.stage(Stage::Waiting);
    scene.rest().await;
    subject.must_wait("the subject").await?;
    second.must_wait("the second").await?;
    ensure(first.status() == Status::Held, "the first has lost it")?;
    let before = first.token();
    released(first, "the first").await?;
    if !row.fair {
        return any_order(scene, row, subject, second).await;
    }
    let subject = subject.granted("the subject", IN_TROUBLE).await?;
    let token = subject.token();
    ensure(token > before, "a token that is no larger")?;
    scene.stage(Stage::Held);
    pass(SOON).await;
    second.must_wait("the second").await?;
    ensure(!matches!(subject.status(), Status::Lost(_)), "the subject has lost it")?;
    scene.stage(Stage::Releasing);
    give_back(scene, subject).await?;
    let second = second.granted("the second", IN_TROUBLE).await?;
    ensure(second.token() > token, "a token that is no larger")?;
    released(second, "the second").await?;
    scene.once_more(row).await
}

/// In one of the ways there are.
async fn give_back(scene: &Scene, held: Box<dyn Hold>) -> Result<(), String> {
    if scene.draw(|rng| rng.one_in(2)) {
        drop(held);
        return Ok(());
    }
    released(held, "the subject").await
}

/// Two that wait have their turns, whichever is first.
async fn any_order(scene: &Scene, row: Row, subject: Asker, second: Asker) -> Result<(), String> {
    let one_is_done = async {
        while !subject.is_done() && !second.is_done() {
            pass(Duration::from_millis(10)).await;
        }
    };
    within(IN_TROUBLE, "a grant for one of two", one_is_done).await?;
    let subject_is_first = subject.is_done();
    let (one, mut other) = if subject_is_first { (subject, second) } else { (second, subject) };
    let one = one.granted("one of two", Duration::ZERO).await?;
    if subject_is_first {
        scene.stage(Stage::Held);
    }
    pass(SOON).await;
    other.must_wait("the other").await?;
    ensure(!matches!(one.status(), Status::Lost(_)), "one has lost it")?;
    if subject_is_first {
        scene.stage(Stage::Releasing);
    }
    give_back(scene, one).await?;
    let other = other.granted("the other", IN_TROUBLE).await?;
    if !subject_is_first {
        scene.stage(Stage::Releasing);
    }
    released(other, "the other").await?;
    scene.once_more(row).await
}

/// The subject holds, and then does not.
async fn holds(scene: &Scene, row: Row, hears: Hears) -> Result<(), String> {
    scene.stage(Stage::Acquiring);
    let subject = scene.subject_asks(row).granted("the subject", IN_TROUBLE).await?;
    let subject: Arc<dyn Hold> = subject.into();
    let mut first = scene.rival_asks(row, 0);
    scene.stage(Stage::Held);
    let listens = hears != Hears::DeletionWhenAsked;
    let listener = listens.then(|| {
        let subject = subject.clone();
        tokio::spawn(async move {
            match hears {
                Hears::Revocation => subject.revoked().await.err(),
                _ => Some(subject.lost().await),
            }
        })
    });
    scene.rest().await;
    first.must_wait("the first").await?;
    ensure(subject.status() == Status::Held, "the subject has lost it")?;
    ensure(listener.as_ref().is_none_or(|it| !it.is_finished()), "a loss is told of too early")?;
    scene.stage(Stage::After);
    let token = subject.token();
    match hears {
        Hears::Revocation => ask_back(scene, token).await?,
        Hears::Expiry => scene.network.expire(scene.subject.session().id()),
        Hears::Deletion | Hears::DeletionWhenAsked => delete(scene, &subject).await?,
    }
    let told = match listener {
        Some(listener) => within(SOON, "word of it", listener).await?.expect("no task panics"),
        None => {
            let knows = async {
                while !matches!(subject.status(), Status::Lost(_)) {
                    pass(Duration::from_millis(50)).await;
                }
            };
            within(SOON, "a status that says so", knows).await?;
            None
        }
    };
    if hears == Hears::Revocation {
        ensure(told.is_none(), "a loss instead of a revocation")?;
        ensure(subject.status() == Status::Held, "the subject has lost it")?;
    }
    let expired = hears == Hears::Expiry;
    let is_end = |lost| matches!(lost, Lost::SessionEnded(_));
    match told {
        // Servers delete the nodes first, and it may take a new connection to hear of the session's end.
        Some(Lost::NodeDeleted) if expired => {
            let knows = async {
                while !matches!(subject.status(), Status::Lost(lost) if is_end(lost)) {
                    pass(Duration::from_millis(50)).await;
                }
            };
            within(SOON, "a status that tells of the session's end", knows).await?;
        }
        Some(lost) => ensure(is_end(lost) == expired, &format!("word of {lost:?}"))?,
        None => {}
    }
    drop(subject);
    let first = first.granted("the first", SOON).await?;
    ensure(first.token() > token, "a token that is no larger")?;
    released(first, "the first").await?;
    if expired { Ok(()) } else { scene.once_more(row).await }
}

/// Another client requests it back.
async fn ask_back(scene: &Scene, token: i64) -> Result<(), String> {
    let queue = Queue::new(&scene.rivals[1], &scene.path);
    let contenders = queue.contenders().await.map_err(|error| error.to_string())?;
    let holder = contenders.iter().find(|contender| contender.token.get() == token);
    let holder = holder.ok_or("the holder is not in the queue")?;
    queue.revoke(holder).await.map(drop).map_err(|error| format!("{error:?}"))
}

/// Another client deletes a node that it depends on, which may be one of several.
async fn delete(scene: &Scene, held: &Arc<dyn Hold>) -> Result<(), String> {
    let paths = held.paths();
    if paths.is_empty() {
        return delete_all(&scene.keeper, &scene.nodes_of(&scene.subject)).await;
    }
    let path = scene.draw(|rng| rng.one_of(&paths));
    delete_all(&scene.rivals[1], &[path]).await
}

async fn delete_all(client: &Client, paths: &[String]) -> Result<(), String> {
    for path in paths {
        client.delete(path).await.map_err(|error| format!("{path}: {error:?}"))?;
    }
    Ok(())
}

/// The subject waits behind another client, until it gives up.
async fn gives_up(scene: &Scene, row: Row) -> Result<(), String> {
    let first = scene.rival_asks(row, 0).granted("the first", SOON).await?;
    scene.stage(Stage::Acquiring);
    let patience = scene.draw(|rng| *rng.pick(&[2, 5, 700, 2_000].map(Duration::from_millis)));
    if scene.draw(|rng| rng.one_in(2)) {
        let asked = (row.ask)(scene.subject.clone(), scene.path.clone(), Some(patience));
        let asked = within(patience + Duration::from_millis(1), "giving up", asked).await?;
        scene.stage(Stage::GivingUp);
        match asked {
            Err(AcquireError::TimedOut) => {}
            Err(error) => return Err(format!("the subject gets {error:?}")),
            Ok(_) => return Err("a grant while the first holds".to_owned()),
        }
    } else {
        let mut subject = scene.subject_asks(row);
        pass(patience).await;
        subject.must_wait("the subject").await?;
        scene.stage(Stage::GivingUp);
        subject.0.abort();
    }
    scene.rest().await;
    scene.nothing_is_left().await?;
    let mut second = scene.rival_asks(row, 1);
    pass(SOON).await;
    if row.rivals_exclude {
        second.must_wait("the second").await?;
    }
    released(first, "the first").await?;
    let second = second.granted("the second", SOON).await?;
    released(second, "the second").await?;
    scene.once_more(row).await
}

/// The subject's session is closed while it holds.
async fn closes(scene: &Scene, row: Row) -> Result<(), String> {
    scene.stage(Stage::Acquiring);
    let subject = scene.subject_asks(row).granted("the subject", IN_TROUBLE).await?;
    let mut first = scene.rival_asks(row, 0);
    scene.stage(Stage::Held);
    pass(SOON).await;
    first.must_wait("the first").await?;
    scene.stage(Stage::Closing);
    let dropped_first = scene.draw(|rng| rng.one_in(2));
    let subject = Some(subject).filter(|_| !dropped_first);
    let closed = within(IN_TROUBLE, "the end of close", scene.subject.close()).await?;
    if let Some(subject) = &subject {
        ensure(matches!(subject.status(), Status::Lost(_)), "held after close")?;
    }
    let time = if closed.is_ok() { SOON } else { SESSION_TIMEOUT + SOON };
    let first = first.granted("the first", time).await?;
    ensure(scene.nodes_of(&scene.subject).is_empty(), "nodes are left behind")?;
    released(first, "the first").await
}
