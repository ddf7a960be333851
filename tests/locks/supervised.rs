//! Services that outlive their sessions: what they register comes back with each.

use std::{convert::Infallible, time::Duration};

use tokio::sync::mpsc;
use zk_client::{Cache, Client, Supervise};
use zk_locks::{Election, Group, LatchState, Lock, Lost, SessionId};
use zk_tests::test_with;

use crate::support::{
    Stage, emptied, end_session_behind, on_each_release_threaded, options_for, within,
};

/// How often the session ends.
const ENDS: usize = 10;

/// Everything that a service may hold, registered with one client: reports when all of it is there.
async fn serve(
    zk: Client,
    path: &str,
    there: mpsc::UnboundedSender<Client>,
) -> Result<Infallible, Lost> {
    let at = |name: &str| format!("{path}/{name}");
    let group = Group::new(&zk, &at("group"));
    let _member = group.join(b"service").await.unwrap();
    let latch = Election::new(&zk, &at("leader")).latch(b"service");
    let mut states = latch.subscribe();
    states.wait_for(|state| matches!(state, LatchState::Leading { .. })).await.unwrap();
    let guard = Lock::new(&zk, &at("lock")).acquire().await.unwrap();
    let cache = Cache::subtree(&zk, &at("config")).start().unwrap();
    cache.ready().await.unwrap();
    assert!(cache.get(&at("config/a")).is_some());
    there.send(zk.clone()).unwrap();
    // With the session's end it is dropped, or hears of that just before.
    Err(guard.lost().await)
}

/// Ten times, the session ends on the server as expiry ends it.
#[test_with(on_each_release_threaded)]
async fn registrations_return_after_ten_expiries(stage: Stage) {
    let path = stage.existing("service").await;
    stage.outsider.create(&format!("{path}/config/a"), b"1").parents().await.unwrap();
    let (there, mut registered) = mpsc::unbounded_channel();
    let proxy = stage.proxy().await;
    let (at, options) = (path.clone(), options_for(&proxy));
    let supervised = tokio::spawn(async move {
        Supervise::new(options)
            .pause(Duration::from_millis(1))
            .pause_max(Duration::from_millis(20))
            .run(|zk| {
                let (at, there) = (at.clone(), there.clone());
                async move { serve(zk, &at, there).await }
            })
            .await
    });
    let mut sessions: Vec<SessionId> = Vec::new();
    for _ in 0..=ENDS {
        let zk = within(registered.recv()).await.unwrap();
        let id = zk.session().id();
        assert!(!sessions.contains(&id), "a session that has ended serves again");
        sessions.push(id);
        drop(zk);
        // Once each, and of the present session: whatever was of the last one has gone with it.
        stage.outsider.sync("/").await.unwrap();
        for name in ["group", "leader", "lock"] {
            let at = format!("{path}/{name}");
            let (names, _) = stage.outsider.children(&at).await.unwrap();
            assert_eq!(names.len(), 1, "{at}: {names:?}");
            let (_, stat) = stage.outsider.get(&format!("{at}/{}", names[0])).await.unwrap();
            assert_eq!(stat.ephemeral_owner, id, "{at}");
        }
        if sessions.len() <= ENDS {
            end_session_behind(&stage, &proxy).await;
            proxy.accept_connections().await;
        }
    }
    supervised.abort();
    assert!(within(supervised).await.unwrap_err().is_cancelled());
    for name in ["group", "leader", "lock"] {
        emptied(&stage.outsider, &format!("{path}/{name}")).await;
    }
}
