//! A contender that uses `zk-locks`, in a process of its own.

use std::{io::Read as _, net::SocketAddr, process, thread, time::Duration};

use clap::{Args, ValueEnum};
use tokio::{task::JoinSet, time::timeout};
use zk_client::{CreateMode, SessionState};
use zk_locks::{Client, ConnectOptions, Election, Guard, LatchState, Lock, RwLock, Semaphore};
use zk_testkit::sim::Rng;

use super::{
    claim::{Mode, Party},
    lines::LineConnection,
    request::{Answer, Request},
    scenario::Scenario,
};

/// The arguments of a contender. Those of other implementations get the same, in this order.
#[derive(Args, Clone, Debug)]
pub struct Contend {
    /// Which recipe.
    pub scenario: Scenario,
    /// Where the servers are.
    pub servers: String,
    /// The lock's path.
    pub path: String,
    /// Where the resource is.
    pub resource: SocketAddr,
    /// Whose program it is.
    pub party: Party,
    /// Which of its processes.
    pub name: String,
    /// How many contend within the process.
    pub tasks: usize,
    /// Milliseconds of a visit.
    pub hold: u64,
    /// Milliseconds of a session without a sign of life.
    pub session: u64,
    /// How many permits a semaphore has.
    pub permits: usize,
}

