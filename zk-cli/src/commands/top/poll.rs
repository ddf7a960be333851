//! What servers are asked, and when: a few tasks that say what they hear, and end with the screen.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinError, JoinSet},
    time::{sleep, timeout},
};
use zk_client::{Client, ReadError, Rejection, SessionState};
use zk_locks::Queue;

use super::{
    search::{Follower, is_gone},
    state::{Deed, Link, Notice, Update, Verb},
    tree::{CHILDREN_MAX, Listing},
};
use crate::{
    args::ConnectArgs,
    ask::Asker,
    commands::{health, watch::Line},
    exit::Failure,
    render::printable,
};

/// Updates that wait for the screen; who has more to say waits.
const UPDATES_MAX: usize = 256;

/// How long an answer may take before the screen says so.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two tries to get a session that was refused.
const RETRY: Duration = Duration::from_secs(5);

/// Data of a node that is shown.
const DATA_MAX: usize = 4 << 10;

/// Nodes of the tree that are read again in one round.
const NODES_PER_ROUND: usize = 32;

/// Tasks that ask servers.
#[derive(Debug)]
pub(crate) struct Poll {
    updates: mpsc::Sender<Update>,
    clients: watch::Receiver<Option<Client>>,
    again: watch::Sender<()>,
    /// Those that go on; they end when this is dropped.
    tasks: JoinSet<()>,
    listing: JoinSet<()>,
    watching: BTreeMap<String, AbortHandle>,
}

/// What all of them have.
#[derive(Clone, Debug)]
struct Round {
    interval: Duration,
    again: watch::Receiver<()>,
    updates: mpsc::Sender<Update>,
}

impl Round {
    async fn say(&self, update: Update) {
        // A screen that is gone does not want to know.
        let _ = self.updates.send(update).await;
    }

    /// Waits for the next round; returns whether it was asked for.
    async fn next(&mut self) -> bool {
        tokio::select! {
            () = sleep(self.interval) => false,
            asked = self.again.changed() => asked.is_ok(),
        }
    }
}

impl Poll {
    /// Begins to ask these servers, and for a session.
    pub(crate) fn start(
        connect: &ConnectArgs,
        servers: &[String],
        path: &str,
        interval: Duration,
        asker: &Asker,
    ) -> (Self, mpsc::Receiver<Update>) {
        let (updates, heard) = mpsc::channel(UPDATES_MAX);
        let (serves, clients) = watch::channel(None);
        let (again, asked_again) = watch::channel(());
        let round = Round { interval, again: asked_again, updates: updates.clone() };
        let mut tasks = JoinSet::new();
        for (index, server) in servers.iter().enumerate() {
            tasks.spawn(member(index, server.clone(), asker.clone(), round.clone()));
        }
        tasks.spawn(session(connect.clone(), serves, round.clone()));
        tasks.spawn(board(path.to_owned(), clients.clone(), round));
        let poll = Self {
            updates,
            clients,
            again,
            tasks,
            listing: JoinSet::new(),
            watching: BTreeMap::new(),
        };
        (poll, heard)
    }

    /// Waits for a task that has failed: only a bug can do that.
    pub(crate) async fn failed(&mut self) -> JoinError {
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Err(error) if error.is_panic() => return error,
                _ => {}
            }
        }
        std::future::pending().await
    }

    /// Asks all again, at once.
    pub(crate) fn refresh(&self) {
        let _ = self.again.send(());
    }

    /// Reads these nodes, unless earlier ones are still being read.
    pub(crate) fn list_again(&mut self, paths: impl Iterator<Item = (String, Option<Listing>)>) {
        while self.listing.try_join_next().is_some() {}
        if self.listing.is_empty() {
            for (path, known) in paths.take(NODES_PER_ROUND) {
                self.list(path, known);
            }
        }
    }

    /// Reads a node, its children and its data.
    pub(crate) fn list(&mut self, path: String, known: Option<Listing>) {
        let Some(client) = self.clients.borrow().clone() else { return };
        let updates = self.updates.clone();
        self.listing.spawn(async move {
            let listing = match timeout(PATIENCE, list(&client, &path, known)).await {
                Ok(Ok(None)) => return,
                Ok(Ok(Some(listing))) => Ok(listing),
                Ok(Err(error)) => Err(Failure::read(&path)(error).to_string()),
                Err(_) => Err(format!("{path}: no answer yet")),
            };
            let _ = updates.send(Update::Listed { path, listing }).await;
        });
    }

    /// Follows what happens at a node and below it.
    pub(crate) fn watch(&mut self, path: String) {
        let watch = follow(path.clone(), self.clients.clone(), self.updates.clone());
        self.watching.insert(path, self.tasks.spawn(watch));
    }

    pub(crate) fn unwatch(&mut self, path: &str) {
        if let Some(watch) = self.watching.remove(path) {
            watch.abort();
        }
    }

    /// Does something to a contender.
    pub(crate) fn carry_out(&mut self, deed: Deed) {
        let client = self.clients.borrow().clone();
        let (updates, again) = (self.updates.clone(), self.again.clone());
        self.tasks.spawn(async move {
            let notice = match client {
                Some(client) => match timeout(PATIENCE, carried_out(&client, &deed)).await {
                    Ok(notice) => notice,
                    Err(_) => bad(format!("{}: no answer yet; it may still happen", deed.lock)),
                },
                None => bad("no session: nothing was done".to_owned()),
            };
            let _ = updates.send(Update::Notice(notice)).await;
            let _ = again.send(());
        });
    }

    /// Ends all tasks, and the session.
    pub(crate) async fn end(mut self) {
        self.tasks.abort_all();
        self.listing.abort_all();
        let client = self.clients.borrow().clone();
        if let Some(client) = client {
            // There is nothing in it that anyone waits for.
            let _ = client.close_within(Duration::from_millis(500)).await;
        }
    }
}

