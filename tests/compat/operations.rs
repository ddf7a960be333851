//! The operations, each as its users see it.

use std::{fmt, time::Duration};

use zk_client::{
    Acl, AclList, Cache, Client, ConnectOptions, CreateMode, Error, OpResult, Rejection,
    SessionState, Stat, WatchItem, WatchKind,
};
use zk_tests::{feature::Feature, site::Site};

/// What becomes of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Works,
    /// It does what it is for, with less than newer servers give.
    Degrades(&'static str),
    /// By `Unimplemented`.
    Refused,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works => f.write_str("works"),
            Self::Degrades(how) => write!(f, "degrades: {how}"),
            Self::Refused => f.write_str("refused"),
        }
    }
}

use Outcome::{Degrades, Works};

/// Under these names they stand in the guide.
pub(crate) const OPERATIONS: [&str; 33] = [
    "create",
    "create, ephemeral",
    "create, sequential",
    "create, container",
    "create with time to live",
    "create with its parents",
    "protected create",
    "create unless there",
    "get",
    "set",
    "exists",
    "children with metadata",
    "delete",
    "delete recursively",
    "get and set ACL",
    "sync",
    "multi",
    "several reads at once",
    "one-shot watch",
    "watch stream of a node",
    "watch stream of a subtree",
    "zxid in events",
    "check for a watch",
    "check for a watch that goes on",
    "cache of a subtree",
    "ephemeral nodes of the session",
    "number of descendants",
    "who am I",
    "configuration",
    "reconfiguration",
    "prove an identity later",
    "resume a session",
    "close",
];

/// What a server must have for an operation to work without loss, if it is something that not all have.
pub(crate) fn needs(name: &str) -> Option<Feature> {
    Some(match name {
        "create" | "create, ephemeral" | "create, sequential" => Feature::StatAtBirth,
        "create, container" => Feature::Containers,
        "create with time to live" => Feature::TimeToLive,
        "multi" => Feature::StatInMulti,
        "several reads at once" => Feature::MultiRead,
        "watch stream of a node" | "watch stream of a subtree" => Feature::PersistentWatches,
        "zxid in events" => Feature::EventZxid,
        "check for a watch" => Feature::WatchCheck,
        "check for a watch that goes on" => Feature::PersistentWatchCheck,
        "ephemeral nodes of the session" => Feature::Ephemerals,
        "number of descendants" => Feature::DescendantCount,
        "who am I" => Feature::WhoAmI,
        "configuration" => Feature::Config,
        "reconfiguration" => Feature::Reconfig,
        _ => return None,
    })
}

/// Does the operation of this number, with a session of its own.
pub(crate) async fn outcome(server: &Site, number: usize) -> Outcome {
    let options = || ConnectOptions::new(&server.connect_string()).unwrap();
    let root = options().connect().await.unwrap();
    let top = format!("/c{number}");
    root.create(&top, b"").await.unwrap();
    let zk = root.chrooted(&top).unwrap();
    let done = match OPERATIONS[number] {
        "resume a session" => resumed(zk, options()).await,
        "close" => closed(&zk).await,
        name => done(&zk, name).await,
    };
    let done = done.or_else(|error| match error.rejection() {
        Some(Rejection::Unimplemented) => Ok(Outcome::Refused),
        _ => Err(error),
    });
    // Whatever it was: the session is as good as before.
    if !matches!(root.session().state(), SessionState::Ended(_)) {
        root.sync("/").await.unwrap();
    }
    done.unwrap_or_else(|error| panic!("{}: {error}", OPERATIONS[number]))
}

async fn done(zk: &Client, name: &str) -> Result<Outcome, Error> {
    match name {
        "create" => Ok(known(zk.create("/a", b"x").await?.stat)),
        "create, ephemeral" => made(zk, CreateMode::Ephemeral).await,
        "create, sequential" => made(zk, CreateMode::PersistentSequential).await,
        "create, container" => made(zk, CreateMode::Container).await,
        "create with time to live" => {
            made(zk, CreateMode::PersistentTtl(Duration::from_secs(3600))).await
        }
        "create with its parents" => {
            zk.create("/a/b/c", b"").parents().await?;
            Ok(Works)
        }
        "protected create" => {
            let node = zk.create("/n-", b"").mode(CreateMode::EphemeralSequential).protected();
            let _ = node.await?;
            Ok(Works)
        }
        "create unless there" => {
            zk.create("/a", b"").or_exists().await?;
            assert!(zk.create("/a", b"").or_exists().await?.existed);
            Ok(Works)
        }
        "several reads at once" => {
            zk.multi_read().get("/").children("/").await?;
            Ok(Works)
        }
        "multi" => multi(zk).await,
        "get and set ACL" => {
            let (acl, _) = zk.acl("/").await?;
            assert_eq!(acl.to_vec(), [Acl::open_unsafe()]);
            zk.set_acl("/", &AclList::from_iter([Acl::open_unsafe()])).await?;
            Ok(Works)
        }
        "get"
        | "set"
        | "exists"
        | "children with metadata"
        | "delete"
        | "delete recursively"
        | "sync" => plain(zk, name).await,
        "one-shot watch"
        | "watch stream of a node"
        | "watch stream of a subtree"
        | "zxid in events"
        | "check for a watch"
        | "check for a watch that goes on"
        | "cache of a subtree" => watched(zk, name).await,
        _ => told(zk, name).await,
    }
}

/// Whether all is known of a node that was created.
fn known(stat: Stat) -> Outcome {
    if stat.ctime == 0 { Degrades("only the zxids of its metadata") } else { Works }
}

