//! Several contenders for one lock, some of them theirs and some ours: when each holds it.

use std::{fmt, future::Future};

use tokio::{task::JoinHandle, time::timeout};
use zk_client::{Client, ConnectOptions};
use zk_testkit::{TestServer, real::Server};
use zk_tests::patience::LIMIT;

use crate::coexistence::{
    ours::{Ours, Release},
    theirs::{Class, Mode},
};

/// How often a waiter that is to go on waiting is polled: each turn is enough for an event, a
/// listing because of it, and what is read because of that.
const TURNS: usize = 4;

/// Where it takes place.
pub(crate) enum Place {
    InProcess(TestServer),
    Real(Box<Server>),
}

impl Place {
    pub(crate) async fn client(&self) -> Client {
        let servers = match self {
            Self::InProcess(server) => server.connect_string(),
            Self::Real(server) => server.connect_string(),
        };
        ConnectOptions::new(&servers).unwrap().connect().await.unwrap()
    }

    /// Ends a session: by what the server does when it has not heard of it, where that can be had at once.
    async fn end(&self, zk: &Client) {
        match self {
            Self::InProcess(server) => server.expire(zk.session().id()),
            // The same transaction.
            Self::Real(_) => drop(zk.clone().close().await),
        }
    }
}

/// Whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Theirs,
}

/// How a lock is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Release,
    SessionEnds,
    /// First the second in the queue gives up, then locks are released.
    SecondGivesUp,
}

/// One cell of the table.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) class: Class,
    pub(crate) ours: Ours,
    pub(crate) sides: [Side; 3],
    pub(crate) modes: [Mode; 3],
    pub(crate) end: End,
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, ours, sides, modes, end } = self;
        write!(f, "{class:?} beside {ours:?}: {sides:?} {modes:?}, {end:?}")
    }
}

struct Contender {
    mode: Mode,
    zk: Client,
    waiting: Option<JoinHandle<Release>>,
    held: Option<Release>,
}

impl Contender {
    fn new(cell: &Cell, at: usize, zk: Client, path: &str) -> Self {
        let &Cell { class, ours, sides, modes, .. } = cell;
        let (side, mode, theirs, path) = (sides[at], modes[at], zk.clone(), path.to_owned());
        let waiting = tokio::spawn(async move {
            match side {
                Side::Ours => ours.acquire(&theirs, &path, mode, class).await,
                Side::Theirs => {
                    let node = class.acquire(&theirs, &path, mode).await;
                    let release: Release = Box::new(|| Box::pin(node.release()));
                    release
                }
            }
        });
        Self { mode, zk, waiting: Some(waiting), held: None }
    }

    const fn is_here(&self) -> bool {
        self.waiting.is_some() || self.held.is_some()
    }

    /// Takes note of it if it has the lock.
    async fn look(&mut self) {
        if self.waiting.as_ref().is_some_and(JoinHandle::is_finished) {
            if let Some(waiting) = self.waiting.take() {
                self.held = Some(waiting.await.unwrap());
            }
        }
    }
}

/// Lets a client do what it wants because of all that has happened.
async fn settle(zk: Client) {
    for _ in 0..TURNS {
        within(async { zk.sync("/").await }).await.expect("an answer").unwrap();
        tokio::task::yield_now().await;
    }
}

/// Plays a cell; the error says what went wrong.
pub(crate) async fn play(place: &Place, cell: &Cell, path: &str) -> Result<(), String> {
    let observer = place.client().await;
    if cell.class != Class::SimpleLock {
        observer.create(path, b"").await.unwrap();
    }
    let mut queue = Vec::new();
    for at in 0..cell.sides.len() {
        let zk = place.client().await;
        queue.push(Contender::new(cell, at, zk, path));
        if cell.class.has_queue() {
            let joined = async {
                while observer.children(path).await.unwrap().0.len() <= at {
                    tokio::task::yield_now().await;
                }
            };
            within(joined).await.ok_or("it has not joined the queue")?;
        }
        rights(cell, &mut queue).await?;
    }
    if cell.end == End::SecondGivesUp {
        let second = &mut queue[1];
        match second.waiting.take() {
            Some(waiting) if cell.sides[1] == Side::Ours => {
                waiting.abort();
                drop(waiting.await);
            }
            // Theirs cannot, but by ending.
            Some(waiting) => {
                waiting.abort();
                drop(waiting.await);
                place.end(&second.zk).await;
            }
            // It reads already.
            None => second.held.take().unwrap()().await,
        }
        rights(cell, &mut queue).await?;
    }
    loop {
        let holder = queue.iter_mut().find_map(|one| Some((one.zk.clone(), one.held.take()?)));
        let Some((zk, held)) = holder else { return Ok(()) };
        match cell.end {
            End::SessionEnds => {
                place.end(&zk).await;
                drop(held);
            }
            End::Release | End::SecondGivesUp => {
                within(held()).await.ok_or("it was not released")?;
            }
        }
        rights(cell, &mut queue).await?;
    }
}

/// Waits until the expected holders have the lock, and checks that no other contender has.
async fn rights(cell: &Cell, queue: &mut [Contender]) -> Result<(), String> {
    let granted = |queue: &[Contender]| -> Vec<bool> {
        queue.iter().map(|contender| contender.held.is_some()).collect()
    };
    let reached = async {
        while !is_right(cell, queue) {
            for contender in queue.iter_mut() {
                contender.look().await;
            }
            tokio::task::yield_now().await;
        }
    };
    if within(reached).await.is_none() {
        return Err(format!("somebody waits for ever: {:?} have it", granted(queue)));
    }
    for contender in queue.iter_mut().filter(|contender| contender.is_here()) {
        settle(contender.zk.clone()).await;
        contender.look().await;
    }
    match is_right(cell, queue) {
        true => Ok(()),
        false => Err(format!("more than one may have it: {:?} have it", granted(queue))),
    }
}

/// Whether exactly those have the lock who are to have it.
fn is_right(cell: &Cell, queue: &[Contender]) -> bool {
    if !cell.class.has_queue() {
        let here = queue.iter().filter(|contender| contender.is_here()).count();
        let held = queue.iter().filter(|contender| contender.held.is_some()).count();
        return held == here.min(1);
    }
    queue.iter().enumerate().filter(|(_, contender)| contender.is_here()).all(|(at, contender)| {
        let is_first = queue[..at].iter().filter(|other| other.is_here()).all(|other| {
            cell.class.has_readers() && (contender.mode, other.mode) == (Mode::Read, Mode::Read)
        });
        contender.held.is_some() == is_first
    })
}

async fn within<F: Future>(future: F) -> Option<F::Output> {
    timeout(LIMIT, future).await.ok()
}
