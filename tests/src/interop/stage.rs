//! Where a run takes place: processes behind proxies, and what is done to them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use zk_testkit::{proxy::Proxy, real::Ensemble, sim::Rng};

use super::{
    claim::Party,
    contender::Contend,
    foreign::Tools,
    process::Process,
    resource::{Pause, Resource},
    run::{Error, Options},
};
use crate::faults::{Deck, Fault};

/// How often what others do is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Until all have been there once: JVMs start slowly on a busy machine.
const WARM_UP_LIMIT: Duration = Duration::from_secs(120);

/// Until all have had a last turn and are gone. Those that died in the queue take a session each.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Where a run takes place: a resource, and processes behind proxies.
pub(super) struct Stage<'a> {
    options: &'a Options,
    ensemble: &'a Ensemble,
    tools: &'a Tools,
    path: String,
    pub(super) resource: Resource,
    slots: Vec<Slot>,
    lasting: Option<(Fault, usize)>,
    pub(super) faults: Vec<(Instant, Fault)>,
    outages: Vec<Pause>,
    pub(super) crashed: Vec<String>,
    pub(super) left_behind: Vec<String>,
    rng: Rng,
    deck: Deck,
    _logs: tempfile::TempDir,
}

/// One process, or the next one in its place, behind proxies of its own.
struct Slot {
    party: Party,
    name: String,
    proxies: Vec<Proxy>,
    log: PathBuf,
    process: Process,
}

