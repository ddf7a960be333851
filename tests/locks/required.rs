//! Paths that must be there, and that no recipe brings back.

use std::time::Duration;

use zk_locks::{
    AcquireError, Barrier, Builder, Client, CohortLock, DoubleBarrier, Election, ForeignNodes,
    Group, Lock, MultiLock, RwLock, Semaphore, SimpleLock,
};
use zk_proto::OpCode;
use zk_testkit::{TestServer, proxy::Match, real::Release, server::Config};
use zk_tests::test_with;

use crate::locks::support::{Setup, joined, on_each_release, within};

/// The recipes that are built by a [`Builder`].
const RECIPES: [&str; 15] = [
    "lock",
    "lock that looks ahead",
    "lock with a delay",
    "lock that is renewed",
    "lock that refuses strangers",
    "herd lock",
    "read",
    "write",
    "semaphore",
    "semaphore mutex",
    "cohort",
    "election",
    "group",
    "double barrier",
    "several locks",
];

/// Those that are the node at their path.
const NODES: [&str; 2] = ["simple lock", "barrier"];

/// What must be there.
#[derive(Clone, Copy)]
enum Must {
    Path,
    Parent,
}

impl Must {
    fn told<R>(self, builder: Builder<R>) -> R {
        match self {
            Self::Path => builder.require_path(),
            Self::Parent => builder.require_parent(),
        }
        .build()
    }
}

/// Takes what the recipe has to give, and gives it back.
async fn take(zk: &Client, recipe: &str, path: &str, must: Must) -> Result<(), AcquireError> {
    let lock = || Lock::builder(zk, path);
    let exclusive = match recipe {
        "lock" => Some(lock()),
        "lock that looks ahead" => Some(lock().look_ahead(true)),
        "lock with a delay" => Some(lock().lock_delay(Duration::from_millis(1))),
        "lock that is renewed" => Some(lock().rotate_at(1)),
        "lock that refuses strangers" => Some(lock().foreign_nodes(ForeignNodes::Refuse)),
        _ => None,
    };
    if let Some(builder) = exclusive {
        return within(must.told(builder).acquire()).await.map(drop);
    }
    match recipe {
        "herd lock" => within(must.told(Lock::builder(zk, path).herd()).acquire()).await.map(drop),
        "read" => within(must.told(RwLock::builder(zk, path)).read()).await.map(drop),
        "write" => within(must.told(RwLock::builder(zk, path)).write()).await.map(drop),
        "semaphore" => within(must.told(Semaphore::builder(zk, path)).acquire()).await.map(drop),
        "semaphore mutex" => {
            within(must.told(Semaphore::builder(zk, path)).acquire()).await.map(drop)
        }
        "cohort" => within(must.told(CohortLock::builder(zk, path)).acquire()).await.map(drop),
        "election" => within(must.told(Election::builder(zk, path)).campaign(b"")).await.map(drop),
        "group" => within(must.told(Group::builder(zk, path)).join(b"")).await.map(drop),
        "double barrier" => {
            within(must.told(DoubleBarrier::builder(zk, path)).enter()).await.map(drop)
        }
        "several locks" => {
            let elsewhere = Lock::new(
                zk,
                &format!("{}-elsewhere", path.replace('/', "-")).replacen('-', "/", 1),
            );
            within(MultiLock::of([elsewhere, must.told(lock())]).acquire()).await.map(drop)
        }
        "simple lock" => within(must.told(SimpleLock::builder(zk, path)).acquire()).await.map(drop),
        "barrier" => within(must.told(Barrier::builder(zk, path)).set()).await.map(drop),
        other => panic!("no recipe {other}"),
    }
}

fn missing(path: &str) -> Result<(), AcquireError> {
    Err(AcquireError::PathMissing { path: path.to_owned() })
}

/// Every recipe, on a path that was never there, is there, and is there no more.
#[test_with(on_each_release)]
async fn no_recipe_brings_a_required_path_back(setup: Setup) {
    let zk = setup.client().await;
    for recipe in RECIPES.into_iter().chain(NODES) {
        let object = setup.path(&recipe.replace(' ', "-"));
        let path = format!("{object}/lock");
        let is_node = NODES.contains(&recipe);
        let required = if is_node { &object } else { &path };
        assert_eq!(take(&zk, recipe, &path, Must::Path).await, missing(required), "{recipe}");
        assert_eq!(zk.exists(&object).await.unwrap(), None, "{recipe}");

        setup.outsider.create(&object, b"").await.unwrap();
        if !is_node {
            assert_eq!(take(&zk, recipe, &path, Must::Path).await, missing(&path), "{recipe}");
            assert_eq!(setup.outsider.children(&object).await.unwrap().0, [""; 0], "{recipe}");
            setup.outsider.create(&path, b"").await.unwrap();
        }
        for _ in 0..2 {
            assert_eq!(take(&zk, recipe, &path, Must::Path).await, Ok(()), "{recipe}");
        }
        // What was dropped is gone when this is answered.
        zk.sync("/").await.unwrap();
        setup.outsider.sync("/").await.unwrap();

        setup.outsider.delete_recursive(&object).await.unwrap();
        assert_eq!(take(&zk, recipe, &path, Must::Path).await, missing(required), "{recipe}");
        assert_eq!(setup.outsider.exists(&object).await.unwrap(), None, "{recipe}");
    }
}

