//! One fault: how it is made, and unmade.

use std::error::Error;

use zk_testkit::sim::Rng;

use super::{
    cuts,
    fault::{Blow, Fault},
    members::Members,
    network::{Network, Weather},
    processes::Processes,
};
use crate::faults::last;

/// Seconds that a clock jumps by: over leap seconds, sessions, and days.
const JUMPS: [i64; 6] = [1, -1, 30, -30, 86_400, -86_400];

/// Packets of a hundred that are lost.
const LOSS: u32 = 5;

/// Packets a second from each to each.
const RATE: u32 = 150;

/// What faults are made with.
pub(super) struct Stage {
    pub(super) members: Members,
    pub(super) network: Network,
    pub(super) processes: Option<Processes>,
    /// How many places there are that clients see the network from.
    pub(super) clients: usize,
    pub(super) rng: Rng,
}

impl Stage {
    /// Makes a fault, for as long as it lasts. All is as it was before when this returns, but for what members have to do to
    /// serve again.
    pub(super) async fn inflict(
        &mut self,
        blow: Blow,
        leader: usize,
    ) -> Result<(), Box<dyn Error>> {
        let count = self.members.ensemble.len();
        let follower = (leader + 1 + self.rng.index(count - 1)) % count;
        let victim = if blow.is_leader { leader } else { follower };
        match blow.fault {
            Fault::Kill | Fault::Damage => {
                self.members.ensemble.kill(victim).await?;
                if blow.fault == Fault::Damage {
                    self.members.damage(victim)?;
                }
                last(blow.time).await;
                self.members.ensemble.restart(victim).await?;
            }
            Fault::Stop => {
                self.members.ensemble.pause(victim)?;
                last(blow.time).await;
                self.members.ensemble.resume(victim)?;
            }
            Fault::FullDisk => self.members.fill_disk(victim, blow.time).await?,
            Fault::Clock => {
                let jump = JUMPS[self.rng.index(JUMPS.len())];
                self.members.clocks[victim].set(jump)?;
                last(blow.time).await;
                self.members.clocks[victim].set(0)?;
            }
            Fault::Reconfig => self.members.leave_and_join(follower, blow.time).await?,
            Fault::Everything => {
                let weather = self.weather(blow.fault, victim, leader);
                self.network.set(&weather).await?;
                let stopped = self.rng.index(count);
                self.members.ensemble.pause(stopped)?;
                last(blow.time).await;
                self.members.ensemble.resume(stopped)?;
                self.network.set(&Weather::default()).await?;
            }
            Fault::KillClient | Fault::StopClient | Fault::ClientClock => {
                self.trouble_clients(blow).await?;
            }
            _ => {
                let weather = self.weather(blow.fault, victim, leader);
                self.network.set(&weather).await?;
                last(blow.time).await;
                self.network.set(&Weather::default()).await?;
            }
        }
        Ok(())
    }

    async fn trouble_clients(&mut self, blow: Blow) -> Result<(), Box<dyn Error>> {
        let Some(processes) = &mut self.processes else { return Ok(()) };
        let victim = self.rng.index(processes.len());
        match blow.fault {
            Fault::KillClient => processes.replace(victim),
            Fault::StopClient => {
                processes.stop(victim)?;
                last(blow.time).await;
                processes.go_on()
            }
            _ => {
                processes.set_clock(JUMPS[self.rng.index(JUMPS.len())])?;
                last(blow.time).await;
                processes.set_clock(0)
            }
        }
    }

    /// What a fault makes of the network.
    fn weather(&mut self, fault: Fault, victim: usize, leader: usize) -> Weather {
        let (count, clients) = (self.members.ensemble.len(), self.clients);
        let cuts = match fault {
            Fault::Minority => {
                let with = if self.rng.one_in(2) { clients } else { 0 };
                cuts::minority(count, victim, with)
            }
            Fault::Bridge => cuts::bridge(count, self.rng.index(count)),
            Fault::OneWay => cuts::one_way(count, victim, self.rng.one_in(2)),
            Fault::Ring => cuts::ring(count),
            Fault::Severed => cuts::severed(victim, leader),
            Fault::Clients => {
                let client = self.rng.index(clients);
                cuts::clients(count, client, &mut self.rng)
            }
            Fault::Everything => cuts::any(count, clients, &mut self.rng),
            _ => cuts::Cuts::new(),
        };
        let loss = if matches!(fault, Fault::Loss | Fault::Everything) { LOSS } else { 0 };
        Weather { cuts, loss, rate: (fault == Fault::Slow).then_some(RATE) }
    }
}