impl<'a> Stage<'a> {
    pub(super) async fn set(
        options: &'a Options,
        ensemble: &'a Ensemble,
        tools: &'a Tools,
    ) -> Result<Self, Error> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let permits = options.scenario.permits();
        let resource = Resource::open(&ensemble.connect_string(), permits).await?;
        let logs = tempfile::tempdir()?;
        let mut stage = Self {
            options,
            ensemble,
            tools,
            path: format!("/interop-{}", RUNS.fetch_add(1, Ordering::Relaxed)),
            resource,
            slots: Vec::new(),
            lasting: None,
            faults: Vec::new(),
            outages: Vec::new(),
            crashed: Vec::new(),
            left_behind: Vec::new(),
            rng: Rng::new(options.seed),
            deck: Deck::of(options.only),
            _logs: logs,
        };
        for number in 0..options.processes {
            for &party in &options.parties {
                let name = format!("{party}-{number}");
                let mut proxies = Vec::new();
                for member in ensemble.members() {
                    proxies.push(Proxy::start(member.addr()).await?);
                }
                let log = stage._logs.path().join(&name);
                let command = stage.command(party, &name, &proxies);
                let process = Process::start(command, &log)?;
                stage.slots.push(Slot { party, name, proxies, log, process });
            }
        }
        Ok(stage)
    }

    /// How a contender is started.
    fn command(&self, party: Party, name: &str, proxies: &[Proxy]) -> Command {
        let Options { scenario, tasks, hold, session, .. } = *self.options;
        let servers: Vec<String> = proxies.iter().map(Proxy::connect_string).collect();
        self.tools.command(&Contend {
            scenario,
            servers: servers.join(","),
            path: self.path.clone(),
            resource: self.resource.addr(),
            party,
            name: name.to_owned(),
            tasks,
            hold: hold.as_millis().try_into().unwrap_or(u64::MAX),
            session: session.as_millis().try_into().unwrap_or(u64::MAX),
            permits: scenario.permits(),
        })
    }

    /// How often what went wrong.
    pub(super) fn fault_counts(&self) -> BTreeMap<Fault, u64> {
        let mut counts = BTreeMap::new();
        for (_, fault) in &self.faults {
            *counts.entry(*fault).or_default() += 1;
        }
        counts
    }

    /// What went wrong shortly before a pause, and while it lasted.
    pub(super) fn before(&self, pause: Pause) -> Vec<Fault> {
        let relevant =
            |at: Instant| at + self.options.session > pause.begun && at < pause.begun + pause.time;
        self.faults.iter().filter(|(at, _)| relevant(*at)).map(|(_, fault)| *fault).collect()
    }

    /// How long there was no quorum during a pause, as seen by asking the members.
    pub(super) fn outage_during(&self, pause: Pause) -> Duration {
        let end = pause.begun + pause.time;
        let common = |outage: &Pause| {
            let outage_end = outage.begun + outage.time;
            outage_end.min(end).saturating_duration_since(outage.begun.max(pause.begun))
        };
        self.outages.iter().map(common).sum()
    }

    /// Waits until each party has had the lock.
    pub(super) async fn warm_up(&self) -> Result<(), Error> {
        let begun = Instant::now();
        for &party in &self.options.parties {
            while self.resource.counts().await.entered_by(party) == 0 {
                sleep(LOOK).await;
                if begun.elapsed() > WARM_UP_LIMIT {
                    let own = self.slots.iter().filter(|slot| slot.party == party);
                    let last_words = own.map(|slot| slot.process.last_words()).collect();
                    return Err(Error::Absent { party, last_words });
                }
            }
        }
        Ok(())
    }

    /// Until the time is over, and everything has been seen or the extra time is over too.
    pub(super) async fn contend(&mut self) -> Result<(), Error> {
        let Options { scenario, ref parties, time, extra_time, demands, session, .. } =
            *self.options;
        let begun = Instant::now();
        let mut ticks = interval(session + session / 4);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            if begun.elapsed() >= time {
                let counts = self.resource.counts().await;
                let complete = scenario.unseen(parties, &counts).is_empty()
                    && demands.unmet(parties, &counts).is_empty();
                if complete || begun.elapsed() >= time + extra_time {
                    return Ok(());
                }
            }
            ticks.tick().await;
            self.restore()?;
            self.look_for_crashes()?;
            if self.options.faults {
                self.hurt().await?;
            }
            for proxy in self.slots.iter().flat_map(|slot| &slot.proxies) {
                proxy.clear_log();
            }
        }
    }

    async fn hurt(&mut self) -> Result<(), Error> {
        let fault = self.deck.draw(&mut self.rng);
        if fault == Fault::Member {
            self.faults.push((Instant::now(), fault));
            let member = self.rng.index(self.ensemble.len());
            let begun = Instant::now();
            self.ensemble.restart(member).await?;
            self.ensemble.wait_for_quorum().await?;
            self.outages.push(Pause { begun, time: begun.elapsed() });
            self.ensemble.wait_for_all().await?;
            return Ok(());
        }
        let (slots, session) = (&mut self.slots, self.options.session);
        let victim = if self.rng.one_in(2) {
            let victim = self.rng.index(slots.len());
            slots[victim].hurt(fault)?;
            victim
        } else {
            // In the middle of a visit.
            let mut hurt = |name: &str| {
                let of = |slot: &Slot| {
                    name.strip_prefix(&slot.name).is_some_and(|rest| rest.starts_with('.'))
                };
                let victim = slots.iter().position(of);
                let victim = victim.expect("contenders have the names that they were given");
                slots[victim].hurt(fault).map(|()| victim)
            };
            match timeout(session * 2, self.resource.to_somebody_inside(|_| true, &mut hurt)).await
            {
                Ok(victim) => victim?,
                // No contender comes.
                Err(_) => return Ok(()),
            }
        };
        self.faults.push((Instant::now(), fault));
        match fault {
            Fault::Kill => self.start_again(victim)?,
            Fault::Pause | Fault::Silence => self.lasting = Some((fault, victim)),
            Fault::Cut | Fault::Member => {}
        }
        Ok(())
    }

    fn start_again(&mut self, victim: usize) -> Result<(), Error> {
        let slot = &self.slots[victim];
        let command = self.command(slot.party, &slot.name, &slot.proxies);
        self.slots[victim].process = Process::start(command, &self.slots[victim].log)?;
        Ok(())
    }

    /// Ends a fault that lasts.
    fn restore(&mut self) -> Result<(), Error> {
        match self.lasting.take() {
            Some((Fault::Pause, victim)) => self.slots[victim].process.resume()?,
            Some((Fault::Silence, victim)) => {
                for proxy in &self.slots[victim].proxies {
                    proxy.reset_all();
                    proxy.resume();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// No contender ends without an order.
    fn look_for_crashes(&mut self) -> Result<(), Error> {
        for victim in 0..self.slots.len() {
            if let Some(status) = self.slots[victim].process.ended()? {
                self.crashed.push(self.slots[victim].told(&format!("ended with {status}")));
                self.start_again(victim)?;
            }
        }
        Ok(())
    }

    /// Lets all have a last turn and end; returns which did not, and notes what is left on the servers.
    pub(super) async fn end(&mut self) -> Result<Vec<String>, Error> {
        self.restore()?;
        self.resource.end();
        let begun = Instant::now();
        let mut stuck = Vec::new();
        for slot in &mut self.slots {
            let trouble = slot.process.trouble_in_the_end(begun, END_LIMIT).await?;
            stuck.extend(trouble.map(|trouble| slot.told(&trouble)));
        }
        // Killed contenders' nodes go with their sessions.
        let queues = self.options.scenario.queues(&self.path);
        let begun = Instant::now();
        self.left_behind = self.resource.left_behind(&queues).await;
        while !self.left_behind.is_empty() && begun.elapsed() < END_LIMIT {
            sleep(LOOK).await;
            self.left_behind = self.resource.left_behind(&queues).await;
        }
        Ok(stuck)
    }
}

impl Slot {
    fn hurt(&mut self, fault: Fault) -> Result<(), Error> {
        match fault {
            Fault::Cut => self.proxies.iter().for_each(Proxy::reset_all),
            Fault::Kill => self.process.kill()?,
            Fault::Pause => self.process.pause()?,
            Fault::Silence => self.proxies.iter().for_each(Proxy::silence),
            Fault::Member => {}
        }
        Ok(())
    }

    fn told(&self, what: &str) -> String {
        format!("{} {what}; it says\n{}", self.name, self.process.last_words())
    }
}
