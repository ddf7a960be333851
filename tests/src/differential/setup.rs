//! Settings that both sides share.

use std::time::Duration;

use zk_testkit::{
    real::{Error, Release, Server},
    server::{Config, Ensemble},
};

/// How a server is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Its release.
    pub release: Release,
    /// Whether nodes may have a time to live.
    pub extended_types: bool,
    /// Whether quotas refuse writes.
    pub enforce_quota: bool,
    /// The unit of its time.
    pub tick: Duration,
    /// The shortest session.
    pub session_min: Duration,
    /// How often it looks for containers to delete.
    pub container_check: Duration,
}

/// The longest session.
const SESSION_MAX: Duration = Duration::from_secs(60);

/// The identity that may do everything, by the password "secret".
const SUPER_DIGEST: &str = "super:lK75jTNcA+U9vtVEw5vB51mj/w4=";

impl Setup {
    /// One of the set-ups in which nothing happens by time alone while a sequence is played.
    pub fn timeless(release: Release, variant: usize) -> Self {
        Self {
            release,
            extended_types: variant % 2 == 1,
            enforce_quota: variant % 4 >= 2,
            tick: Duration::from_secs(2),
            session_min: Duration::from_secs(20),
            container_check: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// A set-up in which sessions can be seen to expire.
    pub fn hurried(release: Release) -> Self {
        Self {
            tick: Duration::from_millis(200),
            session_min: Duration::from_secs(2),
            ..Self::timeless(release, 0)
        }
    }

    /// A real server like this.
    ///
    /// # Errors
    /// As [`zk_testkit::real::ServerBuilder::start`].
    pub async fn start(&self) -> Result<Server, Error> {
        let millis = |time: Duration| time.as_millis();
        Server::builder()
            .release(self.release)
            .tick_time(self.tick)
            .config(format!("minSessionTimeout={}", millis(self.session_min)))
            .config(format!("maxSessionTimeout={}", millis(SESSION_MAX)))
            .config(format!("extendedTypesEnabled={}", self.extended_types))
            .config(format!("enforceQuota={}", self.enforce_quota))
            .property("znode.container.checkIntervalMs", millis(self.container_check).to_string())
            .property("zookeeper.DigestAuthenticationProvider.superDigest", SUPER_DIGEST)
            .start()
            .await
    }

    /// An ensemble like this.
    pub fn ensemble(&self) -> Ensemble {
        let mut config = Config::default();
        config.release = self.release;
        config.tick = self.tick;
        config.session_timeout_min = Some(self.session_min);
        config.session_timeout_max = Some(SESSION_MAX);
        config.extended_types = self.extended_types;
        config.enforce_quota = self.enforce_quota;
        config.super_digest = Some(SUPER_DIGEST.to_owned());
        config.container_check_interval = self.container_check;
        Ensemble::new(config)
    }
}
