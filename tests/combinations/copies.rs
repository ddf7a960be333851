//! What is done with caches, which must never say that they follow when they do not.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, timeout};
use zk_client::{Cache, CacheState, Client, CreateMode, SessionState, WriteError, bytes::Bytes};
use zk_tests::network::pass;

use crate::combinations::{
    cell::{Named, Play},
    scene::{IN_TROUBLE, SOON, SUBJECT, Scene, within},
    trouble::Stage,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Node,
    Children,
    Subtree,
}

pub(crate) fn plays() -> impl Iterator<Item = Play> {
    let plays: &[Named] = &[
        ("Cache::node", "follows", |scene| Box::pin(follows(scene, Scope::Node))),
        ("Cache::children", "follows", |scene| Box::pin(follows(scene, Scope::Children))),
        ("Cache::subtree", "follows", |scene| Box::pin(follows(scene, Scope::Subtree))),
        ("Cache::node", "catches up", |scene| Box::pin(catches_up(scene, Scope::Node))),
        ("Cache::children", "catches up", |scene| Box::pin(catches_up(scene, Scope::Children))),
        ("Cache::subtree", "catches up", |scene| Box::pin(catches_up(scene, Scope::Subtree))),
    ];
    plays.iter().map(Play::named)
}

/// The nodes at a path, and what they hold.
type Nodes = BTreeMap<String, Bytes>;

/// A cache, and what it must be equal to.
struct Copy<'a> {
    scene: &'a Scene,
    cache: Cache,
    scope: Scope,
}

impl Copy<'_> {
    fn wanted(&self) -> Nodes {
        let Scene { path, root, .. } = self.scene;
        let top = format!("{root}{path}");
        self.scene.tree(|tree| {
            let nodes = tree.iter().filter_map(|(path, node)| {
                let below = path.strip_prefix(&top)?;
                let deep = below.matches('/').count();
                let counts = match self.scope {
                    Scope::Node => below.is_empty(),
                    Scope::Children => below.is_empty() || below.starts_with('/') && deep == 1,
                    Scope::Subtree => below.is_empty() || below.starts_with('/'),
                };
                let path = path.strip_prefix(root)?.to_owned();
                counts.then(|| (path, node.data().cloned().unwrap_or_default()))
            });
            nodes.collect()
        })
    }

    fn has(&self) -> Nodes {
        self.cache.nodes().into_iter().map(|node| (node.path.to_string(), node.data)).collect()
    }

    /// It becomes equal to the servers', and says so.
    async fn becomes_equal(&self, when: &str) -> Result<(), String> {
        let equal = async {
            while self.cache.state() != CacheState::Following || self.has() != self.wanted() {
                pass(Duration::from_millis(20)).await;
            }
        };
        let equal = within(IN_TROUBLE, &format!("an equal copy {when}"), equal).await;
        equal.map_err(|text| format!("{text}: {:?}, {}", self.cache.state(), self.difference()))
    }

    fn difference(&self) -> String {
        let (has, wanted) = (self.has(), self.wanted());
        let missing: Vec<_> = wanted.iter().filter(|(path, _)| !has.contains_key(*path)).collect();
        let gone: Vec<_> = has.iter().filter(|(path, _)| !wanted.contains_key(*path)).collect();
        let is_old =
            |(path, data): &(&String, &Bytes)| has.get(*path).is_some_and(|it| it != *data);
        let old: Vec<_> = wanted.iter().filter(is_old).collect();
        format!("missing {missing:?}, gone {gone:?}, old {old:?}")
    }

    /// For ever: it never says that it follows while it does not.
    async fn tells_the_truth(&self) -> String {
        let mut session = self.scene.subject.session();
        let (mut wanted, mut changed) = (self.wanted(), Instant::now());
        let (mut state, mut connected) = (session.state(), Instant::now());
        loop {
            // Closely after a reconnect, when there may be most to tell.
            let is_new = connected.elapsed() < Duration::from_millis(50);
            let pause = Duration::from_millis(if is_new { 1 } else { 20 });
            let _ = timeout(pause, session.changed()).await;
            if wanted != self.wanted() {
                (wanted, changed) = (self.wanted(), Instant::now());
            }
            if state != session.state() {
                (state, connected) = (session.state(), Instant::now());
                continue;
            }
            // What has changed before the connection was made is read by followers on it; news of anything else
            // may be as late as troubles make it.
            let missed = changed < connected;
            let late = changed.max(connected).elapsed() > SOON;
            let is_connected = matches!(state, SessionState::Connected { .. });
            let follows = self.cache.state() == CacheState::Following;
            if follows && is_connected && (missed || late) && self.has() != wanted {
                return format!("it says that it follows, {}", self.difference());
            }
        }
    }
}

