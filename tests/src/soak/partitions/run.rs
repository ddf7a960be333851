//! One fault after the other, and the time until locks are granted again.

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};
use zk_testkit::sim::Rng;

use super::{
    Options, enclosure,
    fault::{Blow, Deck, Fault},
    historian,
    inflict::Stage,
    keeper,
    members::Members,
    network::{Network, Party, Weather},
    processes::Processes,
    record::Recorder,
    vantage,
};
use crate::{
    linear::judge,
    soak::{
        RECOVERY_LIMIT, Report,
        judges::{
            self,
            porcupine::{Opinion, Porcupine},
        },
        rolling::{self, Contender, Pace, Recipe},
    },
};

/// Places that clients see the network from.
const VANTAGES: usize = 4;

/// The unit of the members' timers. They give each other up after ten of them.
const TICK: Duration = Duration::from_millis(200);

/// How long contenders may take to end their last turns: one that is stuck has lost a wake-up.
const FINISH_LIMIT: Duration = Duration::from_secs(120);

/// How many complaints of a kind are printed.
const SHOWN_MAX: usize = 10;

/// Everything that takes part.
struct World {
    stage: Stage,
    recipes: Arc<rolling::Shared>,
    histories: Arc<historian::Shared>,
    keepers: Arc<keeper::Shared>,
    vantages: Vec<(Party, oneshot::Receiver<std::io::Result<()>>)>,
}

/// What has gone wrong so far, and how long it took until that was over.
#[derive(Debug, Default)]
struct Past {
    faults: BTreeMap<Fault, usize>,
    leaders: usize,
    leader_changes: usize,
    leader: Option<usize>,
    first: Vec<Duration>,
    last: Vec<Duration>,
    slowest: Option<(Duration, Blow)>,
    stuck: Vec<String>,
}

/// Runs the test, inside of namespaces.
///
/// # Errors
/// What kept it from being made.
pub async fn run(options: Options) -> Result<Report, Box<dyn Error>> {
    let mut world = World::start(&options).await?;
    let begun = Instant::now();
    let mut past = Past::default();
    let broken = world.suffer(&options, &mut past).await.err();
    let time = begun.elapsed();
    world.stage.network.set(&Weather::default()).await?;
    world.recipes.end();
    world.histories.over.store(true, Ordering::Relaxed);
    world.keepers.over.store(true, Ordering::Relaxed);
    let mut report = Report::new("partitions");
    if let Some(error) = broken {
        report.violation(format!("the servers: {error}"));
    }
    for (party, ended) in std::mem::take(&mut world.vantages) {
        match timeout(FINISH_LIMIT, ended).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => report.violation(format!("{}: {error}", party.name())),
            Ok(Err(_)) => report.violation(format!("{} has panicked", party.name())),
            Err(_) => report.violation(format!(
                "clients at {} still wait {FINISH_LIMIT:?} after the last fault",
                party.name()
            )),
        }
    }
    report.figure("members", options.members);
    report.figure("seconds", time.as_secs());
    past.tell(&mut report);
    report.figure("members that could not load their data", world.stage.members.unreadable);
    let [cut, lost] = world.stage.network.dropped().await?;
    report.figure("packets dropped by cuts", cut);
    report.figure("packets lost otherwise", lost);
    world.recipes.tell(&mut report);
    world.keepers.tell(&mut report);
    tell_histories(&world.histories.recorder, !options.no_others, &mut report).await?;
    if let Some(processes) = world.stage.processes.take() {
        processes.end(&mut report).await?;
    }
    let mut orphans = Vec::new();
    for root in [rolling::ROOT, keeper::ROOT] {
        match rolling::orphans(&world.stage.members.ensemble, root).await {
            Ok(found) => orphans.extend(found),
            Err(error) => report.violation(format!("orphans could not be looked for: {error}")),
        }
    }
    report.figure("orphans", orphans.len());
    report.expect(orphans.is_empty(), || format!("orphans: {orphans:?}"));
    Ok(report)
}

impl World {
    async fn start(options: &Options) -> Result<Self, Box<dyn Error>> {
        enclosure::furnish()?;
        let members = (0..options.members).map(Party::Member);
        let network = Network::join(members.chain((0..VANTAGES).map(Party::Client))).await?;
        let members = Members::start(options.members, TICK).await?;
        let servers = members.ensemble.connect_string();
        let pace =
            Pace { session_timeout: options.session, pause: options.pause, hold: options.pause };
        let recipes = Arc::new(rolling::Shared::new(servers.clone(), pace));
        let keepers = Arc::new(keeper::Shared::new(servers.clone(), options.session));
        let histories = Arc::new(historian::Shared {
            servers: servers.clone(),
            session_timeout: options.session,
            pause: options.pause,
            recorder: Recorder::default(),
            over: AtomicBool::new(false),
        });
        let rng = Rng::stream(options.seed, 1);
        let processes = match options.no_others {
            true => None,
            false => Some(Processes::start(&servers, options.session, VANTAGES).await?),
        };
        let stage = Stage { members, network, processes, clients: VANTAGES, rng };
        let mut world = Self { stage, recipes, histories, keepers, vantages: Vec::new() };
        for number in 0..VANTAGES {
            world.look_from(number, options)?;
        }
        if let Some(processes) = &world.stage.processes {
            processes.warm_up().await?;
        }
        Ok(world)
    }

