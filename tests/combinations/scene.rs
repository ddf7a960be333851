//! The participants of a play, and what they can rely on.

use std::{fmt::Debug, future::Future, sync::Mutex, time::Duration};

use tokio::{task::JoinHandle, time::timeout};
use zk_client::{CallOptions, Client, ConnectOptions, SessionState};
use zk_testkit::{
    server::{Config, Member, Tree},
    sim::Rng,
};
use zk_tests::network::{Name, Network, pass};

use crate::combinations::{
    cell::{Cell, Variant, Way},
    trouble::{Drill, Met, Stage, TROUBLE_MAX},
};

/// Whose requests go wrong.
pub(crate) const SUBJECT: Name = "subject";
const RIVALS: [Name; 2] = ["first", "second"];
const KEEPER: Name = "keeper";

/// Of every session.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(12);

/// What requests have if they have a bound: more than a round trip, less than any trouble.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(300);

/// Within that everything happens that has nothing to wait for, whatever has gone wrong before.
pub(crate) const SOON: Duration = Duration::from_secs(4);

/// The same while one thing goes wrong after the other.
pub(crate) const IN_TROUBLE: Duration =
    SOON.saturating_add(TROUBLE_MAX).saturating_add(TROUBLE_MAX);

/// Servers, clients and what goes wrong between them.
pub(crate) struct Scene {
    pub(crate) network: Network,
    /// Whose requests go wrong, in the way of the cell.
    pub(crate) subject: Client,
    /// Others who want the same, one after the other.
    pub(crate) rivals: [Client; 2],
    /// An observer who also interferes.
    pub(crate) keeper: Client,
    /// Where it all takes place.
    pub(crate) path: String,
    /// What the cell leaves to chance.
    rng: Mutex<Rng>,
    /// Below which everything takes place, as the keeper sees it.
    pub(crate) root: &'static str,
    way: Way,
    variant: Variant,
    drill: Drill,
}

impl Scene {
    pub(crate) async fn new(cell: &Cell<'_>) -> Self {
        let mut config = Config::default();
        config.tick = Duration::from_secs(1);
        config.release = cell.release;
        config.seed = 1;
        let network = Network::new(config);
        let drill = Drill::new(cell.troubles);
        let deciding = drill.clone();
        network.direct(move |name, op| deciding.decide(name, op));
        let mut rng = Rng::new(cell.seed());
        let keeper = connect(&network, KEEPER, "", &mut rng).await;
        let root = if cell.variant.chroot { "/app" } else { "" };
        if cell.variant.chroot {
            keeper.create(root, b"").await.expect("a node");
        }
        let path = "/place/of/it".to_owned();
        if cell.variant.prepared {
            let created = keeper.create(&format!("{root}{path}"), b"").parents().await;
            created.expect("a node");
        }
        let options = cell.variant.apply(options(&network, SUBJECT, root, &mut rng));
        let subject = cell.way.apply(options).connect().await.expect("a session");
        let subject = cell.way.of(&subject);
        let rivals = [
            connect(&network, RIVALS[0], root, &mut rng).await,
            connect(&network, RIVALS[1], root, &mut rng).await,
        ];
        Self {
            network,
            subject,
            rivals,
            keeper,
            path,
            rng: Mutex::new(rng),
            root,
            way: cell.way,
            variant: cell.variant,
            drill,
        }
    }

    /// Options for one more session of the subject.
    pub(crate) fn options(&self) -> ConnectOptions {
        let options = self.draw(|rng| options(&self.network, SUBJECT, self.root, rng));
        self.way.apply(self.variant.apply(options))
    }

