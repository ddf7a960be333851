use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::builder::{Choice, PORT_ATTEMPTS};
use super::config::Settings;
use super::distribution::Distribution;
use super::error::Error;
use super::four_letter::{Mode, Standing};
use super::install::Install;
use super::locate::Locator;
use super::release::{Version, Wanted};
use super::server::{Blueprint, MODE_LIMIT, Patience, READY_LIMIT, READY_POLL, Server};
use crate::port::HeldPort;

/// Several real ZooKeeper servers that form one ensemble on loopback.
///
/// Members are numbered from 0, in the order of the connection string; ZooKeeper's own number of
/// a member is one higher. Everything that can be done to a [`Server`] can be done to a
/// [`member`](Self::member).
///
/// ```no_run
/// # async fn example() -> Result<(), zk_testkit::real::Error> {
/// use zk_testkit::real::{Ensemble, Wanted};
///
/// let ensemble = Ensemble::start(Wanted::Any).await?;
/// let leader = ensemble.wait_for_quorum().await?;
/// ensemble.kill(leader).await?;
/// assert_ne!(ensemble.wait_for_quorum().await?, leader);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<Server>,
}

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

    /// The servers, in order.
    pub fn members(&self) -> &[Server] {
        &self.members
    }

    /// One server.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn member(&self, index: usize) -> &Server {
        &self.members[index]
    }

    /// How many members there are, running or not.
    #[expect(clippy::len_without_is_empty, reason = "an ensemble has members")]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The members' version.
    pub fn version(&self) -> &Version {
        self.members[0].version()
    }

    /// All members as a client's connection string.
    pub fn connect_string(&self) -> String {
        connect_string(self.members.iter())
    }

    /// Some members, in the given order, as a client's connection string.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn connect_string_of(&self, members: &[usize]) -> String {
        connect_string(members.iter().map(|&index| self.member(index)))
    }

    /// [`Server::kill`].
    ///
    /// # Errors
    ///
    /// The operating system refused.
    pub async fn kill(&self, member: usize) -> Result<(), Error> {
        self.member(member).kill().await
    }

    /// [`Server::stop`].
    ///
    /// # Errors
    ///
    /// The operating system refused.
    pub async fn stop(&self, member: usize) -> Result<(), Error> {
        self.member(member).stop().await
    }

    /// [`Server::pause`].
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], or the operating system refused.
    pub fn pause(&self, member: usize) -> Result<(), Error> {
        self.member(member).pause()
    }

    /// [`Server::resume`].
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], or the operating system refused.
    pub fn resume(&self, member: usize) -> Result<(), Error> {
        self.member(member).resume()
    }

    /// Kills a member's process if there is one, and starts a new one on the same ports and data.
    ///
    /// Does not wait until the member serves, for which there may be no quorum yet: that is what
    /// [`wait_for_quorum`](Self::wait_for_quorum), [`wait_for_all`](Self::wait_for_all) and
    /// [`Server::wait_until_serving`] are for.
    ///
    /// # Errors
    ///
    /// The operating system refused.
    pub async fn restart(&self, member: usize) -> Result<(), Error> {
        self.kill(member).await?;
        self.member(member).launch()
    }

    /// The member that leads; `None` while there is no leader.
    ///
    /// Of two that say so, which happens for a moment after a pause, the one of the later epoch.
    pub async fn leader(&self) -> Option<usize> {
        leader_of(&self.standings().await)
    }

    /// The members that follow a leader.
    pub async fn followers(&self) -> Vec<usize> {
        let standings = self.standings().await;
        let follows = |index: &usize| mode(standings[*index]) == Some(Mode::Follower);
        (0..self.len()).filter(follows).collect()
    }

    /// Waits until a leader and enough followers serve, and returns the leader.
    ///
    /// # Errors
    ///
    /// [`Error::Ensemble`] after a minute. [`Error::Exited`] as soon as a member has ended that
    /// was neither killed nor stopped.
    pub async fn wait_for_quorum(&self) -> Result<usize, Error> {
        let majority = self.len() / 2 + 1;
        self.wait("a quorum", |serving| serving >= majority).await
    }

    /// Waits until a leader and all other members serve, and returns the leader.
    ///
    /// # Errors
    ///
    /// As [`wait_for_quorum`](Self::wait_for_quorum).
    pub async fn wait_for_all(&self) -> Result<usize, Error> {
        self.wait("all members to serve", |serving| serving == self.len()).await
    }

    async fn wait(
        &self,
        wanted: &'static str,
        enough: impl Fn(usize) -> bool,
    ) -> Result<usize, Error> {
        let started = Instant::now();
        let mut patience = Patience::new();
        loop {
            let standings = patience.ask(async |limit| self.standings_until(limit, &enough).await);
            let standings = standings.await;
            if let Some(leader) = leader_if(&standings, &enough) {
                return Ok(leader);
            }
            self.check_alive()?;
            if started.elapsed() > READY_LIMIT {
                return Err(Error::Ensemble {
                    wanted,
                    waited: READY_LIMIT,
                    report: self.report(&standings),
                });
            }
            sleep(READY_POLL).await;
        }
    }

    /// What each member says it is doing.
    async fn standings(&self) -> Vec<Option<Standing>> {
        self.standings_until(MODE_LIMIT, &|serving| serving == self.len()).await
    }

    /// Asks all members at once, and stops listening when enough have answered: a paused member
    /// would only answer by silence.
    async fn standings_until(
        &self,
        limit: Duration,
        enough: &impl Fn(usize) -> bool,
    ) -> Vec<Option<Standing>> {
        let mut asking = JoinSet::new();
        for (index, member) in self.members.iter().enumerate() {
            let addr = member.addr();
            asking.spawn(async move { (index, Standing::of(addr, limit).await) });
        }
        let mut standings = vec![None; self.len()];
        while let Some(answer) = asking.join_next().await {
            let (index, standing) = answer.expect("asking neither panics nor is cancelled");
            standings[index] = standing;
            if leader_if(&standings, enough).is_some() {
                break;
            }
        }
        standings
    }

    fn check_alive(&self) -> Result<(), Error> {
        for member in &self.members {
            match member.check_alive() {
                // Killed or stopped on purpose.
                Ok(()) | Err(Error::NotRunning) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn report(&self, standings: &[Option<Standing>]) -> String {
        let mut report = String::new();
        for (index, member) in self.members.iter().enumerate() {
            let mode = mode(standings[index]);
            let running = member.is_running();
            let log = member.log_of_this_life();
            // Writing to a string cannot fail.
            let _ = writeln!(report, "member {index}: {mode:?}, running: {running}\n{log}");
        }
        report
    }
}

fn mode(standing: Option<Standing>) -> Option<Mode> {
    standing.map(|standing| standing.mode)
}

fn leader_of(standings: &[Option<Standing>]) -> Option<usize> {
    let leaders = standings.iter().enumerate().filter_map(|(index, standing)| {
        let Standing { mode, zxid } = (*standing)?;
        (mode == Mode::Leader).then_some((zxid, index))
    });
    leaders.max().map(|(_, index)| index)
}

/// The leader, if there is one and enough members serve the ensemble.
fn leader_if(standings: &[Option<Standing>], enough: &impl Fn(usize) -> bool) -> Option<usize> {
    let serves = |standing: &&Option<Standing>| {
        matches!(mode(**standing), Some(Mode::Leader | Mode::Follower | Mode::Standalone))
    };
    let serving = standings.iter().filter(serves).count();
    let leader = leader_of(standings)
        // An ensemble of one is a standalone server.
        .or_else(|| (standings.len() == 1 && serving == 1).then_some(0))?;
    enough(serving).then_some(leader)
}

fn connect_string<'a>(members: impl Iterator<Item = &'a Server>) -> String {
    let members: Vec<String> = members.map(Server::connect_string).collect();
    members.join(",")
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
        }
    }
}