/// The path is created, and nothing above it. Also where servers know no containers.
#[tokio::test]
async fn required_parent_is_not_created() {
    for release in Release::ALL {
        let mut config = Config::default();
        config.release = release;
        let server = TestServer::start_with(config).await.unwrap();
        let zk = Client::connect(&server.connect_string()).await.unwrap();
        for recipe in RECIPES.into_iter().chain(NODES) {
            let object = format!("/{}", recipe.replace(' ', "-"));
            let path = format!("{object}/lock");
            let on = format!("{recipe} on {release}");
            assert_eq!(take(&zk, recipe, &path, Must::Parent).await, missing(&object), "{on}");
            assert_eq!(zk.exists(&object).await.unwrap(), None, "{on}");
            zk.create(&object, b"").await.unwrap();
            for _ in 0..2 {
                assert_eq!(take(&zk, recipe, &path, Must::Parent).await, Ok(()), "{on}");
            }
            zk.delete_recursive(&object).await.unwrap();
            assert_eq!(take(&zk, recipe, &path, Must::Parent).await, missing(&object), "{on}");
            assert_eq!(zk.exists(&object).await.unwrap(), None, "{on}");
        }
    }
}

/// A missing path costs the one request that finds it out, whatever else is asked in the same round trip.
#[test_with(on_each_release)]
async fn a_missing_path_costs_one_create(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let path = setup.path("none/lock");
    let lock = Lock::builder(&zk, &path).require_path().build();
    assert_eq!(within(lock.acquire()).await.map(drop), missing(&path));
    assert_eq!(proxy.counts().requests(OpCode::CREATE2), 1);
    assert_eq!(proxy.counts().requests(OpCode::CREATE_CONTAINER), 0);
}

/// So does what is required above other nodes: no second round can find it, and none is made beside it.
#[test_with(on_each_release)]
async fn missing_object_costs_one_round_of_creates(setup: Setup) {
    let object = setup.path("none");
    let (path, elsewhere) = (format!("{object}/lock"), setup.path("one-behind-it"));
    let required = |zk: &Client| Lock::builder(zk, &path).require_path().build();
    for (what, creates, containers) in [("parent", 2, 1), ("permits", 2, 1), ("several", 0, 0)] {
        let (proxy, zk) = setup.proxied().await;
        let refused = match what {
            "parent" => {
                within(Lock::builder(&zk, &path).require_parent().build().acquire()).await.map(drop)
            }
            "permits" => {
                let permits = Semaphore::builder(&zk, &path).require_path().build();
                within(permits.acquire()).await.map(drop)
            }
            _ => {
                let others = Lock::new(&zk, &elsewhere);
                let all = MultiLock::of([required(&zk), others]);
                within(all.acquire()).await.map(drop)
            }
        };
        assert!(matches!(refused, Err(AcquireError::PathMissing { .. })), "{what}: {refused:?}");
        let counts = proxy.counts();
        let made = (counts.requests(OpCode::CREATE2), counts.requests(OpCode::CREATE_CONTAINER));
        assert!(made.0 <= creates && made.1 <= containers, "{what}: {made:?}");
        assert!(counts.requests(OpCode::MULTI) <= 1, "{what}");
    }
    assert_eq!(setup.outsider.exists(&elsewhere).await.unwrap(), None);
}

/// An object that is deleted between the first try, for which its path was missing, and the next one.
#[test_with(on_each_release)]
async fn acquire_does_not_recreate_its_object(setup: Setup) {
    let (proxy, zk) = setup.proxied().await;
    let object = setup.existing("object").await;
    let path = format!("{object}/lock");
    let second = proxy.on(Match::request(OpCode::CREATE_CONTAINER).once()).hold();
    let lock = Lock::builder(&zk, &path).require_parent().build();
    let delete = async {
        within(second.fired()).await;
        setup.outsider.delete(&object).await.unwrap();
        second.release();
    };
    let (acquired, ()) = tokio::join!(within(lock.acquire()), delete);
    assert_eq!(acquired.map(drop), missing(&object));
    assert_eq!(setup.outsider.exists(&object).await.unwrap(), None);
}

/// Those that wait when the object goes, with all that is below it, do not bring it back either.
#[test_with(on_each_release)]
async fn waiter_learns_of_its_objects_deletion(setup: Setup) {
    let object = setup.existing("object").await;
    let path = format!("{object}/lock");
    let (holder, waiter) = (setup.client().await, setup.client().await);
    let of = |zk| Lock::builder(zk, &path).require_parent().build();
    let guard = within(of(&holder).acquire()).await.unwrap();
    let waiting = tokio::spawn({
        let lock = of(&waiter);
        async move { lock.acquire().await.map(drop) }
    });
    joined(&setup.outsider, &path, 2).await;
    let names = setup.outsider.children(&path).await.unwrap().0;
    for name in &names {
        setup.outsider.delete(&format!("{path}/{name}")).if_exists().await.unwrap();
    }
    // Granted for a moment, or gone: one of both was deleted first.
    let _ = within(waiting).await.unwrap();
    drop(guard);
    setup.outsider.delete_recursive(&object).await.unwrap();
    assert_eq!(within(of(&waiter).acquire()).await.map(drop), missing(&object));
    assert_eq!(setup.outsider.exists(&object).await.unwrap(), None);
}

/// One that is about to take a permit: it has lost its place, and there are no paths that it might make.
#[test_with(on_each_release)]
async fn semaphore_ends_with_its_required_path(setup: Setup) {
    let path = setup.existing("object").await;
    let (proxy, zk) = setup.proxied().await;
    let semaphore = Semaphore::builder(&zk, &path).require_path().build();
    let trade = proxy.on(Match::request(OpCode::MULTI).once()).hold();
    let delete = async {
        within(trade.fired()).await;
        setup.outsider.delete_recursive(&path).await.unwrap();
        trade.release();
    };
    let (permit, ()) = within(async { tokio::join!(semaphore.acquire(), delete) }).await;
    assert_eq!(permit.map(drop), Err(AcquireError::NodeDeleted));
    assert_eq!(setup.outsider.exists(&path).await.unwrap(), None);
}
