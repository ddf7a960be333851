//! A ZooKeeper client for tokio whose results distinguish what is known from what is in doubt.
//!
//! ```no_run
//! # async fn example() -> Result<(), zk_client::Error> {
//! use zk_client::{Client, CreateMode, Rejection, WriteError};
//!
//! let zk = Client::connect("zk1:2181,zk2:2181/app").await?;
//!
//! // Every operation is a request. Await it...
//! let ((config, _stat), changed) = zk.get("/config").watch().await?;
//! // ...or submit it now, in this order, and await the results later.
//! let a = zk.get("/a").submit();
//! let b = zk.get("/b").submit();
//! let (a, b) = (a.await?, b.await?);
//!
//! // Errors of writes distinguish: rejected, certainly not applied, and in doubt.
//! match zk.create("/jobs/1", b"payload").mode(CreateMode::Ephemeral).await {
//!     Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => {}
//!     Err(WriteError::InDoubt { .. }) => {
//!         // From here on a read is conclusive.
//!         zk.resolve_in_doubt().await?;
//!         let _created = zk.exists("/jobs/1").await?.is_some();
//!     }
//!     Err(error) => return Err(error.into()),
//! }
//! # drop((config, changed, a, b));
//! # Ok(())
//! # }
//! ```
//!
//! Changes are reported by watches that fire [once](Request::watch), by persistent [streams](Client::watch), or by a
//! [`Cache`], a local copy that always converges. Requests wait for connections and for room unless
//! [configured](CallOptions) otherwise, in the order of their submission.
//!
//! A [`Client`] is one session. When the session ends, the client does too: it never replaces the session behind the
//! application's back, since ephemeral nodes and locks went with the old one. Connections may be lost and
//! re-established: the client repeats reads, keeps unsent requests, and re-arms watches.
//!
//! The [`guide`] goes step by step from connecting to observing.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod cache;
mod carry;
mod chroot;
mod client;
mod clock;
mod driver;
mod error;
#[cfg(feature = "digest-id")]
mod identity;
mod ids;
mod net;
mod queue;
mod report;
mod request;
mod watch;

#[doc = include_str!("guide.md")]
pub mod guide {
    #[doc = include_str!("guide/compatibility.md")]
    pub mod compatibility {}
    #[doc = include_str!("guide/errors.md")]
    pub mod errors {}
    #[doc = include_str!("guide/security.md")]
    pub mod security {}
}

/// What sessions do, in numbers, for the recorder of the crate `metrics` that the program has installed.
///
/// Every session reports by itself; [`ConnectOptions::metrics_name`] tells sessions of one program apart. Install the
/// recorder first: a session that began without one reports nowhere.
#[cfg(feature = "metrics")]
pub mod metrics {
    pub use crate::report::metrics::{
        list::LIST,
        metric::{Kind, Metric},
    };
}

/// Paths of nodes.
pub mod path {
    pub use zk_proto::path::{
        PathError, PathFault, ZkPath, ancestors, join, name, parent, parse_sequence,
    };
}

pub use bytes;
pub use futures_core::future::BoxFuture;
#[cfg(feature = "tls")]
pub use rustls;
pub use zk_proto::{
    Acl, AclList, ClientInfo, ErrorCode, EventType, Id, OpCode, Perms, Secret, SessionId, Stat,
    Text, Xid, Zxid,
    session::{Costly, Credentials, Lease, SaslInput},
};

#[cfg(feature = "digest-id")]
pub use self::identity::digest_id;
#[cfg(feature = "tls")]
pub use self::net::tls::{TlsConnect, TlsError, TlsOptions};
pub use self::{
    cache::{Cache, CacheBuilder, CacheEvent, CacheEvents, CacheState, CachedNode},
    carry::{
        lease_keeper::LeaseKeeper, node::OwnedNode, published::SessionState, session::Session,
    },
    client::{ConnectOptions, Error, Interruption, Retry, SafeToRetry, Supervise},
    error::{
        Cause, ConnectError, LinkError, MultiError, ReadError, Rejection, SaslFault, SessionEnd,
        TlsFault, WriteError,
    },
    net::{
        connect::{Connect, Transport},
        resolve::ResolvedConnect,
        sasl::*,
    },
    report::{
        histogram::Histogram,
        observe::{Answered, Connected, Ending, SessionObserver},
        stats::Stats,
    },
    request::{
        ChildNames, Create, CreateAllProtected, CreateMode, Created, EnsembleConfig,
        EnsembleMember, OpResult, ReadResult, Request, WatchKind,
        call_options::CallOptions,
        client::{Client, Cork},
        pending::Pending,
        watch_stream::WatchStream,
    },
    watch::{NodeEvent, Resync, Watch, WatchEnd, WatchItem},
};