impl EnsembleBuilder {
    /// Asks for a release line; any will do by default.
    pub fn release(mut self, wanted: impl Into<Wanted>) -> Self {
        self.choice.wanted = wanted.into();
        self
    }

    /// Looks for ZooKeeper in another way than the environment says.
    pub fn locator(mut self, locator: Locator) -> Self {
        self.choice.locator = locator;
        self
    }

    /// Allows or forbids installing packages if no ZooKeeper is found.
    pub fn install(mut self, install: Install) -> Self {
        self.choice.locator = self.choice.locator.install(install);
        self
    }

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

    /// The unit of the servers' time, 200 ms by default. Sessions last at least two ticks.
    pub fn tick_time(mut self, tick_time: Duration) -> Self {
        self.settings.tick_time = tick_time;
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

    /// Adds a line to every member's `zoo.cfg`. Later lines override earlier ones.
    pub fn config(mut self, line: impl Into<String>) -> Self {
        self.settings.lines.push(line.into());
        self
    }

    /// Sets a Java system property for every member.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.properties.push((name.into(), value.into()));
        self
    }

    /// Lets members without a quorum serve reads to clients that accept it.
    pub fn read_only_mode(mut self, enabled: bool) -> Self {
        self.settings.read_only_mode = enabled;
        self
    }

    /// Waits for the disk at each write; off by default.
    pub fn force_sync(mut self, enabled: bool) -> Self {
        self.settings.force_sync = enabled;
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
            .map(|_| MemberPorts::any())
            .collect::<io::Result<Vec<_>>>()
            .map_err(Error::io("take ports"))?;
        let ensemble = self.ensemble_lines(&ports);
        let member = |(index, ports): (usize, MemberPorts)| {
            Server::prepare(Blueprint {
                distribution,
                settings: &self.settings,
                port: ports.client,
                ensemble: ensemble.clone(),
                member_id: Some(index + 1),
                further_ports: vec![ports.quorum, ports.election],
            })
        };
        let members = ports.drain(..).enumerate().map(member);
        let ensemble = Ensemble { members: members.collect::<Result<_, _>>()? };
        for member in ensemble.members() {
            member.launch()?;
        }
        ensemble.wait_for_all().await?;
        Ok(ensemble)
    }

    fn ensemble_lines(&self, ports: &[MemberPorts]) -> String {
        let mut lines = format!("initLimit={}\nsyncLimit={}\n", self.init_limit, self.sync_limit);
        for (index, ports) in ports.iter().enumerate() {
            let id = index + 1;
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "server.{id}={}", ports.server_line());
        }
        lines
    }
}

/// The ports of one member.
struct MemberPorts {
    client: HeldPort,
    quorum: HeldPort,
    election: HeldPort,
}

impl MemberPorts {
    fn any() -> io::Result<Self> {
        Ok(Self { client: HeldPort::any()?, quorum: HeldPort::any()?, election: HeldPort::any()? })
    }

    fn server_line(&self) -> String {
        let addr: SocketAddr = self.quorum.addr();
        format!("{addr}:{};{}", self.election.addr().port(), self.client.addr())
    }
}
