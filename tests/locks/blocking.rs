//! Locks for threads without a runtime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::spawn_blocking;
use zk_locks::{AcquireError, ConnectOptions, blocking::Session};

use crate::support::{Stage, emptied, on_each_release, within};

fn connect(servers: &str) -> Session {
    Session::connect(ConnectOptions::new(servers).unwrap()).unwrap()
}

#[tokio::test]
async fn threads_exclude_each_other_and_leave_nothing_behind() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("threads").await;
        let busy = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (servers, path, busy) = (stage.servers(), path.clone(), busy.clone());
                spawn_blocking(move || {
                    let session = connect(&servers);
                    for _ in 0..5 {
                        let guard = session.lock(&path).acquire().unwrap();
                        assert!(!busy.swap(true, Ordering::SeqCst));
                        guard.check().unwrap();
                        assert!(busy.swap(false, Ordering::SeqCst));
                        guard.release().unwrap();
                    }
                })
            })
            .collect();
        for thread in threads {
            within(thread).await.unwrap();
        }
        emptied(&stage.outsider, &path).await;
    })
    .await;
}

#[tokio::test]
async fn a_guard_can_be_dropped_last_and_anywhere_and_its_node_goes() {
    on_each_release(async |stage: Stage| {
        let path = stage.existing("last").await;
        let (servers, of) = (stage.servers(), path.clone());
        let acquired = spawn_blocking(move || {
            let session = connect(&servers);
            let lock = session.lock(&of);
            let guard = lock.acquire().unwrap();
            assert!(lock.try_acquire().unwrap().is_none());
            let late = lock.acquire_timeout(Duration::from_millis(1)).unwrap_err();
            assert_eq!(late, AcquireError::TimedOut);
            assert_eq!(guard.lost_within(Duration::from_millis(1)), None);
            guard
        });
        drop(within(acquired).await.unwrap());
        emptied(&stage.outsider, &path).await;
    })
    .await;
}