fn bad(text: String) -> Notice {
    Notice { text, is_bad: true }
}

/// Asks one server, again and again.
async fn member(index: usize, server: String, asker: Asker, mut round: Round) {
    loop {
        let asked = Instant::now();
        let answer = health::ask(&asker, &server).await;
        round.say(Update::Said { member: index, answer, took: asked.elapsed() }).await;
        round.next().await;
    }
}

/// Has a session at any time: when one is lost, the next.
async fn session(connect: ConnectArgs, clients: watch::Sender<Option<Client>>, round: Round) {
    loop {
        let connected = match connect.options() {
            Ok(options) => options.connect_deadline(None).connect().await.map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        let client = match connected {
            Ok(client) => client.patient(),
            Err(failure) => {
                round.say(Update::Link(Link::Refused { why: failure.to_string() })).await;
                sleep(RETRY).await;
                continue;
            }
        };
        let _ = clients.send(Some(client.clone()));
        let mut view = client.session();
        let mut state = view.state();
        let why = loop {
            let session = view.id();
            let link = match state {
                SessionState::Connecting => Link::Connecting,
                SessionState::Connected { read_only } => Link::Connected { session, read_only },
                SessionState::Ended(end) => break end.to_string(),
                _ => Link::Disconnected { session },
            };
            round.say(Update::Link(link)).await;
            state = view.changed().await;
        };
        let _ = clients.send(None);
        round.say(Update::Link(Link::Lost { why })).await;
    }
}

/// Looks at all locks, again and again.
async fn board(path: String, mut clients: watch::Receiver<Option<Client>>, mut round: Round) {
    let mut follower = Follower::default();
    loop {
        let client = clients.borrow_and_update().clone();
        let Some(client) = client else {
            if clients.changed().await.is_err() {
                return;
            }
            continue;
        };
        let update = match timeout(PATIENCE, follower.round(&client, &path, Instant::now())).await {
            Ok(Ok((readings, searched))) => Update::Board { readings, searched },
            Ok(Err(error)) => Update::BoardFailed(error.to_string()),
            Err(_) => {
                // What was read in part may be read again.
                follower.search_again();
                Update::BoardFailed("no answer".to_owned())
            }
        };
        round.say(update).await;
        if round.next().await {
            follower.search_again();
        }
    }
}

/// A node as it is; `None` if that is known.
async fn list(
    client: &Client,
    path: &str,
    known: Option<Listing>,
) -> Result<Option<Listing>, ReadError> {
    if let Some(known) = known {
        // A small answer, in place of perhaps thousands of names.
        if client.exists(path).await? == Some(known.stat) {
            return Ok(None);
        }
    }
    let (names, stat) = client.children(path).packed().await?;
    // Only what is listed becomes strings, once it is in order.
    let mut names: Vec<_> = names.iter().map(|name| name.into_owned()).collect();
    names.sort_unstable();
    names.truncate(CHILDREN_MAX);
    let data = match client.get(path).await {
        Ok((data, _)) => Some(data.slice(..data.len().min(DATA_MAX))),
        Err(ReadError::Rejected(Rejection::NoAuth)) => None,
        Err(error) if is_gone(&error) => return Err(error),
        Err(error) => return Err(error),
    };
    Ok(Some(Listing { names: names.into(), stat, data }))
}

/// Tells what happens at a node and below it, in whatever session there is.
async fn follow(
    path: String,
    mut clients: watch::Receiver<Option<Client>>,
    updates: mpsc::Sender<Update>,
) {
    let say = async |line: String| {
        let _ = updates.send(Update::Seen(line)).await;
    };
    loop {
        let client = clients.borrow_and_update().clone();
        let Some(client) = client else {
            if clients.changed().await.is_err() {
                return;
            }
            continue;
        };
        let mut stream = match client.watch(&path).recursive().await {
            Ok(stream) => stream,
            Err(ReadError::Unavailable(_)) => {
                say(format!("{}: no session; watched again in the next", printable(&path))).await;
                if clients.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Err(error) => {
                let text = match error {
                    ReadError::Rejected(Rejection::Unimplemented) => {
                        format!("{path}: servers before 3.6 cannot be watched")
                    }
                    error => Failure::read(&path)(error).to_string(),
                };
                let _ = updates.send(Update::Notice(bad(text))).await;
                let _ = updates.send(Update::Unwatched(path)).await;
                return;
            }
        };
        say(Line::watching(&path).to_string()).await;
        while let Some(item) = stream.next().await {
            say(Line::of(item).to_string()).await;
        }
    }
}

async fn carried_out(client: &Client, deed: &Deed) -> Notice {
    let queue = Queue::new(client, &deed.entry.queue);
    let contender = &deed.entry.contender;
    let (done, past) = match deed.verb {
        Verb::Revoke => (queue.revoke(contender).await, "was asked for"),
        Verb::Evict => (queue.evict(contender).await, "was evicted from"),
    };
    let (whom, lock) = (deed.whom(), printable(&deed.lock));
    match done {
        Ok(true) => Notice { text: format!("{whom} {past} {lock}"), is_bad: false },
        Ok(false) => bad(format!("{whom} had left {lock} already: nothing was done")),
        Err(error) => bad(format!("{lock}: {error}")),
    }
}