impl Contend {
    /// The same on a command line.
    #[must_use]
    pub fn arguments(&self) -> [String; 10] {
        [
            self.scenario.to_string(),
            self.servers.clone(),
            self.path.clone(),
            self.resource.to_string(),
            self.party.to_string(),
            self.name.clone(),
            self.tasks.to_string(),
            self.hold.to_string(),
            self.session.to_string(),
            self.permits.to_string(),
        ]
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Takes locks and visits the resource, until that says that it is over.
///
/// # Errors
/// The resource cannot be reached any more.
pub async fn contend(told: Contend) -> Result<(), String> {
    end_with_parent();
    let mut tasks = JoinSet::new();
    for task in 0..told.tasks {
        let mut told = told.clone();
        told.name = format!("{}.{task}", told.name);
        tasks.spawn(async move { Contender::new(told).await?.run().await });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The parent of this process holds the other end of its input.
fn end_with_parent() {
    thread::spawn(|| {
        let mut input = [0];
        while matches!(std::io::stdin().read(&mut input), Ok(1)) {}
        process::exit(1);
    });
}

fn goes_on(zk: &Client) -> bool {
    !matches!(zk.session().state(), SessionState::Ended(_))
}

struct Contender {
    told: Contend,
    resource: Connection,
    rng: Rng,
}

/// The resource, over a connection of our own.
struct Connection {
    lines: LineConnection,
    ended: bool,
    gone: bool,
}

impl Contender {
    async fn new(told: Contend) -> Result<Self, Failure> {
        let lines = LineConnection::connect(told.resource).await?;
        let mut resource = Connection { lines, ended: false, gone: false };
        resource.ask(&Request::Hello { party: told.party, name: told.name.clone() }).await?;
        let rng = Rng::stream(u64::from(process::id()), told.name.len() as u64);
        Ok(Self { told, resource, rng })
    }

    async fn run(mut self) -> Result<(), Failure> {
        let mut session: Option<Client> = None;
        while !self.resource.ended {
            let zk = match session.take().filter(goes_on) {
                Some(zk) => zk,
                None => self.connect().await?,
            };
            let outcome = self.turn(&zk).await;
            if self.resource.gone {
                return outcome;
            }
            if let Err(error) = outcome {
                eprintln!("a turn has failed: {error} ({error:?})");
                let word = error.to_string().replace(' ', "-");
                self.resource.ask(&Request::Note { word }).await?;
            }
            session = Some(zk);
        }
        if let Some(zk) = session {
            // Whatever it says, the session is over then.
            let _ = zk.close().await;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let options = ConnectOptions::new(&self.told.servers)?;
        let options = options.session_timeout(Duration::from_millis(self.told.session));
        // However long there is no quorum.
        Ok(options.connect_deadline(None).connect().await?)
    }

    /// Without second looks in any recipe: a watch that was missed shows as a pause.
    async fn turn(&mut self, zk: &Client) -> Result<(), Failure> {
        if self.told.party == Party::Impatient {
            return self.push_in(zk).await;
        }
        match self.told.scenario {
            Scenario::Exclusive => {
                let guard =
                    Lock::builder(zk, &self.told.path).recheck(None).build().acquire().await?;
                self.visit(Mode::Alone, guard).await
            }
            Scenario::ReadWrite => self.read_or_write(zk).await,
            Scenario::Semaphore => {
                let semaphore = Semaphore::builder(zk, &self.told.path).recheck(None).build();
                let semaphore = semaphore.with_permits(u32::try_from(self.told.permits)?);
                let guard = semaphore.acquire().await?;
                self.visit(Mode::Lease, guard).await
            }
            Scenario::Leader => self.lead(zk).await,
        }
    }

    async fn read_or_write(&mut self, zk: &Client) -> Result<(), Failure> {
        let lock = RwLock::builder(zk, &self.told.path).recheck(None).build();
        match self.rng.index(10) {
            0..5 => {
                let guard = lock.read().await?;
                self.visit(Mode::Read, guard.into()).await
            }
            5..8 => {
                let guard = lock.write().await?;
                self.visit(Mode::Alone, guard.into()).await
            }
            _ => self.downgrade(&lock).await,
        }
    }

    async fn downgrade(&mut self, lock: &RwLock) -> Result<(), Failure> {
        let guard = lock.write().await?;
        let token = guard.token().get();
        if !self.enter(Mode::Alone, token, guard.path()).await? {
            guard.release().await?;
            return Ok(());
        }
        self.hold(&guard).await;
        if !self.resource.ask(&Request::Downgrade { token }).await? {
            guard.release().await?;
            return Ok(());
        }
        self.hold(&guard).await;
        let guard = guard.downgrade().await?;
        let node = guard.path().to_owned();
        if self.resource.ask(&Request::Moved { token, node }).await? {
            self.hold(&guard).await;
            self.resource.ask(&Request::Leave { token }).await?;
        }
        guard.release().await?;
        Ok(())
    }

    async fn lead(&mut self, zk: &Client) -> Result<(), Failure> {
        let election = Election::builder(zk, &self.told.path).recheck(None).build();
        let latch = election.latch(self.told.name.as_bytes());
        let mut states = latch.subscribe();
        let state = states.wait_for(|state| *state != LatchState::Waiting).await?.clone();
        if let LatchState::Leading { token } = state {
            let token = token.get();
            let candidates = election.queue().contenders().await?;
            if let Some(own) = candidates.into_iter().find(|own| own.token.get() == token) {
                let node = format!("{}/{}", self.told.path, own.name);
                if self.enter(Mode::Alone, token, &node).await? {
                    let leads = |state: &LatchState| matches!(state, LatchState::Leading { .. });
                    let time = Duration::from_millis(self.told.hold);
                    let _ = timeout(time, states.wait_for(|state| !leads(state))).await;
                    self.resource.ask(&Request::Leave { token }).await?;
                }
            }
        }
        latch.resign().await;
        Ok(())
    }

    /// Joins the queue, and does as if it had been waited for.
    async fn push_in(&mut self, zk: &Client) -> Result<(), Failure> {
        let node = format!("{}/_c_{}-lock-", self.told.path, zk.unique_id()?);
        let created = zk.create(&node, b"").mode(CreateMode::EphemeralSequential).await?;
        let token = created.stat.czxid.0;
        if self.enter(Mode::Alone, token, &created.path).await? {
            self.resource.ask(&Request::Leave { token }).await?;
        }
        zk.delete(&created.path).await?;
        Ok(())
    }

    async fn visit(&mut self, mode: Mode, guard: Guard) -> Result<(), Failure> {
        let token = guard.token().get();
        if self.enter(mode, token, guard.path()).await? {
            self.hold(&guard).await;
            self.resource.ask(&Request::Leave { token }).await?;
        }
        guard.release().await?;
        Ok(())
    }

    async fn enter(&mut self, mode: Mode, token: i64, node: &str) -> Result<bool, Failure> {
        self.resource.ask(&Request::Enter { mode, token, node: node.to_owned() }).await
    }

    /// For as long as a visit takes, or until the lock is lost.
    async fn hold(&self, guard: &Guard) {
        if self.told.hold > 0 {
            let _ = timeout(Duration::from_millis(self.told.hold), guard.lost()).await;
        }
    }
}

impl Connection {
    /// Whether the resource agrees.
    async fn ask(&mut self, request: &Request) -> Result<bool, Failure> {
        self.gone = true;
        let answer = self.lines.ask(&request.to_string()).await?;
        let answer = <Answer as ValueEnum>::from_str(&answer, false)?;
        self.gone = false;
        self.ended |= answer == Answer::End;
        Ok(answer == Answer::Ok)
    }
}
