//! Everything that can be held, behind one surface.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::time::timeout;
use zk_client::Client;
use zk_locks::{
    AcquireError, CohortGuard, CohortLock, Election, FencingToken, Guard, Guards, LatchState,
    LeaderLatch, Leadership, Lock, Lost, MultiLock, ReadGuard, ReleaseError, RwLock, Semaphore,
    SharedGuard, SimpleGuard, SimpleLock, Status, WriteGuard,
};

/// A future that goes anywhere.
pub(crate) type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The same, as long as what it tells of.
pub(crate) type Told<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What comes of asking.
pub(crate) type Asked = Later<Result<Box<dyn Hold>, AcquireError>>;

/// A recipe by which something is held.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Whether grants come in the order of asking.
    pub(crate) fair: bool,
    /// Whether it can be asked back.
    pub(crate) revocable: bool,
    /// Whether rivals keep it from each other.
    pub(crate) rivals_exclude: bool,
    /// Asks for it, for as long as is said.
    pub(crate) ask: fn(Client, String, Option<Duration>) -> Asked,
    /// The same for a rival.
    pub(crate) rival: fn(Client, String, Option<Duration>) -> Asked,
}

/// Something that is held.
pub(crate) trait Hold: Send + Sync {
    fn token(&self) -> i64;
    /// Paths of nodes that it stands and falls with.
    fn paths(&self) -> Vec<String>;
    fn status(&self) -> Status;
    fn lost(&self) -> Told<'_, Lost>;
    fn revoked(&self) -> Told<'_, Result<(), Lost>>;
    fn release(self: Box<Self>) -> Later<Result<(), ReleaseError>>;
}

macro_rules! holds {
    ($($type:ty as $inner:ty: $release:ident;)*) => {$(
        impl Hold for $type {
            fn token(&self) -> i64 {
                <$inner>::token(self).get()
            }
            fn paths(&self) -> Vec<String> {
                vec![<$inner>::path(self).to_owned()]
            }
            fn status(&self) -> Status {
                <$inner>::status(self)
            }
            fn lost(&self) -> Told<'_, Lost> {
                Box::pin(<$inner>::lost(self))
            }
            fn revoked(&self) -> Told<'_, Result<(), Lost>> {
                Box::pin(<$inner>::revoked(self))
            }
            fn release(self: Box<Self>) -> Later<Result<(), ReleaseError>> {
                Box::pin((*self).$release())
            }
        }
    )*};
}

holds! {
    Guard as Guard: release;
    ReadGuard as Guard: release;
    WriteGuard as Guard: release;
    SharedGuard as Guard: release;
    CohortGuard as Guard: release;
    Leadership as Guard: resign;
}

impl Hold for SimpleGuard {
    fn token(&self) -> i64 {
        Self::token(self).get()
    }
    fn paths(&self) -> Vec<String> {
        vec![Self::path(self).to_owned()]
    }
    fn status(&self) -> Status {
        Self::status(self)
    }
    fn lost(&self) -> Told<'_, Lost> {
        Box::pin(Self::lost(self))
    }
    fn revoked(&self) -> Told<'_, Result<(), Lost>> {
        // It cannot be asked back.
        Box::pin(std::future::pending())
    }
    fn release(self: Box<Self>) -> Later<Result<(), ReleaseError>> {
        Box::pin((*self).release())
    }
}

impl Hold for Guards {
    fn token(&self) -> i64 {
        self.iter().map(|guard| guard.token().get()).max().unwrap_or_default()
    }
    fn paths(&self) -> Vec<String> {
        self.iter().map(|guard| guard.path().to_owned()).collect()
    }
    fn status(&self) -> Status {
        Self::status(self)
    }
    fn lost(&self) -> Told<'_, Lost> {
        Box::pin(Self::lost(self))
    }
    fn revoked(&self) -> Told<'_, Result<(), Lost>> {
        Box::pin(async {
            match self.iter().next() {
                Some(guard) => guard.revoked().await,
                None => std::future::pending().await,
            }
        })
    }
    fn release(self: Box<Self>) -> Later<Result<(), ReleaseError>> {
        Box::pin((*self).release())
    }
}

impl Hold for LeaderLatch {
    fn token(&self) -> i64 {
        Self::token(self).map_or(0, FencingToken::get)
    }
    fn paths(&self) -> Vec<String> {
        // No other client's node bears the token.
        Vec::new()
    }
    fn status(&self) -> Status {
        match (self.is_leader(), self.subscribe().borrow().clone()) {
            (true, _) => Status::Held,
            (false, LatchState::Ended(AcquireError::SessionEnded(end))) => {
                Status::Lost(Lost::SessionEnded(end))
            }
            (false, _) => Status::Lost(Lost::NodeDeleted),
        }
    }
    fn lost(&self) -> Told<'_, Lost> {
        Box::pin(async {
            let mut states = self.subscribe();
            // Closed when it has ended.
            let _ = states.wait_for(|state| !matches!(state, LatchState::Leading { .. })).await;
            // It stands again before it knows that its session is over.
            let ended = states.wait_for(|state| matches!(state, LatchState::Ended(_)));
            let _ = timeout(Duration::from_secs(1), ended).await;
            match Hold::status(self) {
                Status::Lost(lost) => lost,
                _ => Lost::NodeDeleted,
            }
        })
    }
    fn revoked(&self) -> Told<'_, Result<(), Lost>> {
        Box::pin(std::future::pending())
    }
    fn release(self: Box<Self>) -> Later<Result<(), ReleaseError>> {
        Box::pin(async {
            (*self).resign().await;
            Ok(())
        })
    }
}

