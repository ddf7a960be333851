//! Processes of other implementations, and of ours, that contend for the same locks from the places of clients.

use std::{
    error::Error,
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    clock::Clock,
    enclosure::FILES,
    network::{HERE, Party as Place},
};
use crate::{
    interop::{Contend, Counts, Party, Process, Resource, Scenario, Tools},
    soak::Report,
};

/// Which recipes, and whose.
const CASTS: [(Scenario, &[Party]); 4] = [
    (Scenario::Exclusive, &[Party::Ours, Party::Curator, Party::Kazoo, Party::Go]),
    (Scenario::ReadWrite, &[Party::Ours, Party::Curator]),
    (Scenario::Semaphore, &[Party::Ours, Party::Curator]),
    (Scenario::Leader, &[Party::Ours, Party::Curator]),
];

/// Contenders within a process.
const TASKS: usize = 2;

/// How long a visit takes.
const HOLD: Duration = Duration::from_millis(20);

/// Until all have been there once: JVMs start slowly on a busy machine.
const WARM_UP_LIMIT: Duration = Duration::from_secs(180);

/// Until all have had a last turn and are gone. Those that died in the queue take a session each.
const END_LIMIT: Duration = Duration::from_secs(90);

/// How often what others do is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// All of them, and what their locks protect.
pub(super) struct Processes {
    tools: Tools,
    servers: String,
    session: Duration,
    stages: Vec<(Scenario, Resource)>,
    slots: Vec<Slot>,
    clock: Clock,
    places: usize,
    stopped: Option<usize>,
    crashed: Vec<String>,
}

struct Slot {
    stage: usize,
    party: Party,
    name: String,
    log: PathBuf,
    process: Process,
}

/// Finds or fetches what they are started with.
pub(super) async fn tools() -> Result<Tools, Box<dyn Error>> {
    Ok(Tools::prepare(std::env::current_exe()?).await?.with_go().await?)
}

fn path(scenario: Scenario) -> String {
    format!("/others/{scenario}")
}

impl Processes {
    pub(super) async fn start(
        servers: &str,
        session: Duration,
        places: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let tools = tools().await?;
        let folder = PathBuf::from(FILES).join("others");
        fs::create_dir(&folder)?;
        let clock = Clock::new(folder.join("clock"))?;
        let mut stages = Vec::new();
        for (scenario, _) in CASTS {
            let resource = Resource::open_at(HERE.into(), servers, scenario.permits()).await?;
            stages.push((scenario, resource));
        }
        let mut processes = Self {
            tools,
            servers: servers.to_owned(),
            session,
            stages,
            slots: Vec::new(),
            clock,
            places,
            stopped: None,
            crashed: Vec::new(),
        };
        for (stage, (scenario, parties)) in CASTS.iter().enumerate() {
            for &party in *parties {
                let name = format!("{scenario}-{party}");
                let log = folder.join(format!("{name}.log"));
                let process = Process::start(processes.command(stage, party, &name), &log)?;
                processes.slots.push(Slot { stage, party, name, log, process });
            }
        }
        Ok(processes)
    }

    /// How a contender is started, at one of the places.
    fn command(&self, stage: usize, party: Party, name: &str) -> Command {
        let (scenario, resource) = &self.stages[stage];
        let millis = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
        let contender = self.tools.command(&Contend {
            scenario: *scenario,
            servers: self.servers.clone(),
            path: path(*scenario),
            resource: resource.addr(),
            party,
            name: name.to_owned(),
            tasks: TASKS,
            hold: millis(HOLD),
            session: millis(self.session),
            permits: scenario.permits(),
        });
        let place = Place::Client(self.slots.len() % self.places);
        // Python's sleep fails under libfaketime.
        let clock = if party == Party::Kazoo { Vec::new() } else { self.clock.wear() };
        let mut words = place.enter().into_iter().chain(clock);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(contender.get_program()).args(contender.get_args());
        command
    }

