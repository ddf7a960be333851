//! Commands that start a server.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use clap::Args as ClapArgs;
use zk_client::path::ZkPath;
use zk_testkit::real::Release;

use super::OutputArgs;
use crate::duration;

/// See fifty contenders take one lock in turn, and check that they do
///
/// Every contender has a session of its own; all ask for one lock at the same moment. What the lock
/// protects is a resource that remembers the largest fencing token it has seen, refuses smaller ones, and
/// notices when two are in it at once. In the end: a timeline of who held the lock when, and a verdict on
/// exclusion, order, tokens, nodes left behind, and requests per acquisition, counted at a proxy: every
/// request frame from the start signal to the last release, except heartbeats.
///
/// Without --server and --real, the server that is part of this program is used, on the loopback interface.
/// $ZK_SERVER is ignored, so that a demo does not run on servers in production by accident.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// A server to use instead of starting one
    #[arg(long, short, value_name = "HOST:PORT", conflicts_with_all = ["install", "real"])]
    pub(crate) server: Option<String>,
    /// Start a real ZooKeeper, which needs Java
    #[arg(long)]
    pub(crate) real: bool,
    /// How many ask for the lock
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) contenders: u16,
    /// How often each of them does
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) rounds: u16,
    /// How long each holds it (a bare number means milliseconds)
    #[arg(long, value_name = "MS", value_parser = duration::millis, default_value = "30ms")]
    pub(crate) hold: Duration,
    /// The lock's path; must have no children
    #[arg(long, short, value_name = "PATH", default_value = "/zk-demo")]
    pub(crate) path: ZkPath,
    /// Start a real ZooKeeper, and install it with the system's packages if there is none (as does
    /// ZK_TESTKIT_INSTALL=1)
    #[arg(long)]
    pub(crate) install: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Run a ZooKeeper for tests and experiments; it keeps nothing
///
/// A server that speaks ZooKeeper's whole client protocol, from this program alone: no Java, no files, up
/// in a few milliseconds. Everything is in memory, and gone when it ends. It answers as a server of the
/// chosen release does, but it is no replacement for one: there is no disk, no replication, no limit on
/// who may connect.
///
/// Its address is the first line of standard output once clients can connect. INT or TERM ends it.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
#[command(after_help = "Sessions, ensembles, security, latency: zk help serving")]
pub(crate) struct ServeArgs {
    /// Port to listen on; 0 for any free one. Further members take the ports behind it, or those that are named
    #[arg(long, short, value_name = "N", value_delimiter = ',', default_value = "2181")]
    pub(crate) port: Vec<u16>,
    /// Address to listen on. Every process that can reach it can read and write everything
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// Members of an ensemble that listen side by side; as many as there are ports, if not said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) members: Option<u16>,
    /// Which release to behave as
    #[arg(long, value_name = "LINE", default_value_t = Release::NEWEST)]
    pub(crate) release: Release,
    /// Unit of the server's time: sessions end at multiples
    #[arg(long, value_name = "MS", value_parser = duration::whole_millis, default_value = "2s")]
    pub(crate) tick: Duration,
    /// Allow nodes with a time to live
    #[arg(long)]
    pub(crate) ttl: bool,
    /// Take commands from standard input, and answer each with a line: stop N, start N (members, from 0),
    /// cut N, heal N (the network between a member and the others), drop (all connections), expire SESSION, sessions
    /// (those that live), add ID PORT (one more server, for clients to let it join)
    #[arg(long)]
    pub(crate) control: bool,
    #[command(flatten)]
    pub(crate) setup: ServeSetup,
}

/// What few want of `zk serve`, and what `zk help serving` is about.
#[cfg(unix)]
#[derive(Debug, ClapArgs)]
pub(crate) struct ServeSetup {
    /// Shortest session timeout granted; two ticks if not said
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "MS", value_parser = duration::whole_millis)]
    pub(crate) min_session_timeout: Option<Duration>,
    /// Longest session timeout granted; twenty ticks if not said
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "MS", value_parser = duration::whole_millis)]
    pub(crate) max_session_timeout: Option<Duration>,
    /// Serve reads on members without a quorum, to clients that are content with that
    #[arg(long, hide_short_help = true, hide_long_help = true)]
    pub(crate) read_only: bool,
    /// How often containers and nodes with a time to live are looked at
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "MS", value_parser = duration::whole_millis, default_value = "60s")]
    pub(crate) container_check: Duration,
    /// How long answers take on the way to clients
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "MS", value_parser = duration::millis, default_value = "0s")]
    pub(crate) latency: Duration,
    /// Super user, as user:base64(sha1(user:password))
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "DIGEST")]
    pub(crate) super_digest: Option<String>,
    /// Let clients change which servers belong to the ensemble
    #[arg(long, hide_short_help = true, hide_long_help = true)]
    pub(crate) reconfig: bool,
    /// Server of the ensemble's configuration, such as server.1=zk1:2888:3888:observer;2181; may be repeated. Every member
    /// votes if none is named, otherwise those that are
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "LINE")]
    pub(crate) server: Vec<String>,
    /// User that SASL's DIGEST-MD5 knows; may be repeated
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "USER:PASSWORD")]
    pub(crate) sasl_user: Vec<String>,
    /// Serve only clients that have proved who they are by SASL
    #[arg(long, hide_short_help = true, hide_long_help = true)]
    pub(crate) require_sasl: bool,
    /// Ports with TLS, one for each member; 0 for any free one
    #[arg(long, hide_short_help = true, hide_long_help = true, value_name = "N", value_delimiter = ',', requires_all = ["tls_cert", "tls_key"])]
    pub(crate) secure_port: Vec<u16>,
    /// Certificate to show on ports with TLS, in PEM
    #[arg(
        long,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "FILE",
        requires = "secure_port"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the certificate, in PEM
    #[arg(
        long,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "FILE",
        requires = "secure_port"
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// Authorities whose certificate TLS clients must show, in PEM
    #[arg(
        long,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "FILE",
        requires = "secure_port"
    )]
    pub(crate) tls_ca: Option<PathBuf>,
}
