//! The participants, and how calls are written down.

use std::{
    fmt::Debug,
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, timeout};
use zk_client::{Acl, AclList, Client, ConnectOptions, OpCode, Session, SessionId};
use zk_locks::{Contender, Grant, LockObserver, Release};
use zk_testkit::server::{Config, Member};
use zk_tests::{
    network::{Disposition, Name, Network, pass},
    paused,
    share::hash,
};

use crate::stages::{
    fate::{Fate, Moment},
    page::Page,
};

/// Whose calls are written down.
const SUBJECT: Name = "subject";
const KEEPER: Name = "keeper";
const RIVAL: Name = "rival";

/// Where it all takes place.
pub(crate) const PATH: &str = "/place";

/// Of every session.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(12);

/// Less than the lease of a session.
pub(crate) const BRIEF: Duration = Duration::from_secs(1);

/// What has not come after that is not waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// A client, others, a server, and what becomes of them.
pub(crate) struct Play {
    pub(crate) network: Network,
    pub(crate) subject: Client,
    /// One that wants the same.
    pub(crate) rival: Client,
    /// One that observes and interferes.
    pub(crate) keeper: Client,
    page: Page,
    fate: Fate,
    /// Requests that are still to be refused.
    refusals: Arc<AtomicU32>,
    /// Answers that are still to be lost.
    losses: Arc<AtomicU32>,
}

/// Plays it, and returns what was written.
pub(crate) fn perform(name: &str, fate: Fate, act: impl AsyncFn(&Play)) -> String {
    paused::runtime().block_on(async {
        let play = Play::new(name, fate).await;
        play.page.title(&format!("# {name}: {}", fate.told()));
        // What comes before is the same in all of them.
        play.page.is_known(fate != Fate::Calm);
        act(&play).await;
        play.page.is_known(false);
        play.end().await;
        play.page.take()
    })
}

/// Writes down what comes of a call.
macro_rules! says {
    ($play:ident, $call:expr) => {
        $play.says(stringify!($call), || $call)
    };
}

/// The same for one that takes time.
macro_rules! awaits {
    ($play:ident, $call:expr) => {
        $play.awaits(stringify!($call), $call).await
    };
}

pub(crate) use {awaits, says};

impl Play {
    async fn new(name: &str, fate: Fate) -> Self {
        let mut config = Config::default();
        config.tick = Duration::from_secs(1);
        config.seed = 1;
        let network = Network::new(config);
        let page = Page::default();
        let (refusals, losses) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        network.direct({
            let (page, refusals, losses) = (page.clone(), refusals.clone(), losses.clone());
            move |name, op| {
                if name != SUBJECT {
                    return Disposition::Answered;
                }
                page.sent(op);
                // Servers have time for these, always.
                let is_spared = matches!(op, OpCode::PING | OpCode::AUTH | OpCode::CLOSE_SESSION);
                if is_spared {
                    Disposition::Answered
                } else if one_less(&refusals) {
                    Disposition::Throttled
                } else if one_less(&losses) {
                    Disposition::AnswerLost
                } else {
                    Disposition::Answered
                }
            }
        });
        let keeper = options(&network, KEEPER, 1).connect().await.expect("a session");
        keeper.create(PATH, b"data").await.expect("a node");
        let rival = options(&network, RIVAL, 2).connect().await.expect("a session");
        let subject = options(&network, SUBJECT, hash(name)).connect().await.expect("a session");
        Self { network, subject, rival, keeper, page, fate, refusals, losses }
    }

    /// Options for one more session of the subject.
    pub(crate) fn options(&self) -> ConnectOptions {
        options(&self.network, SUBJECT, 3)
    }

    /// Writes down what comes of a call.
    pub(crate) fn says<T: Debug>(&self, call: &str, made: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = made();
        self.page.line(call, &result, began);
        result
    }

    /// The same for a call that takes time, and is given up if it takes too much.
    pub(crate) async fn awaits<T: Debug>(
        &self,
        call: &str,
        made: impl IntoFuture<Output = T>,
    ) -> Option<T> {
        let began = Instant::now();
        let result = timeout(PATIENCE, made.into_future()).await.ok();
        match &result {
            Some(result) => self.page.line(call, result, began),
            None => self.page.line(call, &format_args!("..."), began),
        }
        result
    }

    /// Writes down what a recipe tells its observer.
    pub(crate) fn observer(&self) -> Arc<Told> {
        Arc::new(Told(self.page.clone()))
    }

    /// Lets happen what is to happen then.
    pub(crate) async fn reach(&self, moment: Moment) {
        self.reach_with(moment, self.subject.session().id()).await;
    }

    /// The same for a session that is not the subject's first one.
    pub(crate) async fn reach_with(&self, moment: Moment, session: SessionId) {
        match moment {
            Moment::Before => {}
            Moment::Then => {
                self.page.is_known(false);
                // What was under way is over.
                pass(BRIEF / 10).await;
                self.page.title(&format!("  {}:", self.fate.told()));
                self.befall(session).await;
            }
            Moment::Again => self.page.title("  again:"),
            Moment::Afterwards => {
                self.page.title("  15 s later, with nothing in the way:");
                self.refusals.store(0, Ordering::Relaxed);
                self.losses.store(0, Ordering::Relaxed);
                self.network.heal();
                pass(Duration::from_secs(15)).await;
            }
        }
    }

