//! Distributed locks on ZooKeeper, with fencing tokens and honest losses.
//!
//! ```no_run
//! # async fn run_report(_: zk_locks::FencingToken) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use zk_locks::{Client, Lock};
//!
//! let zk = Client::connect("zk1:2181,zk2:2181").await?;
//! let lock = Lock::new(&zk, "/locks/report");
//!
//! let guard = lock.acquire().await?;
//! // Stops as soon as the lock is not certain any more; the token is for what the report writes to.
//! guard.scope(run_report(guard.token())).await?;
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a lock promises
//!
//! * Grants are in the order of asking, and every grant has a larger [`FencingToken`] than the one before.
//! * An [`acquire`](Lock::acquire) that is dropped, fails or times out leaves no node behind; neither does a
//!   [`Guard`] that is dropped.
//! * A holder learns of its loss: [`Guard::lost`], [`Guard::status`], [`Guard::scope`].
//!
//! What no lock promises: that a process stopped at the wrong moment does not act on a lock that it has lost meanwhile.
//! Only the resource can refuse it, by the token.
//!
//! The [`guide`] shows how to use the recipes.
//!
//! # Sharing locks with other implementations
//!
//! Contenders of other implementations can share locks on one path: [`Layout`] lists which, and which names are seen,
//! waited for and ignored; [`ForeignNodes`] configures how to treat all others. Replacements for the recipes of Curator,
//! kazoo, etcd and Consul, and for classes from articles, are in [`guide::migrating`].

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod barrier;
#[cfg(feature = "blocking")]
#[cfg_attr(docsrs, doc(cfg(feature = "blocking")))]
pub mod blocking;
mod builder;
mod cohort;
mod contender;
mod durable;
mod election;
mod entry;
mod error;
mod follow;
mod front;
mod group;
mod guard;
mod identity;
mod layout;
mod lock;
#[cfg(feature = "metrics")]
pub mod metrics;
mod multi_lock;
mod observe;
mod persistent_node;
mod queue;
mod quorum;
mod rw_lock;
mod semaphore;
mod simple_lock;
mod ticket;
mod together;
mod token;
mod wait_queue;

#[doc = include_str!("guide.md")]
pub mod guide {
    #[doc = include_str!("guide/migrating.md")]
    pub mod migrating {}
}

pub use zk_client::{
    self, Acl, AclList, CallOptions, Cause, Client, ConnectError, ConnectOptions, Histogram, Id,
    Interruption, Lease, MultiError, OpResult, Perms, ReadError, Rejection, Request, Session,
    SessionEnd, SessionId, SessionState, Stat, Supervise, WatchEnd, WriteError, Zxid,
    path::PathError,
};

pub use self::{
    barrier::{Barrier, DoubleBarrier, Participation},
    builder::Builder,
    cohort::{CohortGuard, CohortLock},
    contender::Contender,
    durable::{DurableGuard, DurableHolder, DurableLock},
    election::{Election, LatchState, LeaderLatch, Leadership},
    entry::Kind,
    error::{AcquireError, CheckError, Error, Lost, ReleaseError},
    follow::Follow,
    group::{Group, GroupMember},
    guard::{Guard, Guards, SharedGuard, Status},
    layout::{ForeignNodes, Layout, Names},
    lock::Lock,
    multi_lock::MultiLock,
    observe::{Grant, LockObserver, Metrics, Release},
    persistent_node::{NodeState, PersistentNode},
    queue::Queue,
    rw_lock::{ConvertError, ReadGuard, RwLock, WriteGuard},
    semaphore::Semaphore,
    simple_lock::{SimpleGuard, SimpleLock},
    ticket::Ticket,
    token::FencingToken,
};
