//! What a seed stands for.

use std::time::Duration;

use zk_client::Lease;
use zk_proto::frame::LEN_REQUEST_MAX;
use zk_testkit::{
    real::Release,
    server::Config,
    sim::{Fault, Incident, Rng, Schedule, Stage, Target},
};

use super::{Recipe, alone};

/// Milliseconds in which nothing goes wrong at the beginning.
const WARM_UP: u64 = 5_000;

/// The part of chance that decides on the margins of leases.
const LEASES: u64 = 0x1EA5E;

/// The part of chance that decides on networks that fall apart.
const SPLITS: u64 = 0x5911;

/// The part of chance that decides on a member that is left alone at the end.
const ALONE: u64 = 0xA_10E;

/// The part of chance that decides on networks that fall apart where members may serve readers.
const READERS_APART: u64 = 0xA_9A7;

/// The part of chance that decides on the longest request.
const LENGTHS: u64 = 0x1E6;

/// Longest requests in bytes that servers take in some runs: all clients keep to that, or not all of them do.
const LEN_SHORT: usize = 1_500;
const LEN_SUSPECT: usize = 5_000;

/// The part of chance that decides on recipes.
const RECIPES: u64 = 0x5EC1;

/// How many recipes there are in a mixed run besides the exclusive lock.
const MIXED: usize = 3;

/// The part of chance that decides on the servers' release.
const RELEASES: u64 = 0x34_39;

/// The part of chance that decides on settings of recipes and clients, and on paths that recipes share.
const SETTINGS: u64 = 0x5E77;

/// The part of chance that decides on histories.
const HISTORIES: u64 = 0x63;

/// What a run is made of. Everything follows from the seed and the duration; the schedule of faults can
/// be replaced by a part of itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// Milliseconds from the beginning to the end of the faults.
    pub duration: u64,
    /// Number of clients, 2 to 48.
    pub clients: u32,
    /// Number of members: 1, 3 or 5.
    pub members: usize,
    /// The servers' release.
    pub release: Release,
    /// Unit of the servers' timers in milliseconds.
    pub tick: u64,
    /// How far followers lag behind, in milliseconds.
    pub lag: u64,
    /// What leases are counted by.
    pub lease: Lease,
    /// How long a member that is cut off goes on, in milliseconds.
    pub sync_limit: u64,
    /// Whether members without a quorum serve reads.
    pub read_only_mode: bool,
    /// The member that is left alone at the end, with all others well.
    pub alone: Option<usize>,
    /// Milliseconds that a way through the network takes.
    pub latency: (u64, u64),
    /// Session timeout of each client in milliseconds.
    pub session_timeouts: Vec<u64>,
    /// Millionths by which each client's clock is too fast.
    pub drifts: Vec<i32>,
    /// Number of exclusive locks that are fought over.
    pub locks: usize,
    /// What else is fought over.
    pub recipes: Vec<Recipe>,
    /// Longest time for which a lock is held, in milliseconds.
    pub hold_max: u64,
    /// Longest pause between two uses of a lock, in milliseconds.
    pub think_max: u64,
    /// Longest request in bytes that servers take.
    pub request_len_max: usize,
    /// Whether clients wish for longer sessions than servers grant.
    pub wishful: bool,
    /// Whether histories of nodes are made, to be judged as a whole.
    pub histories: bool,
    /// Whether recipes and clients have settings of all kinds.
    pub draws_settings: bool,
    /// Whether some of the clients change nothing.
    pub readers: bool,
    /// Whether there are caches of nodes.
    pub caches: bool,
    /// Whether recipes share the paths of the exclusive locks.
    pub shares_paths: bool,
    /// Whether nothing goes wrong at all.
    pub calm: bool,
    /// What goes wrong.
    pub schedule: Schedule,
}

impl Options {
    /// What this seed stands for.
    #[must_use]
    pub fn new(seed: u64, minutes: u64) -> Self {
        Self::with_recipes(seed, minutes, recipes(seed))
    }

