//! A ZooKeeper client for tokio that says what it knows and what it does not.
//!
//! ```no_run
//! # async fn example() -> Result<(), zk_client::Error> {
//! use zk_client::{Client, CreateMode, Rejection, WriteError};
//!
//! let zk = Client::connect("zk1:2181,zk2:2181/app").await?;
//!
//! // Every operation is a builder. Await it...
//! let ((config, _stat), changed) = zk.get("/config").watch().await?;
//! // ...or have it under way now, in this order, and await the results later.
//! let a = zk.get("/a").submit();
//! let b = zk.get("/b").submit();
//! let (a, b) = (a.await?, b.await?);
//!
//! // Writes tell apart: rejected, certainly not applied, and in doubt.
//! match zk.create("/jobs/1", b"payload").mode(CreateMode::Ephemeral).await {
//!     Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => {}
//!     Err(WriteError::InDoubt(_)) => {
//!         // From here on a read is conclusive.
//!         zk.settle().await?;
//!         let _created = zk.exists("/jobs/1").await?.is_some();
//!     }
//!     Err(error) => return Err(error.into()),
//! }
//! # drop((config, changed, a, b));
//! # Ok(())
//! # }
//! ```
//!
//! Changes are heard of by watches that fire [once](Get::watch), by [streams](Client::watch) of those that go on, or by a
//! [`Cache`] that keeps a local copy and always converges. Requests wait for connections and for room unless
//! [told](CallOptions) not to, and in the order of their submission.
//!
//! A [`Client`] is one session. When the session is over, the client is too: it never slips a new session
//! under its users, whose ephemeral nodes and locks went with the old one. Connections, on the other
//! hand, come and go: reads are sent again, requests that were not sent wait, watches are armed again.
//!
//! `docs/client.md` of the repository is a guide to all of this, in the order in which one meets it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod asked;
mod attempt;
mod cache;
mod call;
mod call_options;
mod chroot;
mod cleanup;
mod client;
mod clock;
mod complaints;
mod create;
mod create_mode;
mod driver;
mod error;
mod frames;
mod histogram;
#[cfg(feature = "digest-id")]
mod identity;
mod ids;
mod inbox;
mod level;
mod link;
mod node;
mod observe;
mod operations;
mod options;
mod parents;
mod pending;
mod protected;
mod resolve;
mod retry;
mod sasl;
mod servers;
mod session;
mod stats;
mod supervise;
mod sweep;
mod ticket;
#[cfg(feature = "tls")]
mod tls;
mod transaction;
mod tree;
mod watch;

pub use bytes;
#[cfg(feature = "tls")]
pub use rustls;
#[doc(hidden)]
pub use zk_proto::planted;
pub use zk_proto::{
    Acl, AclList, ClientInfo, ErrorCode, EventType, Id, OpCode, Perms, Secret, SessionId, Stat,
    Text, Xid, Zxid,
    path::{PathError, PathFault, ZkPath, ancestors, join, name, parent, parse_sequence},
    session::{
        Costly, Credentials, Lease, LinkError, SaslFault, SaslSaid, SaslStep, TicketFault, TlsFault,
    },
};

#[cfg(feature = "digest-id")]
pub use self::identity::digest_id;
#[cfg(feature = "sasl-digest")]
pub use self::sasl::DigestMd5;
#[cfg(feature = "sasl-gssapi")]
pub use self::sasl::Gssapi;
#[cfg(feature = "tls")]
pub use self::tls::{TlsConnect, TlsError, TlsOptions};
pub use self::{
    cache::{Cache, CacheBuilder, CacheEvent, CacheEvents, CacheState, CachedNode},
    call_options::CallOptions,
    client::{Client, CloseError, Cork},
    clock::{Clock, TokioClock},
    create::{Create, CreateOrExists, CreateProtected, Created, PendingCreate},
    create_mode::CreateMode,
    error::{
        Cause, ConnectError, Error, InDoubt, ReadError, Rejection, ServersError, SessionEnd,
        WriteError,
    },
    histogram::Histogram,
    link::{Connect, Dial, Stream, TcpConnect},
    node::OwnedNode,
    observe::{Answered, Connected, Ending, Observer},
    operations::{
        AddAuth, ChildNames, Children, ChildrenPacked, ChildrenWatched, Config, ConfigWatched,
        Delete, DeleteIfExists, DescendantCount, EnsembleConfig, Ephemerals, Exists, ExistsWatched,
        Get, GetAcl, GetWatched, Member, MultiRead, ReadResult, Reconfig, Set, SetAcl, Sync,
        WhoAmI,
    },
    options::{ConnectOptions, SessionTask},
    pending::Pending,
    protected::{CreateAllProtected, PendingNodes},
    resolve::{Lookup, Resolve, ResolvedConnect, SystemResolver},
    retry::{Retry, SafeToRetry},
    sasl::{SaslExchange, SaslMechanism, SaslThought},
    session::{LeaseKeeper, Session, SessionState},
    stats::Stats,
    supervise::{Interruption, Supervise, supervise},
    transaction::{Multi, MultiError, MultiOutcome, OpResult},
    tree::{DeleteRecursive, DeleteRecursiveError, PendingDelete},
    watch::{
        AddWatch, CheckWatches, NodeEvent, Resync, Watch, WatchEnd, WatchItem, WatchKind,
        WatchMode, WatchStream,
    },
};
