use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::error::Error;
use super::four_letter::{ANSWER_LIMIT, Mode, Patience, READY_POLL, Standing};
use super::relay::Relay;
use super::server::{READY_LIMIT, Server};
use crate::release::Version;

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
    pub(super) members: Vec<Server>,
    /// From the first member to the others, if it can be severed.
    pub(super) relays: Vec<Relay>,
}

impl Ensemble {
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

    /// Cuts the first member off from the leader, if the ensemble was built to be
    /// [severable](super::EnsembleBuilder::severable) and that is another one: nothing gets through any more, without a
    /// notice. Or else lets it come back.
    pub fn sever(&self, severed: bool) {
        for relay in &self.relays {
            relay.sever(severed);
        }
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
    /// [`Error::Ensemble`] after three minutes. [`Error::Exited`] as soon as a member has ended that
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
        self.standings_until(ANSWER_LIMIT, &|serving| serving == self.len()).await
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
