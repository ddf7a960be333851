use std::{collections::BTreeMap, time::Duration};

use crate::release::Release;

/// How a simulated ensemble is set up. The defaults are those of a server's sample configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Number of voting members; one is a standalone server.
    pub members: usize,
    /// Whose behaviour to show, where releases differ.
    pub release: Release,
    /// Unit of the servers' timers. Sessions expire at multiples of it.
    pub tick: Duration,
    /// Shortest session timeout that is granted. By default two ticks.
    pub session_timeout_min: Option<Duration>,
    /// Longest session timeout that is granted. By default twenty ticks.
    pub session_timeout_max: Option<Duration>,
    /// Longest request taken, in bytes, without its length prefix.
    pub request_len_max: usize,
    /// Whether a member without a quorum serves reads (`readonlymode.enabled`). It opens new sessions for that, as real ones
    /// do from 3.7 on only if `localSessionsEnabled` is set too. Up to 3.6 it also takes the sessions that the other members
    /// know, and ends those, for itself alone, of which it has not heard in their timeout.
    pub read_only_mode: bool,
    /// Whether nodes may have a time to live (`zookeeper.extendedTypesEnabled`).
    pub extended_types: bool,
    /// Whether quotas refuse writes (`enforceQuota`) instead of only being there. Servers before 3.7 never refuse one.
    pub enforce_quota: bool,
    /// `DigestAuthenticationProvider.superDigest`: the identity that may do everything, as `user:base64(sha1(…))`.
    pub super_digest: Option<String>,
    /// Whether clients can change which servers belong to the ensemble (`reconfigEnabled`).
    pub reconfig: bool,
    /// The ensemble's configuration, as lines such as `server.1=host:2888:3888:participant;2181`: server 1 is the first
    /// member. Without lines every member votes. A member that no line names follows without a vote, and lines that cannot be
    /// read name none.
    pub servers: Vec<String>,
    /// Users and passwords for SASL's `DIGEST-MD5`; without users there is no SASL.
    pub sasl_users: BTreeMap<String, String>,
    /// Whether access control lists can name certificates (`authProvider.x509`), as they can where TLS is set up.
    pub x509: bool,
    /// Whether only clients with a SASL identity are served (`enforce.auth.schemes=sasl`). Servers know it since 3.6; here all
    /// releases do.
    pub enforce_sasl: bool,
    /// How often containers and nodes with a time to live are looked at: at most each millisecond.
    pub container_check_interval: Duration,
    /// How long a new leader takes to be found.
    pub election: Duration,
    /// How long a member that is cut off from the others goes on serving its clients.
    pub sync_limit: Duration,
    /// How far each follower lags behind what is committed.
    pub lag: Duration,
    /// How long what servers that [listen](super::Listening) say takes to reach a client.
    pub latency: Duration,
    /// Wall-clock time at [`zk_proto::Time::ZERO`], in milliseconds since 1970.
    pub epoch_millis: i64,
    /// Whether to remember every transaction, for tests that replay history.
    pub keep_history: bool,
    /// Where session numbers begin. Servers that [listen](super::Listening) add something of their own to it.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            members: 1,
            release: Release::NEWEST,
            tick: Duration::from_secs(2),
            session_timeout_min: None,
            session_timeout_max: None,
            request_len_max: zk_proto::frame::LEN_REQUEST_MAX,
            read_only_mode: false,
            extended_types: false,
            enforce_quota: false,
            super_digest: None,
            reconfig: false,
            servers: Vec::new(),
            sasl_users: BTreeMap::new(),
            x509: false,
            enforce_sasl: false,
            container_check_interval: Duration::from_secs(60),
            election: Duration::from_millis(300),
            sync_limit: Duration::from_secs(10),
            lag: Duration::ZERO,
            latency: Duration::ZERO,
            epoch_millis: 1_700_000_000_000,
            keep_history: false,
            seed: 0,
        }
    }
}