async fn made(zk: &Client, mode: CreateMode) -> Result<Outcome, Error> {
    Ok(known(zk.create("/a-", b"").mode(mode).await?.stat))
}

async fn plain(zk: &Client, name: &str) -> Result<Outcome, Error> {
    zk.create("/a", b"one").await?;
    match name {
        "get" => assert_eq!(&*zk.get("/a").await?.0, b"one"),
        "set" => assert_eq!(zk.set("/a", b"two").version(0).await?.version, 1),
        "exists" => assert!(zk.exists("/a").await?.is_some()),
        "children with metadata" => {
            let (names, stat) = zk.children("/").await?;
            assert_eq!((names, stat.num_children), (vec!["a".to_owned()], 1));
        }
        "delete" => zk.delete("/a").version(0).await?,
        "delete recursively" => {
            zk.create("/a/b/c", b"").parents().await?;
            assert_eq!(zk.delete_recursive("/a").await?, 3);
        }
        "sync" => zk.sync("/a").await?,
        other => unreachable!("{other}"),
    }
    Ok(Works)
}

async fn multi(zk: &Client) -> Result<Outcome, Error> {
    let multi = zk.multi().create("/a", b"", CreateMode::Persistent).set("/a", b"x").check("/a");
    let results = multi.await?.expect("nothing stands in its way");
    match &results[0] {
        OpResult::Created { stat: Some(_), .. } => Ok(Works),
        OpResult::Created { stat: None, .. } => Ok(Degrades("no metadata of created nodes")),
        other => panic!("{other:?}"),
    }
}

async fn watched(zk: &Client, name: &str) -> Result<Outcome, Error> {
    match name {
        "one-shot watch" => {
            let (_, watch) = zk.exists("/a").watch().await?;
            zk.create("/a", b"").await?;
            watch.await.expect("the session lives");
            Ok(Works)
        }
        "zxid in events" => {
            let (_, watch) = zk.exists("/a").watch().await?;
            zk.create("/a", b"").await?;
            let event = watch.await.expect("the session lives");
            Ok(if event.zxid.is_some() { Works } else { Degrades("none") })
        }
        "check for a watch" => {
            let (_, _watch) = zk.get("/").watch().await?;
            assert!(zk.check_watches("/", WatchKind::Any).await?);
            Ok(Works)
        }
        "check for a watch that goes on" => {
            // Set where there are any.
            let _node = zk.watch("/").await;
            let _tree = zk.watch("/").recursive().await;
            let refused = zk.check_watches("/", WatchKind::Node).await;
            assert_eq!(zk.check_watches("/", WatchKind::Recursive).await, refused);
            assert!(refused?);
            Ok(Works)
        }
        "cache of a subtree" => {
            let cache = Cache::subtree(zk, "/").start().expect("the path is sound");
            cache.ready().await?;
            let mut events = cache.events();
            zk.create("/a", b"x").await?;
            while cache.get("/a").is_none() {
                events.next().await.expect("the session lives");
            }
            Ok(Works)
        }
        stream => {
            let watch = zk.watch("/");
            let is_node = stream == "watch stream of a node";
            let mut stream = if is_node { watch } else { watch.recursive() }.await?;
            zk.create("/a", b"").await?;
            let item = stream.next().await;
            assert!(matches!(item, Some(WatchItem::Event(_))), "{item:?}");
            Ok(Works)
        }
    }
}

async fn told(zk: &Client, name: &str) -> Result<Outcome, Error> {
    match name {
        "ephemeral nodes of the session" => {
            zk.create("/e", b"").mode(CreateMode::Ephemeral).await?;
            assert_eq!(zk.ephemerals("/").await?, ["/e"]);
        }
        "number of descendants" => {
            zk.create("/a/b", b"").parents().await?;
            assert_eq!(zk.descendant_count("/").await?, 2);
        }
        "who am I" => assert!(!zk.who_am_i().await?.is_empty()),
        "configuration" => {
            let config = zk.config().await;
            let is_missing =
                matches!(&config, Err(error) if error.rejection() == Some(Rejection::NoNode));
            if is_missing {
                return Ok(Degrades("no such node"));
            }
            config?;
        }
        "reconfiguration" => {
            // A standalone server has no other member to join.
            let refused = zk.reconfig().leave(1).await.expect_err("nobody can leave");
            return match refused.rejection() {
                Some(Rejection::Unimplemented) | None => Err(refused.into()),
                Some(_) => Ok(Works),
            };
        }
        "prove an identity later" => {
            zk.add_auth("digest", "ann:secret").await?;
            let mine = AclList::from_iter([Acl::creator_all()]);
            zk.create("/mine", b"").acl(&mine).await?;
            zk.set("/mine", b"x").await?;
        }
        other => unreachable!("{other}"),
    }
    Ok(Works)
}

async fn resumed(zk: Client, options: ConnectOptions) -> Result<Outcome, Error> {
    zk.create("/e", b"").mode(CreateMode::Ephemeral).await?;
    let credentials = zk.detach().await.expect("the session lives");
    let again = options.resume(credentials).connect().await.expect("the session lives");
    let number = OPERATIONS.iter().position(|name| *name == "resume a session");
    let path = format!("/c{}/e", number.expect("it is on the list"));
    assert!(again.exists(&path).await?.is_some());
    Ok(Works)
}

async fn closed(zk: &Client) -> Result<Outcome, Error> {
    zk.close().await.expect("the server confirms it");
    Ok(Works)
}