    /// Starts the clients that see the network from one place.
    fn look_from(&mut self, place: usize, options: &Options) -> Result<(), Box<dyn Error>> {
        let (recipes, histories) = (self.recipes.clone(), self.histories.clone());
        let keepers = self.keepers.clone();
        let of = |count: usize| (0..count).filter(move |number| number % VANTAGES == place);
        let (sessions, historians) = (of(options.sessions), of(options.historians));
        let seed = options.seed;
        let done = vantage::spawn(Party::Client(place), async move || {
            let mut tasks = JoinSet::new();
            for number in sessions {
                for recipe in Recipe::ALL {
                    tasks.spawn(Contender::new(recipes.clone(), recipe, number).run());
                }
            }
            for number in historians {
                let (histories, complaints) = (histories.clone(), recipes.clone());
                let seed = Rng::stream(seed, 100 + number as u64).next();
                tasks.spawn(async move {
                    if let Err(what) = historian::run(histories, seed).await {
                        complaints.unexpected(what);
                    }
                });
            }
            for lock in 0..keeper::LOCKS {
                let (keepers, complaints) = (keepers.clone(), recipes.clone());
                let seed = Rng::stream(seed, (200 + 10 * place + lock) as u64).next();
                tasks.spawn(async move {
                    if let Err(what) = keeper::run(keepers, lock, seed).await {
                        complaints.unexpected(what);
                    }
                });
            }
            while let Some(ended) = tasks.join_next().await {
                if let Err(panic) = ended {
                    recipes.unexpected(panic.to_string());
                }
            }
        })?;
        self.vantages.push((Party::Client(place), done));
        Ok(())
    }

    /// One fault after the other, until there were enough and the time is over. All members serve when this returns.
    async fn suffer(&mut self, options: &Options, past: &mut Past) -> Result<(), Box<dyn Error>> {
        let mut deck = Deck::new(options.seed, &options.only, options.session, !options.no_others);
        let begun = Instant::now();
        let mut turns = interval(options.every.max(Duration::from_millis(1)));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0.. {
            let leader = self.stage.members.serve().await?;
            past.leads(leader);
            if begun.elapsed() >= options.time && number >= options.faults {
                break;
            }
            self.stage.members.tidy()?;
            if let Some(processes) = &mut self.stage.processes {
                processes.look_for_crashes()?;
            }
            turns.tick().await;
            let blow = deck.draw().ok_or("there is no fault to be made")?;
            self.stage.inflict(blow, leader).await?;
            self.recipes.killed();
            let recovered = timeout(RECOVERY_LIMIT, self.recipes.recovered()).await;
            past.over(blow, recovered.ok(), || format!("{:?}", self.recipes.waiting()));
        }
        Ok(())
    }
}

impl Past {
    fn leads(&mut self, leader: usize) {
        let before = self.leader.replace(leader);
        self.leader_changes += usize::from(before.is_some_and(|before| before != leader));
    }

    /// A fault is over; since then it took so long to a grant, and to a grant of each recipe.
    fn over(
        &mut self,
        blow: Blow,
        recovered: Option<(Duration, Duration)>,
        waiting: impl Fn() -> String,
    ) {
        *self.faults.entry(blow.fault).or_default() += 1;
        self.leaders += usize::from(blow.is_leader);
        let Some((first, last)) = recovered else {
            let waiting = waiting();
            self.stuck
                .push(format!("{RECOVERY_LIMIT:?} after {blow:?} {waiting} were not granted"));
            return;
        };
        self.first.push(first);
        self.last.push(last);
        if self.slowest.is_none_or(|(slowest, _)| last > slowest) {
            self.slowest = Some((last, blow));
        }
    }

    fn tell(self, report: &mut Report) {
        let count = |wanted: fn(Fault) -> bool| {
            let of = self.faults.iter().filter(|(fault, _)| wanted(**fault));
            of.map(|(_, count)| count).sum::<usize>()
        };
        report.figure("faults", count(|_| true));
        report.figure("of them: partitions", count(Fault::is_partition));
        report.figure("of them: of the leader", self.leaders);
        for (fault, count) in &self.faults {
            report.figure(format!("of them: {}", fault.name()), *count);
        }
        report.figure("changes of the leader", self.leader_changes);
        report.spread("from the end of a fault to the next grant", self.first);
        report.spread("from the end of a fault to a grant of each recipe", self.last);
        if let Some((_, blow)) = self.slowest {
            report.figure("the fault with the longest recovery", format!("{blow:?}"));
        }
        for stuck in self.stuck {
            report.violation(stuck);
        }
    }
}

/// Whether all that was recorded can have happened: what we say, and what porcupine says, if it takes part.
async fn tell_histories(
    recorder: &Recorder,
    twice: bool,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let histories = recorder.histories();
    let ours: Vec<Opinion> = histories.iter().map(|history| judges::ours(history)).collect();
    report.figure("histories", histories.len());
    report.figure("operations in them", histories.iter().map(Vec::len).sum::<usize>());
    let mut opinions = vec![("our judge", ours)];
    if twice {
        opinions.push(("porcupine", Porcupine::build().await?.judge(&histories).await?));
    }
    let mut shown = 0;
    for (judge, opinions) in &opinions {
        for (name, opinion) in [("not decided", Opinion::Undecided), ("impossible", Opinion::Not)] {
            let count = opinions.iter().filter(|said| **said == opinion).count();
            report.figure(format!("histories that are {name}, by {judge}"), count);
        }
    }
    for (number, history) in histories.iter().enumerate() {
        let said: Vec<_> = opinions.iter().map(|(judge, said)| (judge, said[number])).collect();
        if said.iter().any(|(_, said)| *said == Opinion::Not) && shown < SHOWN_MAX {
            shown += 1;
            report.violation(format!("history {number} is {said:?}: {:?}", judge(history)));
        }
    }
    Ok(())
}