    /// The same with these recipes besides the exclusive lock, unless nothing goes wrong in it.
    #[must_use]
    pub fn with_recipes(seed: u64, minutes: u64, recipes: Vec<Recipe>) -> Self {
        let duration = minutes * 60_000;
        let mut rng = Rng::new(seed).fork(0x0705);
        let harsh = rng.one_in(24);
        let calm = !harsh && rng.one_in(24);
        let clients = if harsh { 48 } else { rng.scaled(2, 24) as u32 };
        let members = *rng.pick(&[1, 3, 3, 3, 5]);
        let tick = *rng.pick(&[1000, 2000, 2000, 3000]);
        let same = rng.within(4_000, 40_000);
        let all_same = harsh || rng.one_in(2);
        let timeout = |rng: &mut Rng| if all_same { same } else { rng.scaled(4_000, 40_000) };
        let session_timeouts: Vec<u64> = (0..clients).map(|_| timeout(&mut rng)).collect();
        let drift = |rng: &mut Rng| match rng.below(10) {
            0 => rng.within(0, 50_000) as i32,
            1 => -(rng.within(0, 1_000) as i32),
            _ => 0,
        };
        let drifts = (0..clients).map(|_| drift(&mut rng)).collect();
        let latency_min = rng.scaled(1, 4);
        let latency = (latency_min, latency_min + rng.scaled(1, 30));
        let longest = session_timeouts.iter().copied().max().unwrap_or_default();
        let pause = rng.scaled(1_500, 60_000);
        let stage = Stage {
            from: WARM_UP,
            until: duration.max(WARM_UP + 1),
            clients,
            members,
            session_timeout: longest,
            pause,
        };
        let lease = if calm {
            // Where requests are counted there are none that were not submitted.
            Lease::Connection
        } else {
            let shortest = session_timeouts.iter().copied().min().unwrap_or_default();
            let needed = Duration::from_millis(tick + latency.1);
            lease(&mut Rng::new(seed).fork(LEASES), Duration::from_millis(shortest), needed)
        };
        let mut schedule = if calm {
            Schedule::default()
        } else {
            let mut schedule = Schedule::swarm(rng.fork(1), &stage, |_| true);
            if rng.one_in(10) {
                night(&mut schedule, &stage, &mut rng);
            }
            // From a chance of its own, so that other seeds stand for what they did before.
            let mut apart = Rng::new(seed).fork(0x1A6);
            if apart.one_in(8) {
                behind(&mut schedule, &stage, &mut apart);
            }
            let mut apart = Rng::new(seed).fork(SPLITS);
            // Otherwise what a member alone answers counts, and its clients are exempt from too much.
            if members > 1 && lease != Lease::Connection && apart.one_in(8) {
                schedule.split(&mut apart, &stage);
            }
            if harsh {
                expire_all(&mut schedule, &stage, rng.within(WARM_UP, duration));
            }
            schedule
        };
        let lag = if rng.one_in(2) { 0 } else { rng.scaled(1, 200) };
        let sync_limit = rng.within(2, 5) * tick;
        let read_only_mode = rng.one_in(4);
        // Members that only serve readers are to have some, who know of the others.
        let mut apart = Rng::new(seed).fork(READERS_APART);
        if read_only_mode && !calm && members > 1 && apart.one_in(2) {
            schedule.split(&mut apart, &stage);
        }
        let mut chance = Rng::new(seed).fork(ALONE);
        let is_alone =
            read_only_mode && !calm && duration >= alone::DURATION_MIN && chance.one_in(2);
        let alone = alone::member(&mut chance, members).filter(|_| is_alone);
        if let Some(member) = alone {
            alone::leave(&mut schedule, member, &stage, &mut chance);
        }
        let locks = if rng.one_in(2) { 1 } else { rng.within(2, 4) as usize };
        // Some for longer than their sessions last without servers.
        let long = rng.one_in(3);
        let mut lens = Rng::new(seed).fork(LENGTHS);
        let hold_max = if long { rng.scaled(4_000, 60_000) } else { rng.scaled(20, 4_000) };
        let think_max = rng.scaled(500, 20_000) * u64::from(clients) / 4;
        // Where requests and wakes are counted there are queues.
        let (locks, think_max) = if calm { (1, hold_max) } else { (locks, think_max) };
        let mut settings = Rng::new(seed).fork(SETTINGS);
        let recipes = if calm { Vec::new() } else { recipes };
        // A turn with another recipe takes more requests than one with a lock.
        let (locks, think_max) =
            if recipes.is_empty() { (locks, think_max) } else { (1, 2 * think_max) };
        Self {
            seed,
            duration,
            clients,
            members,
            release: release(&mut Rng::new(seed).fork(RELEASES), read_only_mode),
            tick,
            lag,
            sync_limit,
            read_only_mode,
            alone,
            latency,
            session_timeouts,
            drifts,
            locks,
            recipes,
            hold_max,
            think_max,
            request_len_max: match rng.one_in(3) {
                true => *lens.pick(&[LEN_SHORT, LEN_SUSPECT]),
                false => LEN_REQUEST_MAX,
            },
            wishful: rng.one_in(3),
            // Its own chance: what other seeds have found they go on finding.
            histories: Rng::new(seed).fork(HISTORIES).one_in(2),
            draws_settings: !calm && settings.one_in(2),
            shares_paths: !calm && settings.one_in(3),
            readers: !calm && settings.one_in(4),
            caches: settings.one_in(2),
            lease,
            calm,
            schedule,
        }
    }

    /// How the servers are set up.
    #[must_use]
    pub fn servers(&self) -> Config {
        let mut config = Config::default();
        config.members = self.members;
        config.release = self.release;
        config.tick = Duration::from_millis(self.tick);
        config.session_timeout_min = Some(Duration::from_secs(4));
        config.session_timeout_max = Some(Duration::from_millis(self.longest_timeout()));
        config.request_len_max = self.request_len_max;
        config.lag = Duration::from_millis(self.lag);
        config.sync_limit = Duration::from_millis(self.sync_limit);
        config.read_only_mode = self.read_only_mode;
        config.keep_history = true;
        config.extended_types = true;
        config.seed = self.seed;
        config
    }

