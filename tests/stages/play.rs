//! The participants, and how calls are written down.

use std::{fmt::Debug, future::IntoFuture, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};
use zk_client::{Acl, AclList, Client, ConnectOptions, OpCode, Session, SessionId};
use zk_locks::{Builder, Contender, Grant, LockObserver, Release};
use zk_testkit::server::{Config, Ensemble, Member};
use zk_tests::{
    network::{Disposition, Name, Network, pass},
    paused,
    share::hash,
};

use crate::stages::{
    fate::{Fate, Moment},
    page::Page,
    setting::Setting,
    toll::Toll,
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
    setting: Setting,
    fate: Fate,
    /// Which requests are still to be refused.
    refusals: Arc<Toll>,
    /// Which answers are still to be lost.
    losses: Arc<Toll>,
}

/// Plays it, and returns what was written.
pub(crate) fn perform(
    name: &str,
    setting: Setting,
    fate: Fate,
    act: impl AsyncFn(&Play),
) -> String {
    paused::block_on(async {
        let play = Play::new(name, setting, fate).await;
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
    async fn new(name: &str, setting: Setting, fate: Fate) -> Self {
        let mut config = Config::default();
        config.tick = Duration::from_secs(1);
        config.seed = 1;
        setting.configure(&mut config);
        let network = Network::new(config);
        // Until the members have a leader.
        pass(SESSION_TIMEOUT).await;
        network.reach_by(SUBJECT, farthest(&network));
        let page = Page::default();
        let (refusals, losses) = (Arc::new(Toll::default()), Arc::new(Toll::default()));
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
                } else if refusals.takes(op) {
                    Disposition::Throttled
                } else if losses.takes(op) {
                    Disposition::AnswerLost
                } else {
                    Disposition::Answered
                }
            }
        });
        let founder = options(&network, KEEPER, "", 0).connect().await.expect("a session");
        // In all settings, for the same numbers in all of them.
        founder.create("/root", b"").await.expect("a node");
        founder.close().await.expect("it is not needed again");
        let chroot = setting.chroot();
        let keeper = options(&network, KEEPER, chroot, 1).connect().await.expect("a session");
        keeper.create(PATH, b"data").await.expect("a node");
        let rival = options(&network, RIVAL, chroot, 2).connect().await.expect("a session");
        let subject = setting.session(options(&network, SUBJECT, chroot, hash(name)));
        let subject = setting.client(subject.connect().await.expect("a session"));
        // What lags behind has come.
        pass(BRIEF).await;
        Self { network, subject, rival, keeper, page, setting, fate, refusals, losses }
    }

    /// Options for one more session of the subject.
    pub(crate) fn options(&self) -> ConnectOptions {
        self.setting.session(options(&self.network, SUBJECT, self.setting.chroot(), 3))
    }

    /// A recipe of the subject.
    pub(crate) fn build<R>(&self, builder: Builder<R>) -> R {
        self.setting.recipe(builder.observer(Arc::new(Told(self.page.clone())))).build()
    }

    /// One of somebody else on the same path.
    pub(crate) fn build_other<R>(&self, builder: Builder<R>) -> R {
        self.setting.shared(builder).build()
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
                self.refusals.take(0);
                self.losses.take(0);
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
            Fate::Throttled => self.refusals.take(3),
            Fate::FirstsThrottled => self.refusals.take_firsts(),
            Fate::AnswerLost => self.losses.take(1),
            Fate::FirstAnswersLost => self.losses.take_firsts(),
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
        self.look(|server, leader| {
            let below = |path: &&str| {
                path.strip_prefix(&top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let tree = server.tree(leader).expect("there is one");
            let mut nodes: Vec<_> = tree
                .iter()
                .filter_map(|(path, _)| path.strip_prefix(self.setting.chroot()))
                .filter(below)
                .map(str::to_owned)
                .collect();
            nodes.sort_unstable_by_key(|path| std::cmp::Reverse(path.clone()));
            nodes
        })
    }

    /// The nodes that go with the session of a client.
    fn nodes_of(&self, session: SessionId) -> Vec<String> {
        let relative = |path: &str| path[self.setting.chroot().len()..].to_owned();
        self.look(|server, leader| {
            server.tree(leader).expect("there is one").ephemerals(session).map(relative).collect()
        })
    }

    /// Looks at the server that knows it all.
    fn look<T>(&self, at: impl FnOnce(&Ensemble, Member) -> T) -> T {
        self.network.look(|server| at(server, server.leader().expect("there is one")))
    }

    fn is_of(&self, node: &str, session: SessionId) -> bool {
        self.nodes_of(session).iter().any(|own| own == node)
    }
}

fn options(network: &Network, name: Name, chroot: &str, seed: u64) -> ConnectOptions {
    network.options(name, chroot, seed).session_timeout(SESSION_TIMEOUT)
}

/// A member that does not lead, if there is one.
fn farthest(network: &Network) -> Member {
    network.look(|server| {
        let leader = server.leader().expect("there is one");
        (0..3).map(Member).find(|it| *it != leader && server.tree(*it).is_some()).unwrap_or(leader)
    })
}

/// An observer that writes down what it is told.
struct Told(Page);

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
