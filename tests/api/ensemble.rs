//! Ensembles whose members change, and clients that go along.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use zk_client::{
    Client, ConnectOptions, Connected, CreateMode, EnsembleConfig, EventType, Rejection,
    SessionObserver, WriteError, digest_id,
};
use zk_testkit::real::{Ensemble, Release};
use zk_tests::patience::closed;

/// Who may change members.
const ADMIN: (&str, &str) = ("super", "secret");

/// Longer than anything takes here: no session may be lost.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Which server a session has, as reported to its observer.
#[derive(Default)]
struct Server(Mutex<String>);

impl SessionObserver for Server {
    fn connected(&self, connected: &Connected<'_>) {
        connected.server.clone_into(&mut self.0.lock().unwrap());
    }
}

impl Server {
    fn name(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// In ticks of 200 ms: a member that a busy machine keeps waiting does not leave its leader, and its clients with it.
const SYNC_LIMIT: u32 = 150;

async fn that_takes_others(release: Release) -> Ensemble {
    let admin = digest_id(ADMIN.0, ADMIN.1).id.lossy().into_owned();
    Ensemble::builder()
        .release(release)
        .config("reconfigEnabled=true")
        .config("standaloneEnabled=false")
        .sync_limit(SYNC_LIMIT)
        .property("zookeeper.DigestAuthenticationProvider.superDigest", admin)
        .start()
        .await
        .unwrap()
}

fn options(servers: &str) -> ConnectOptions {
    ConnectOptions::new(servers).unwrap().session_timeout(SESSION_TIMEOUT)
}

fn numbers(config: &EnsembleConfig) -> Vec<i64> {
    let mut numbers: Vec<_> = config.members.iter().map(|member| member.id).collect();
    numbers.sort_unstable();
    numbers
}

/// A client of one server, and what tells which one it has.
async fn observed(servers: &str, seed: u64) -> (Client, Arc<Server>) {
    let server = Arc::new(Server::default());
    let zk = options(servers).observer(server.clone()).seed(seed).connect().await.unwrap();
    (zk, server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_follow_membership_changes() {
    for release in [Release::V3_5, Release::V3_9] {
        println!("on three of {release}");
        let ensemble = that_takes_others(release).await;
        let leader = ensemble.wait_for_all().await.unwrap();
        let leaving = (leader + 1) % ensemble.len();
        let number = i64::try_from(leaving).unwrap() + 1;
        let others: Vec<i64> = (1..=3).filter(|other| *other != number).collect();

        let admin = options(&ensemble.connect_string());
        let admin = admin.auth("digest", format!("{}:{}", ADMIN.0, ADMIN.1));
        let admin = admin.connect().await.unwrap();
        let (follower, server) = observed(&ensemble.connect_string_of(&[leaving]), 1).await;
        let id = follower.session().id();
        let mode = CreateMode::Ephemeral;
        let ephemeral = follower.create("/here", b"").mode(mode).await.unwrap();
        let ((before, stat), changed) = follower.config().watch().await.unwrap();
        assert_eq!(numbers(&before), [1, 2, 3]);
        // In-process servers imitate that: the first leader begins with the version that is none of a change.
        let first = before.version.unwrap();
        assert_eq!((first, first.0 & 0xffff_ffff), (stat.mzxid, 0));
        assert!(first.0 > 0 && stat.version == -1);
        assert!(before.members.iter().all(|member| member.votes));

        // It leaves, by the version that was read; an older version is refused, and so is an unauthorized client.
        let stranger = follower.reconfig().leave(number).await;
        assert_eq!(stranger, Err(WriteError::Rejected(Rejection::NoAuth)));
        let version = before.version.unwrap();
        let (without, _) = admin.reconfig().leave(number).version(version).await.unwrap();
        assert_eq!(numbers(&without), others);
        assert!(without.version.unwrap() > version);
        let late = admin.reconfig().leave(others[0]).version(version).await;
        assert_eq!(late, Err(WriteError::Rejected(Rejection::BadVersion)));
        let all = before.members.iter().map(|member| (member.id, &*member.spec));
        let late = admin.reconfig().members(all).version(version).await;
        assert_eq!(late, Err(WriteError::Rejected(Rejection::BadVersion)));

        // The watch fires, and what is read then names those to go to.
        let event = changed.await.unwrap();
        assert_eq!(event.kind, EventType::NODE_DATA_CHANGED);
        assert_eq!(event.path, "/zookeeper/config");
        let ((now, _), changed) = follower.config().watch().await.unwrap();
        assert_eq!(now, without);
        let left = ensemble.member(leaving).connect_string();
        assert_eq!(server.name(), left);
        follower.update_servers(&now.connect_string()).unwrap();
        follower.sync("/").await.unwrap();
        assert_ne!(server.name(), left);
        let epoch = follower.session().epoch();
        assert_eq!((follower.session().id(), epoch), (id, 2));

        // The one that has left may be silent: no client needs it.
        ensemble.pause(leaving).unwrap();
        follower.set("/here", b"there").await.unwrap();
        assert_eq!(admin.sync("/").await, Ok(()));
        ensemble.resume(leaving).unwrap();

        // It joins again as it was; both hear of it, over whatever server they have.
        let spec = &before.members.iter().find(|member| member.id == number).unwrap().spec;
        let (again, _) = admin.reconfig().join(number, spec).await.unwrap();
        assert_eq!(numbers(&again), [1, 2, 3]);
        // Members keep their configuration in a file of its own, and may know it before the transactions up to it: what
        // they said of it then is reported once more by the server that the session moved to.
        let mut changed = changed;
        loop {
            changed.await.unwrap();
            let ((now, _), next) = follower.config().watch().await.unwrap();
            if now == again {
                break;
            }
            assert_eq!(now, without);
            changed = next;
        }
        ensemble.wait_for_all().await.unwrap();

        // It counts: with it and one other there is a quorum.
        let third = (0..3).find(|other| *other != leaving && *other != leader).unwrap();
        ensemble.kill(third).await.unwrap();
        let of_others = ensemble.connect_string_of(&[leaving, leader]);
        follower.update_servers(&of_others).unwrap();
        admin.update_servers(&of_others).unwrap();
        let stat = follower.set("/here", b"again").version(1).await.unwrap();
        assert_eq!((stat.version, stat.ephemeral_owner), (2, id));
        assert_eq!(stat.czxid, ephemeral.stat.czxid, "the session has lived on");
        admin.sync("/").await.unwrap();
        let found = admin.exists("/here").await.unwrap();
        assert_eq!(found, Some(stat));
        closed(&follower).await;
        closed(&admin).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_rebalance_to_a_new_member() {
    const CLIENTS: u64 = 60;
    let ensemble = Ensemble::builder().release(Release::V3_9).sync_limit(SYNC_LIMIT);
    let ensemble = ensemble.start().await.unwrap();
    let two = ensemble.connect_string_of(&[0, 1]);
    let new = ensemble.member(2).connect_string();
    let mut clients = Vec::new();
    for seed in 0..CLIENTS {
        let (zk, server) = observed(&two, seed).await;
        let first = (zk.session().id(), server.name());
        clients.push((zk, server, first));
    }
    let moved = async |servers: &str| {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for (zk, ..) in &clients {
            zk.update_servers(servers).unwrap();
        }
        for (zk, server, (id, _)) in &clients {
            zk.sync("/").await.unwrap();
            assert_eq!(zk.session().id(), *id);
            *found.entry(server.name()).or_default() += 1;
        }
        found
    };
    // A third each, by chance; the seeds are fixed.
    let spread = moved(&ensemble.connect_string()).await;
    assert!(spread.values().all(|clients| (10..=30).contains(clients)), "{spread:?}");
    assert_eq!(spread.len(), 3);
    for (zk, server, (_, first)) in &clients {
        let has_moved = server.name() != *first;
        assert_eq!(server.name() == new, has_moved, "only to the new one");
        assert_eq!(zk.session().epoch(), 1 + u64::from(has_moved));
    }
    // All clients of removed servers move; no client of the other does.
    let epochs: Vec<_> = clients.iter().map(|(zk, ..)| zk.session().epoch()).collect();
    let was_there: Vec<_> = clients.iter().map(|(_, server, _)| server.name() == new).collect();
    assert_eq!(moved(&new).await, BTreeMap::from([(new.clone(), CLIENTS)]));
    for (((zk, ..), before), was_there) in clients.iter().zip(epochs).zip(was_there) {
        assert_eq!(zk.session().epoch(), before + u64::from(!was_there));
    }
}