    /// Waits until each party has had each of its locks.
    pub(super) async fn warm_up(&self) -> Result<(), Box<dyn Error>> {
        let begun = Instant::now();
        for slot in &self.slots {
            let (_, resource) = &self.stages[slot.stage];
            while resource.counts().await.entered_by(slot.party) == 0 {
                sleep(LOOK).await;
                if begun.elapsed() > WARM_UP_LIMIT {
                    let why = slot.told("has not had the lock in the beginning");
                    return Err(why.into());
                }
            }
        }
        for (_, resource) in &self.stages {
            resource.begin_counting().await;
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Kills one, and starts another one in its place.
    pub(super) fn replace(&mut self, victim: usize) -> Result<(), Box<dyn Error>> {
        self.slots[victim].process.kill()?;
        self.start_again(victim)
    }

    fn start_again(&mut self, victim: usize) -> Result<(), Box<dyn Error>> {
        let Slot { stage, party, name, log, .. } = &self.slots[victim];
        let process = Process::start(self.command(*stage, *party, name), log)?;
        self.slots[victim].process = process;
        Ok(())
    }

    /// Stops one, or lets it go on.
    pub(super) fn stop(&mut self, victim: usize) -> Result<(), Box<dyn Error>> {
        self.slots[victim].process.pause()?;
        self.stopped = Some(victim);
        Ok(())
    }

    pub(super) fn go_on(&mut self) -> Result<(), Box<dyn Error>> {
        if let Some(victim) = self.stopped.take() {
            self.slots[victim].process.resume()?;
        }
        Ok(())
    }

    /// The clock of all of them is wrong by so many seconds.
    pub(super) fn set_clock(&self, seconds: i64) -> Result<(), Box<dyn Error>> {
        Ok(self.clock.set(seconds)?)
    }

    /// None ends without an order.
    pub(super) fn look_for_crashes(&mut self) -> Result<(), Box<dyn Error>> {
        for victim in 0..self.slots.len() {
            if let Some(status) = self.slots[victim].process.ended()? {
                self.crashed.push(self.slots[victim].told(&format!("ended with {status}")));
                self.start_again(victim)?;
            }
        }
        Ok(())
    }

    /// Lets all have a last turn and end, and tells what came of them.
    pub(super) async fn end(mut self, report: &mut Report) -> Result<(), Box<dyn Error>> {
        self.go_on()?;
        let mut pauses = Vec::new();
        for (_, resource) in &self.stages {
            pauses.push(resource.longest_pause().await.time);
            resource.end();
        }
        let begun = Instant::now();
        for slot in &mut self.slots {
            if let Some(trouble) = slot.process.trouble_in_the_end(begun, END_LIMIT).await? {
                report.violation(slot.told(&trouble));
            }
        }
        for crash in &self.crashed {
            report.violation(crash.clone());
        }
        for ((scenario, resource), pause) in self.stages.iter().zip(pauses) {
            let queues = scenario.queues(&path(*scenario));
            let begun = Instant::now();
            // Killed contenders' nodes go with their sessions.
            let mut left = resource.left_behind(&queues).await;
            while !left.is_empty() && begun.elapsed() < self.session * 3 {
                sleep(LOOK).await;
                left = resource.left_behind(&queues).await;
            }
            report.figure(format!("{scenario}: nodes left behind"), left.len());
            report.expect(left.is_empty(), || format!("{left:?} are still there"));
            let pause = pause.as_secs_f64().round();
            report.figure(format!("{scenario}: longest time without a visit, s"), pause);
            tell(*scenario, &resource.counts().await, report);
        }
        Ok(())
    }
}

/// What has happened under a recipe.
fn tell(scenario: Scenario, counts: &Counts, report: &mut Report) {
    let sum = |counts: &std::collections::BTreeMap<Party, u64>| counts.values().sum::<u64>();
    let parties = CASTS.iter().find(|(cast, _)| *cast == scenario).map_or(&[][..], |cast| cast.1);
    for &party in parties {
        let visits = counts.entered_by(party);
        report.figure(format!("{scenario}: visits of {party}"), visits);
        report.expect(visits > 0, || format!("{party} has not had {scenario}"));
    }
    report.figure(format!("{scenario}: superseded"), sum(&counts.superseded));
    report.figure(format!("{scenario}: refused by token"), sum(&counts.refused));
    report.figure(format!("{scenario}: Curator's downgrades that jumped in"), counts.jumped_in);
    for ((party, note), count) in &counts.notes {
        report.figure(format!("{scenario}: {party} says {note}"), *count);
    }
    report.figure(format!("{scenario}: violations"), counts.violations);
    for violation in &counts.told {
        report.violation(format!("{scenario}: {violation}"));
    }
}

impl Slot {
    fn told(&self, what: &str) -> String {
        format!("{} {what}; it says\n{}", self.name, self.process.last_words())
    }
}