    /// Leaves something to chance.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.rng.lock().expect("no task panics"))
    }

    /// From here on the requests of the subject are those of this stage.
    pub(crate) fn stage(&self, stage: Stage) {
        self.drill.enter(stage);
    }

    pub(crate) fn met(&self) -> Met {
        self.drill.met()
    }

    /// Lets trouble come and go.
    pub(crate) async fn rest(&self) {
        pass(SOON + TROUBLE_MAX).await;
        self.drill.be_calm(true);
        pass(SOON + TROUBLE_MAX).await;
        self.drill.be_calm(false);
    }

    pub(crate) fn tree<T>(&self, look: impl FnOnce(&Tree) -> T) -> T {
        self.network.look(|server| look(server.tree(Member(0)).expect("there is one")))
    }

    /// The names of the nodes below one.
    pub(crate) fn names_below(&self, path: &str) -> Vec<String> {
        let path = format!("{}{path}", self.root);
        let names =
            |tree: &Tree| tree.get(&path).map(|node| node.children().map(str::to_owned).collect());
        self.tree(names).unwrap_or_default()
    }

    /// Nodes that go with the session of a client.
    pub(crate) fn nodes_of(&self, client: &Client) -> Vec<String> {
        let session = client.session().id();
        self.tree(|tree| tree.ephemerals(session).map(str::to_owned).collect())
    }

    /// Within the time nothing is left of the subject, and its session is alive.
    pub(crate) async fn nothing_is_left(&self) -> Result<(), String> {
        let settled = async {
            let mut session = self.subject.session();
            while !matches!(session.state(), SessionState::Connected { .. }) {
                session.changed().await;
            }
            while !self.nodes_of(&self.subject).is_empty() {
                pass(Duration::from_millis(50)).await;
            }
        };
        if timeout(IN_TROUBLE, settled).await.is_ok() {
            return Ok(());
        }
        let (nodes, state) = (self.nodes_of(&self.subject), self.subject.session().state());
        Err(format!("{nodes:?} is left behind, and the session is {state:?}"))
    }
}

/// Something under way, beside everything else. Given up when this is dropped.
pub(crate) struct Beside<T>(JoinHandle<T>);

impl<T: Send + 'static> Beside<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T, E: Debug> Beside<Result<T, E>> {
    pub(crate) async fn done(mut self, time: Duration, what: &str) -> Result<T, String> {
        let done = within(time, what, &mut self.0).await?.expect("no task panics");
        done.map_err(|error| format!("{what} ends with {error:?}"))
    }
}

impl<T> Drop for Beside<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What has to happen within a time.
pub(crate) async fn within<T>(
    time: Duration,
    what: &str,
    future: impl IntoFuture<Output = T>,
) -> Result<T, String> {
    timeout(time, future.into_future()).await.map_err(|_| format!("not within {time:?}: {what}"))
}

/// What has to go well within a time.
pub(crate) async fn well<T, E: Debug>(
    time: Duration,
    what: &str,
    future: impl IntoFuture<Output = Result<T, E>>,
) -> Result<T, String> {
    within(time, what, future).await?.map_err(|error| format!("{what} ends with {error:?}"))
}

/// What has to be so.
pub(crate) fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// How a client connects.
fn options(network: &Network, name: Name, root: &str, rng: &mut Rng) -> ConnectOptions {
    network.options(name, root, rng.next()).session_timeout(SESSION_TIMEOUT)
}

async fn connect(network: &Network, name: Name, root: &str, rng: &mut Rng) -> Client {
    options(network, name, root, rng).connect().await.expect("a session")
}

impl Way {
    /// For tests that make clients of their own from it.
    fn apply(self, options: ConnectOptions) -> ConnectOptions {
        match self {
            Self::Default | Self::FailFast => options,
            Self::RequestTimeout | Self::Both => options.request_timeout(REQUEST_TIMEOUT),
        }
    }

    fn of(self, client: &Client) -> Client {
        let hasty = CallOptions::new().timeout(REQUEST_TIMEOUT);
        match self {
            Self::Default | Self::RequestTimeout => client.clone(),
            Self::FailFast => client.with(CallOptions::new().fail_fast()),
            Self::Both => client.with(hasty.fail_fast()),
        }
    }
}