    async fn befall(&self, session: SessionId) {
        match self.fate {
            Fate::Calm => {}
            Fate::Meddled => {
                let (own, others): (Vec<_>, Vec<_>) =
                    self.nodes_below("").into_iter().partition(|node| self.is_of(node, session));
                let all = own.iter().fold(self.keeper.multi(), |all, node| all.delete(node));
                let all = others.iter().fold(all, |all, node| all.set(node, b"meddled"));
                all.await.expect("an answer").expect("they are there");
                pass(Duration::from_millis(10)).await;
            }
            Fate::Cleared => {
                // At once, as much of it is put back at once.
                let nodes = self.nodes_below("");
                let all = nodes.iter().fold(self.keeper.multi(), |all, node| all.delete(node));
                all.await.expect("an answer").expect("they are there");
                pass(Duration::from_millis(10)).await;
            }
            Fate::Forbidden => {
                self.keeper.add_auth("digest", "keeper:secret").await.expect("a name");
                let mine = AclList::from_iter([Acl::creator_all()]);
                for node in self.nodes_below("") {
                    self.keeper.set_acl(&node, &mine).await.expect("it may");
                }
            }
            Fate::Throttled => self.refusals.store(3, Ordering::Relaxed),
            Fate::AnswerLost => self.losses.store(1, Ordering::Relaxed),
            Fate::CutOff => self.network.cut(SUBJECT),
            Fate::CutShort => {
                self.network.cut(SUBJECT);
                pass(BRIEF).await;
                // Nodes of others change and go meanwhile.
                let _ = self.keeper.set(PATH, b"meanwhile").await;
                let _ = self.keeper.create("/place/meanwhile", b"").await;
                pass(BRIEF).await;
                self.network.heal();
                pass(BRIEF).await;
            }
            Fate::CutOffForLong => {
                self.network.cut(SUBJECT);
                pass(SESSION_TIMEOUT + BRIEF).await;
            }
            Fate::Silent => self.network.hold(SUBJECT),
            Fate::Expired => {
                self.network.expire(session);
                pass(Duration::from_millis(10)).await;
            }
            Fate::ExpiredMeanwhile => {
                self.network.cut(SUBJECT);
                self.network.expire(session);
            }
            Fate::Closed => {
                awaits!(self, self.subject.close());
            }
        }
    }

    /// What is left when all is over.
    async fn end(&self) {
        self.network.heal();
        pass(Duration::from_secs(15)).await;
        self.page.title("  in the end:");
        says!(self, self.subject.session().state());
        says!(self, self.nodes_of(self.subject.session().id()));
        says!(self, self.subject.session().orphans());
        says!(self, self.subject.stats());
        self.page.title("");
    }

    /// The nodes at the place or below it, those below first.
    pub(crate) fn nodes_below(&self, path: &str) -> Vec<String> {
        let top = format!("{PATH}{path}");
        self.network.look(|server| {
            let tree = server.tree(Member(0)).expect("there is one");
            let below = |path: &str| {
                path.strip_prefix(&top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let mut nodes: Vec<_> = tree
                .iter()
                .map(|(path, _)| String::from(path))
                .filter(|path| below(path))
                .collect();
            nodes.sort_unstable_by_key(|path| std::cmp::Reverse(path.clone()));
            nodes
        })
    }

    /// The nodes that go with the session of a client.
    fn nodes_of(&self, session: SessionId) -> Vec<String> {
        self.network.look(|server| {
            let tree = server.tree(Member(0)).expect("there is one");
            tree.ephemerals(session).map(str::to_owned).collect()
        })
    }

    fn is_of(&self, node: &str, session: SessionId) -> bool {
        self.nodes_of(session).iter().any(|own| own == node)
    }
}

fn one_less(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1)).is_ok()
}

fn options(network: &Network, name: Name, seed: u64) -> ConnectOptions {
    network.options(name, "", seed).session_timeout(SESSION_TIMEOUT)
}

/// An observer that writes down what it is told.
pub(crate) struct Told(Page);

impl LockObserver for Told {
    fn attached(&self, _: &Session) {
        self.0.aside("attached");
    }
    fn joined(&self, path: &str) {
        self.0.aside(&format!("joined {path}"));
    }
    fn left(&self, path: &str) {
        self.0.aside(&format!("left {path}"));
    }
    fn granted(&self, grant: &Grant<'_>) {
        self.0.aside(&format!("granted {grant:?}"));
    }
    fn given_up(&self, path: &str, waited: Duration) {
        self.0.aside(&format!("given up {path} after {waited:?}"));
    }
    fn released(&self, release: &Release<'_>) {
        self.0.aside(&format!("released {release:?}"));
    }
    fn held_too_long(&self, grant: &Grant<'_>) {
        self.0.aside(&format!("held too long {grant:?}"));
    }
}

/// What is worth a line of contenders.
pub(crate) async fn brief<E>(
    contenders: impl Future<Output = Result<Vec<Contender>, E>>,
) -> Result<Vec<String>, E> {
    let told = |it: &Contender| {
        let revoked = if it.is_revoked() { " revoked" } else { "" };
        format!("{} {:?} {:?}{revoked}", it.name, it.kind, it.token)
    };
    Ok(contenders.await?.iter().map(told).collect())
}
