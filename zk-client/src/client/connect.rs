//! Connecting: creates a session, the task that owns it, and its first client.

use std::sync::Arc;

use tracing::Instrument as _;
use zk_proto::{
    SessionId, Time,
    session::{Lease as LeaseBy, Session as Machine},
};

#[cfg(feature = "metrics")]
use crate::report::metrics::session::SessionMetrics;
use crate::{
    carry::{
        known::Known,
        published::{Published, SessionState},
        session::Session,
    },
    client::ConnectOptions,
    driver::{Driver, Parts, command::Command, frames::Frames},
    error::ConnectError,
    ids::Ids,
    queue::receiver,
    report::stats::Counters,
    request::{
        client::Client,
        handle::{Extensions, Handle, Shared, Spawn, View},
    },
};

impl ConnectOptions {
    /// Connects, and waits for the session.
    ///
    /// Must be called within a tokio runtime, on which the session's task is spawned. Dropping the future gives up and
    /// leaves no node behind; a session that was to be [resumed](Self::resume) stays as it was, also after an error. One that
    /// a server was just granting has no client then, and lasts on the servers until its timeout.
    ///
    /// # Errors
    /// [`ConnectError`] if there is no session by the [deadline](Self::connect_deadline), or if the
    /// servers refuse one for good.
    pub async fn connect(self) -> Result<Client, ConnectError> {
        Client::start(self).await
    }
}

impl Client {
    /// Connects with default options: see [`ConnectOptions`].
    ///
    /// # Errors
    /// [`ConnectError`] if the string is invalid or if no session can be established.
    pub async fn connect(servers: &str) -> Result<Self, ConnectError> {
        ConnectOptions::new(servers)?.connect().await
    }

    async fn start(options: ConnectOptions) -> Result<Self, ConnectError> {
        #[cfg(feature = "metrics")]
        let name = options.metrics_name.clone();
        let connector = options.connects();
        let ConnectOptions { config, chroot, connect_deadline, sasl, clock, .. } = options;
        let ConnectOptions { seed, spawn, call: options, acl, watch_items_max, observer, .. } =
            options;
        if let LeaseBy::Margin(margin) = config.lease {
            if config.lease.margin(config.session_timeout) != margin {
                return Err(ConnectError::LeaseMargin { margin, timeout: config.session_timeout });
            }
        }
        let resumes = config.resume.is_some();
        let counters = Counters::new(observer);
        #[cfg(feature = "metrics")]
        let counters = counters.with_metrics(SessionMetrics::new(name.clone()));
        let counters = Arc::new(counters);
        let ids = seed.map_or(Ids::Random, Ids::seeded);
        let seed = match seed {
            Some(seed) => seed,
            None => getrandom::u64().map_err(|error| ConnectError::Entropy(error.to_string()))?,
        };
        let first = Published {
            state: SessionState::Connecting,
            epoch: 0,
            read_only_epoch: 0,
            id: SessionId(0),
            timeout: config.session_timeout,
            close_confirmed: false,
        };
        let (known, frames) = (Arc::new(Known::new(first)), Arc::new(Frames::default()));
        let (commands, receiver) =
            receiver::<Command>(config.requests_max, config.request_bytes_max);
        #[cfg(feature = "metrics")]
        commands.report_line(SessionMetrics::waiting(&name));
        let driver = Driver::new(Parts {
            lease_by: config.lease,
            close_timeout: config.close_timeout,
            session: Machine::new(config, seed, Time::new(clock())),
            delete_sink: commands.sender(),
            receiver,
            connector,
            sasl,
            clock: clock.clone(),
            known: known.clone(),
            counters: counters.clone(),
            frames: frames.clone(),
        });
        let span = tracing::info_span!(parent: None, "zk.session");
        let task = driver.run().instrument(span);
        let spawn = Spawn::new(spawn);
        spawn.run(Box::pin(task));

        let shared = Shared {
            commands,
            session: Session::new(known, clock),
            ids,
            counters,
            frames,
            watch_items_max,
            spawn,
            extensions: Extensions::default(),
        };
        let shared = Arc::new(shared);
        let view = View { shared, chroot, cleanup: None, told: options, acl, held: None };
        let client = Self { handle: Handle::new(options, view) };
        // Dropping the client, here or with the future, ends the driver.
        let mut resuming = Resuming(resumes.then(|| client.handle.clone()));
        let connected = client.connected();
        let last = || ConnectError::TimedOut { last: client.handle.shared.known().take_failure() };
        match connect_deadline {
            Some(deadline) => {
                tokio::time::timeout(deadline, connected).await.map_err(|_| last())??;
            }
            None => connected.await?,
        }
        resuming.0 = None;
        Ok(client)
    }

    async fn connected(&self) -> Result<(), ConnectError> {
        let mut session = self.session();
        let mut state = session.state();
        loop {
            match state {
                SessionState::Connected { .. } => return Ok(()),
                SessionState::Ended(end) => return Err(ConnectError::SessionEnded(end)),
                SessionState::Connecting | SessionState::Disconnected | SessionState::Closing => {}
            }
            state = session.changed().await;
        }
    }
}

/// Leaves a session as it is that was there before, if resuming it is given up.
struct Resuming(Option<Handle>);

impl Drop for Resuming {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.command(Command::Leave);
        }
    }
}