fn held<T: Hold + 'static, E>(asked: Result<T, E>) -> Result<Box<dyn Hold>, E> {
    asked.map(|held| -> Box<dyn Hold> { Box::new(held) })
}

/// Asks for something for as long as is said.
macro_rules! ask {
    (|$client:ident, $path:ident| $recipe:expr, $ask:ident, $ask_for:ident) => {
        |$client, $path, time| {
            Box::pin(async move {
                let recipe = $recipe;
                match time {
                    None => held(recipe.$ask().await),
                    Some(time) => held(recipe.$ask_for(time).await),
                }
            })
        }
    };
    (|$client:ident, $path:ident| $recipe:expr) => {
        ask!(|$client, $path| $recipe, acquire, acquire_timeout)
    };
}

type Ask = fn(Client, String, Option<Duration>) -> Asked;

const fn row(name: &'static str, ask: Ask) -> Row {
    Row { name, fair: true, revocable: true, rivals_exclude: true, ask, rival: ask }
}

const fn unfair(row: Row) -> Row {
    Row { fair: false, ..row }
}

const fn irrevocable(row: Row) -> Row {
    Row { revocable: false, ..row }
}

const fn against(row: Row, rival: Ask) -> Row {
    Row { rival, ..row }
}

const LOCK: Ask = ask!(|client, path| Lock::new(&client, &path));
const READ: Ask = ask!(|client, path| RwLock::new(&client, &path), read, read_timeout);
const WRITE: Ask = ask!(|client, path| RwLock::new(&client, &path), write, write_timeout);

/// Every recipe by which something is held.
pub(crate) const ROWS: &[Row] = &[
    row("Lock", LOCK),
    row("Lock::named", ask!(|client, path| Lock::named(&client, &path, "part").build())),
    row("Guard::share", |client, path, time| {
        Box::pin(async move {
            let lock = Lock::new(&client, &path);
            let guard = match time {
                None => lock.acquire().await?,
                Some(time) => lock.acquire_timeout(time).await?,
            };
            let shared = guard.share();
            // The last one gives it back, not the first.
            let again = shared.reenter().map_err(|_| AcquireError::NodeDeleted)?;
            again.release().await.map_err(|_| AcquireError::NodeDeleted)?;
            held(Ok(shared))
        })
    }),
    row("Lock in a herd", ask!(|client, path| Lock::builder(&client, &path).herd().build())),
    against(row("RwLock::read", READ), WRITE),
    row("RwLock::write", WRITE),
    Row { rivals_exclude: false, ..against(row("RwLock::write, readers", WRITE), READ) },
    irrevocable(row(
        "MultiLock",
        ask!(|client, path| MultiLock::new(&client, [path.clone(), format!("{path}-too")])),
    )),
    irrevocable(unfair(row("Semaphore", ask!(|client, path| Semaphore::new(&client, &path, 1))))),
    irrevocable(unfair(row(
        "SimpleLock",
        ask!(|client, path| SimpleLock::new(&client, &format!("{path}/node"))),
    ))),
    row("CohortLock", ask!(|client, path| CohortLock::new(&client, &path))),
    row("Ticket", |client, path, time| {
        Box::pin(async move {
            let taken = async {
                let mut ticket = Lock::new(&client, &path).enqueue().await?;
                ticket.wait().await
            };
            match time {
                None => held(taken.await),
                Some(time) => match timeout(time, taken).await {
                    Ok(taken) => held(taken),
                    Err(_) => Err(AcquireError::TimedOut),
                },
            }
        })
    }),
    irrevocable(row("Election", |client, path, time| {
        Box::pin(async move {
            let election = Election::new(&client, &path);
            match time {
                None => held(election.campaign(b"who").await),
                Some(time) => held(election.campaign_timeout(b"who", time).await),
            }
        })
    })),
    irrevocable(row("LeaderLatch", |client, path, time| {
        Box::pin(async move {
            let latch = Election::new(&client, &path).latch(b"who");
            let mut states = latch.subscribe();
            let leads = states.wait_for(|state| matches!(state, LatchState::Leading { .. }));
            let leads = timeout(time.unwrap_or(Duration::MAX / 4), leads).await.is_ok();
            if leads { held(Ok(latch)) } else { Err(AcquireError::TimedOut) }
        })
    })),
];
