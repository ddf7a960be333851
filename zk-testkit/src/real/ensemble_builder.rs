use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::builder::{Choice, PORT_ATTEMPTS, shared_settings};
use super::config::Settings;
use super::distribution::Distribution;
use super::ensemble::Ensemble;
use super::error::Error;
use super::host::Host;
use super::locator::{Install, Locator};
use super::relay::Relay;
use super::server::{Blueprint, Server};
use crate::port::HeldPort;
use crate::release::Wanted;

impl Ensemble {
    /// Starts three members with the default settings and waits until all of them serve.
    ///
    /// # Errors
    ///
    /// As [`EnsembleBuilder::start`].
    pub async fn start(wanted: impl Into<Wanted>) -> Result<Self, Error> {
        Self::builder().release(wanted).start().await
    }

    /// Settings for an ensemble that is not like the default one.
    pub fn builder() -> EnsembleBuilder {
        EnsembleBuilder::default()
    }
}

/// Settings for an [`Ensemble`].
///
/// Not set here: the same as for a [`ServerBuilder`](super::ServerBuilder).
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until start is called"]
pub struct EnsembleBuilder {
    choice: Choice,
    settings: Settings,
    members: usize,
    init_limit: u32,
    sync_limit: u32,
    severable: bool,
    hosts: Vec<Host>,
}

impl Default for EnsembleBuilder {
    fn default() -> Self {
        Self {
            choice: Choice::default(),
            settings: Settings::default(),
            members: 3,
            // Ten seconds at the default tick: three JVMs may have to share one busy core.
            init_limit: 50,
            // Two seconds: long enough for a stutter, short enough for tests that pause a leader.
            sync_limit: 10,
            severable: false,
            hosts: Vec::new(),
        }
    }
}

impl EnsembleBuilder {
    shared_settings!();

    /// How many members vote; three by default.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn members(mut self, members: usize) -> Self {
        assert!(members > 0, "an ensemble has members");
        self.members = members;
        self
    }

    /// Ticks that a follower may take to find its leader and catch up; 50 by default.
    pub fn init_limit(mut self, ticks: u32) -> Self {
        self.init_limit = ticks;
        self
    }

    /// Ticks after which a silent leader or follower is given up; 10 by default, which is two
    /// seconds. (One that is killed is noticed at once.)
    pub fn sync_limit(mut self, ticks: u32) -> Self {
        self.sync_limit = ticks;
        self
    }

    /// Whether the first member can be [severed](Ensemble::sever) from those that lead. Needs 3.5 or later.
    pub const fn severable(mut self, severable: bool) -> Self {
        self.severable = severable;
        self
    }

    /// Runs each member on a host of its own, and as many members as there are hosts, instead of on loopback. Such an
    /// ensemble is not [severable](Self::severable): its network may be.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn hosts(mut self, hosts: Vec<Host>) -> Self {
        assert!(!hosts.is_empty(), "an ensemble has members");
        self.members = hosts.len();
        self.hosts = hosts;
        self
    }

    /// Starts all members and waits until all of them serve.
    ///
    /// Dropping the future kills those that have been started.
    ///
    /// # Errors
    ///
    /// [`Error::Locate`] if there is no ZooKeeper; [`Error::Exited`] or [`Error::Ensemble`] with
    /// the members' logs if they do not come up; [`Error::Io`].
    pub async fn start(self) -> Result<Ensemble, Error> {
        let distribution = self.choice.locate().await?;
        let mut attempt = 1;
        loop {
            match self.start_once(&distribution).await {
                Err(error) if error.is_port_taken() && attempt < PORT_ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn start_once(&self, distribution: &Distribution) -> Result<Ensemble, Error> {
        let mut ports = (0..self.members)
            .map(|index| self.hosts.get(index).map_or_else(MemberPorts::any, MemberPorts::on))
            .collect::<io::Result<Vec<_>>>()
            .map_err(Error::io("take ports"))?;
        let ensemble = self.ensemble_lines(&ports, &[]);
        let mut relays = Vec::new();
        if self.severable && self.hosts.is_empty() {
            for ports in &ports[1..] {
                relays.push(Relay::start(ports.quorum).await.map_err(Error::io("relay"))?);
            }
        }
        // As the first one sees it.
        let through_relays = self.ensemble_lines(&ports, &relays);
        let member = |(index, ports): (usize, MemberPorts)| {
            let lines = if index == 0 { &through_relays } else { &ensemble };
            Server::prepare(Blueprint {
                distribution,
                settings: &self.settings,
                addr: ports.client,
                host: self.hosts.get(index),
                lines: lines.clone(),
                secure_port: None,
                member_id: Some(index + 1),
                ports: ports.held,
            })
        };
        let members = ports.drain(..).enumerate().map(member);
        let ensemble = Ensemble { members: members.collect::<Result<_, _>>()?, relays };
        for member in ensemble.members() {
            member.launch()?;
        }
        ensemble.wait_for_all().await?;
        Ok(ensemble)
    }

    /// What members know of each other: of all but the first by way of relays, if there are any.
    fn ensemble_lines(&self, ports: &[MemberPorts], relays: &[Relay]) -> String {
        let mut lines = format!("initLimit={}\nsyncLimit={}\n", self.init_limit, self.sync_limit);
        for (index, ports) in ports.iter().enumerate() {
            let id = index + 1;
            let relay = index.checked_sub(1).and_then(|index| relays.get(index));
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "server.{id}={}", ports.server_line(relay));
        }
        lines
    }
}

/// The ports of one member, on loopback or on a host of its own.
struct MemberPorts {
    client: SocketAddr,
    quorum: SocketAddr,
    election: SocketAddr,
    held: Vec<HeldPort>,
}

impl MemberPorts {
    fn any() -> io::Result<Self> {
        let held = (0..3).map(|_| HeldPort::any()).collect::<io::Result<Vec<_>>>()?;
        let [client, quorum, election] = [0, 1, 2].map(|port: usize| held[port].addr());
        Ok(Self { client, quorum, election, held })
    }

    /// The usual ones: nothing else listens there.
    fn on(host: &Host) -> io::Result<Self> {
        let [client, quorum, election] = [2181, 2888, 3888].map(|port| (host.addr, port).into());
        Ok(Self { client, quorum, election, held: Vec::new() })
    }

    fn server_line(&self, relay: Option<&Relay>) -> String {
        let addr = relay.map_or(self.quorum, Relay::addr);
        format!("{addr}:{};{}", self.election.port(), self.client)
    }
}