/// Nodes of every kind come, change and go.
async fn change(client: &Client, path: &str, round: u32) -> Result<(), WriteError> {
    let at = |name: &str| format!("{path}/{name}");
    let value = format!("round {round}");
    let value = value.as_bytes();
    client.set(path, value).await?;
    match round % 5 {
        0 => {
            client.create(&at("a"), value).or_exists().await?;
            client.create(&at("a/x"), value).or_exists().await?;
            client.create(&at("b"), value).or_exists().await?;
        }
        1 => {
            client.set(&at("a"), value).await?;
            client.set(&at("a/x"), value).await?;
        }
        2 => {
            // Gone, and back at once.
            let (b, again) = (at("b"), CreateMode::Persistent);
            let multi = client.multi().delete(&b).create(&b, value, again);
            multi.await?.map_err(|_| WriteError::Rejected(zk_client::Rejection::NoNode))?;
            client.create(&at("b/y"), value).await?;
        }
        3 => {
            client.delete(&at("a/x")).await?;
            client.delete(&at("a")).await?;
            client.create(&at("c"), value).await?;
        }
        _ => {
            client.delete(&at("b/y")).await?;
            client.delete(&at("b")).await?;
            client.delete(&at("c")).await?;
        }
    }
    Ok(())
}

async fn changed(scene: &Scene, round: u32) -> Result<(), String> {
    let changed = change(&scene.rivals[0], &scene.path, round);
    within(SOON, "a change", changed).await?.map_err(|error| format!("a change: {error:?}"))
}

async fn begin(scene: &Scene, scope: Scope) -> Result<Copy<'_>, String> {
    if scene.tree(|tree| tree.get(&format!("{}{}", scene.root, scene.path)).is_none()) {
        let created = scene.rivals[0].create(&scene.path, b"").parents().await;
        created.map_err(|error| format!("{error:?}"))?;
    }
    changed(scene, 0).await?;
    scene.stage(Stage::Acquiring);
    let builder = match scope {
        Scope::Node => Cache::node(&scene.subject, &scene.path),
        Scope::Children => Cache::children(&scene.subject, &scene.path),
        Scope::Subtree => Cache::subtree(&scene.subject, &scene.path),
    };
    let cache = builder.start().map_err(|error| error.to_string())?;
    let ready = within(IN_TROUBLE, "that it is ready", cache.ready()).await?;
    ready.map_err(|error| format!("ready ends with {error:?}"))?;
    Ok(Copy { scene, cache, scope })
}

/// Changes come one after the other.
async fn follows(scene: &Scene, scope: Scope) -> Result<(), String> {
    let copy = begin(scene, scope).await?;
    let script = async {
        copy.becomes_equal("when it is ready").await?;
        scene.rest().await;
        scene.stage(Stage::Held);
        for round in 1..10 {
            changed(scene, round).await?;
            copy.becomes_equal(&format!("after round {round}")).await?;
        }
        Ok(())
    };
    tokio::select! {
        biased;
        script = script => script,
        lie = copy.tells_the_truth() => Err(lie),
    }
}

/// Changes come while the connection is lost.
async fn catches_up(scene: &Scene, scope: Scope) -> Result<(), String> {
    let copy = begin(scene, scope).await?;
    let script = async {
        copy.becomes_equal("when it is ready").await?;
        scene.stage(Stage::Waiting);
        for round in (1..10).step_by(2) {
            scene.network.cut(SUBJECT);
            changed(scene, round).await?;
            pass(Duration::from_millis(500)).await;
            scene.network.heal();
            pass(Duration::from_millis(u64::from(round % 3) * 3)).await;
            changed(scene, round + 1).await?;
            copy.becomes_equal(&format!("after round {round}")).await?;
            scene.stage(Stage::Held);
        }
        Ok(())
    };
    tokio::select! {
        biased;
        script = script => script,
        lie = copy.tells_the_truth() => Err(lie),
    }
}