    /// Whether there are other recipes than the exclusive lock.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        !self.recipes.is_empty()
    }

    /// What a client wishes for; no more than the longest is granted.
    #[must_use]
    pub fn wished_timeout(&self, client: u32) -> u64 {
        let granted = self.session_timeouts[client as usize];
        if self.wishful && granted == self.longest_timeout() { 3 * granted } else { granted }
    }

    /// Longest request in bytes that a client sends. To servers that take less, some send what costs their connections.
    #[must_use]
    pub const fn sends_at_most(&self, client: u32) -> usize {
        match self.request_len_max {
            LEN_SUSPECT if client % 6 == 0 => LEN_REQUEST_MAX,
            len => len,
        }
    }

    /// Whether a client takes members that can only be read from.
    #[must_use]
    pub const fn reads_alone(&self, client: u32) -> bool {
        self.read_only_mode && client % 3 == 0
    }

    /// From when on all clients are connected again, behind the last trouble.
    pub(crate) fn well_from(&self) -> u64 {
        self.duration + self.longest_timeout() + 10_000
    }

    /// Longest session timeout.
    #[must_use]
    pub fn longest_timeout(&self) -> u64 {
        self.session_timeouts.iter().copied().max().unwrap_or_default()
    }
}

/// What a run's leases are counted by: every answer, or what the leader confirms, less what is needed then. The default is
/// one of these where it leaves as much off.
fn lease(rng: &mut Rng, timeout: Duration, needed: Duration) -> Lease {
    // Clients refuse a margin that leaves hardly anything of the lease.
    let is_left = Lease::Margin(needed).margin(timeout) == needed;
    if !rng.one_in(2) || !is_left {
        return Lease::Connection;
    }
    let is_enough = Lease::Confirmed.margin(timeout) >= needed;
    if is_enough && !rng.one_in(4) { Lease::Confirmed } else { Lease::Margin(needed) }
}

/// Half of the seeds have the newest release, the others any.
fn release(rng: &mut Rng, has_readers: bool) -> Release {
    let drawn = if rng.one_in(2) { Release::NEWEST } else { *rng.pick(&Release::ALL) };
    // Later ones refuse most who could read from a member alone.
    let early = [Release::V3_4, Release::V3_5, Release::V3_6];
    if has_readers && rng.one_in(2) { *rng.pick(&early) } else { drawn }
}

/// Two seeds in three have other recipes than the exclusive lock as well. From a chance of its own, so that
/// the others stand for what they did before.
fn recipes(seed: u64) -> Vec<Recipe> {
    let mut rng = Rng::new(seed).fork(RECIPES);
    let mut recipes = Recipe::OTHERS.to_vec();
    rng.shuffle(&mut recipes);
    recipes.truncate(if rng.one_in(3) { 0 } else { MIXED });
    recipes
}

/// There is no server at all for minutes.
fn night(schedule: &mut Schedule, stage: &Stage, rng: &mut Rng) {
    let at = rng.within(stage.from, stage.from + 20_000).min(stage.until);
    let lasts = rng.within(150_000, 300_000).min(stage.until - at);
    let (fault, target) = (Fault::Kill, Target::All);
    schedule.0.push(Incident { at, fault, target, lasts, amount: 0 });
    schedule.0.sort_by_key(|incident| incident.at);
}

/// All members are behind the leader for a while, and connections break: a client that comes back to another
/// member is shown less than it has done.
fn behind(schedule: &mut Schedule, stage: &Stage, rng: &mut Rng) {
    let from = rng.within(stage.from, stage.until);
    let lasts = rng.within(10_000, 60_000).min(stage.until - from);
    for member in 0..stage.members {
        let (target, amount) = (Target::Member(member), rng.within(300, 2_000));
        schedule.0.push(Incident { at: from, fault: Fault::Lag, target, lasts, amount });
    }
    let mut at = from;
    while at < from + lasts {
        let target = Target::Client(rng.below(u64::from(stage.clients)) as u32);
        schedule.0.push(Incident { at, fault: Fault::Reset, target, lasts: 0, amount: 0 });
        at += rng.scaled(50, 2_000);
    }
    schedule.0.sort_by_key(|incident| incident.at);
}

/// All sessions expire at the same moment.
fn expire_all(schedule: &mut Schedule, stage: &Stage, at: u64) {
    let fault = Fault::Expire;
    let target = Target::All;
    let incident = Incident { at, fault, target, lasts: 0, amount: 0 };
    schedule.0.push(incident);
    schedule.0.retain(|incident| incident.at < stage.until);
    schedule.0.sort_by_key(|incident| incident.at);
}
