//! Faults, and schedules of them. A schedule is data: it is made from a seed once, can be cut in half, and played
//! again.

use std::{collections::BTreeMap, fmt};

use super::Rng;

/// Declares the classes of faults: variant, name in reports and schedules, what it does.
macro_rules! faults {
    (
        scheduled { $($(#[$doc:meta])* $fault:ident = $name:literal,)* }
        incidental { $($(#[$doc_too:meta])* $other:ident = $other_name:literal,)* }
    ) => {
        /// A class of faults: the one list of the simulator of clients and of that of sessions alone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
            $($(#[$doc_too])* $other,)*
        }

        impl Fault {
            /// All classes.
            pub const ALL: &'static [Self] = &[$(Self::$fault,)* $(Self::$other,)*];

            /// Those that a [`Schedule`] brings about.
            pub const SCHEDULED: &'static [Self] = &[$(Self::$fault,)*];

            /// The name in reports and schedules.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)*
                    $(Self::$other => $other_name,)*
                }
            }
        }
    };
}

faults! {
    scheduled {
        /// Nothing listens.
        Refuse = "refuse",
        /// Attempts to connect get no answer.
        SynHole = "connect-timeout",
        /// Connections are accepted, and nothing else happens on them.
        Silent = "silent",
        /// Connections are reset in the middle of whatever passes.
        Reset = "reset",
        /// Connections are closed properly.
        Finish = "fin",
        /// Nothing passes on a connection any more, for good, without a notice.
        Forget = "half-open",
        /// What the client sends waits.
        HoleUp = "blackhole-up",
        /// What the servers send waits.
        HoleDown = "blackhole-down",
        /// Ways take up to so many milliseconds more.
        Slow = "slow",
        /// So many bytes a second.
        Narrow = "bandwidth",
        /// Reads and writes come in small pieces and with false starts.
        Choppy = "short-io",
        /// A bit of the length or the number of a reply is flipped.
        Flip = "bit-flip",
        /// A byte too many in front of a reply.
        Insert = "extra-byte",
        /// A byte missing at the front of a reply.
        Remove = "missing-byte",
        /// Up and down in quick succession.
        Flap = "flap",
        /// Clients are cut off one by one, and come back in another order.
        Swizzle = "swizzle",
        /// A client is cut off from all servers, most often for longer than its session lives.
        Isolate = "isolate",
        /// Names of servers have no address.
        Unresolved = "no-address",
        /// A member is killed, and started again.
        Kill = "kill-member",
        /// A member stands still for a while.
        Pause = "pause-member",
        /// Another member leads.
        Depose = "new-leader",
        /// A member lags behind by so many milliseconds.
        Lag = "lag",
        /// A session is ended by the servers, whatever its client does.
        Expire = "expire",
        /// A handshake is answered with "no such session".
        Disown = "no-such-session",
        /// A member is cut off from the others.
        CutOff = "cut-off",
        /// A reply with the number of another.
        WrongXid = "wrong-xid",
        /// A reply comes twice.
        Twice = "duplicate-reply",
        /// A reply without a request.
        Unsolicited = "unsolicited-reply",
        /// A length that no frame may have.
        BadLength = "bad-length",
        /// A storm of unrequested events.
        Storm = "event-storm",
        /// A reply never comes, but what is asked later is answered.
        Swallow = "lost-reply",
        /// A member carries out some requests only, and throttles the others, so many in a thousand.
        Throttle = "throttle",
        /// A client stands still for a while.
        Stall = "pause-client",
        /// A client's process is killed.
        Crash = "kill-client",
    }
    incidental {
        /// A client drops all its handles where it is.
        DropHandles = "drop-handles",
        /// A client closes its session, or stops connecting.
        Close = "close",
        /// Bytes arrive in pieces.
        Split = "split",
        /// Bytes arrive on a connection that the client has left.
        Late = "late",
        /// The numbers of a session's requests begin anew.
        XidWrap = "xid-wrap",
        /// Another client deletes a lock's nodes, or takes them away.
        Meddle = "meddle",
    }
}

impl Fault {
    /// Whether it changes bytes in such a way that a client may take them for something else.
    #[must_use]
    pub const fn damages(self) -> bool {
        matches!(self, Self::Flip | Self::Insert | Self::Remove | Self::BadLength)
    }
}

/// How often which fault has hit a client.
pub type Fired = BTreeMap<Fault, u64>;

/// Which processes a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// All clients.
    All,
    /// A client, wherever it is connected.
    Client(u32),
    /// A member of the ensemble.
    Member(usize),
    /// What is between a client and a member.
    Path(u32, usize),
}

/// A fault at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incident {
    /// When it begins, in milliseconds.
    pub at: u64,
    /// What.
    pub fault: Fault,
    /// The target.
    pub target: Target,
    /// For how long, in milliseconds, if it has a duration.
    pub lasts: u64,
    /// How much, if that means something.
    pub amount: u64,
}

impl Target {
    /// Whether this client is meant, or everything of some or all members.
    pub(super) fn concerns(self, client: u32) -> bool {
        match self {
            Self::All | Self::Member(_) => true,
            Self::Client(only) | Self::Path(only, _) => only == client,
        }
    }

    /// Whether what is between this client and this member is meant.
    pub(super) fn is_about(self, client: u32, member: usize) -> bool {
        match self {
            Self::All => true,
            Self::Client(only) => only == client,
            Self::Member(only) => only == member,
            Self::Path(from, to) => (from, to) == (client, member),
        }
    }

    /// Whether a member itself is meant.
    pub(super) fn is_member(self, member: usize) -> bool {
        matches!(self, Self::All) || self == Self::Member(member)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Client(client) => write!(f, "c{client}"),
            Self::Member(member) => write!(f, "m{member}"),
            Self::Path(client, member) => write!(f, "c{client}-m{member}"),
        }
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, fault, target, lasts, amount } = self;
        write!(f, "{at} {} {target} {lasts} {amount}", fault.name())
    }
}

/// All that goes wrong in a run, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule(pub Vec<Incident>);

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|incident| writeln!(f, "{incident}"))
    }
}

/// What a schedule is made for.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// When things begin to go wrong, in milliseconds.
    pub from: u64,
    /// When they have stopped.
    pub until: u64,
    /// Number of clients.
    pub clients: u32,
    /// Number of members.
    pub members: usize,
    /// Longest session timeout, in milliseconds.
    pub session_timeout: u64,
    /// Mean time between two incidents, in milliseconds.
    pub pause: u64,
}

impl Schedule {
    /// Makes a schedule. Each seed favours some classes and leaves others out, so that all seeds together
    /// see more than any mix would.
    #[must_use]
    pub fn swarm(mut rng: Rng, stage: &Stage, may: impl Fn(Fault) -> bool) -> Self {
        let mut weights = Vec::new();
        for &fault in Fault::SCHEDULED {
            let weight = if rng.one_in(3) { 0 } else { rng.scaled(1, 32) };
            if may(fault) {
                weights.push((fault, weight));
            }
        }
        let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
        let mut schedule = Self::default();
        if total == 0 {
            return schedule;
        }
        let mut at = stage.from;
        loop {
            at += rng.within(1, stage.pause * 2);
            if at >= stage.until {
                break;
            }
            let mut draw = rng.below(total);
            for &(fault, weight) in &weights {
                if draw < weight {
                    schedule.add(&mut rng, stage, at, fault);
                    break;
                }
                draw -= weight;
            }
        }
        schedule.0.sort_by_key(|incident| incident.at);
        schedule
    }

    fn add(&mut self, rng: &mut Rng, stage: &Stage, at: u64, fault: Fault) {
        let client = rng.below(u64::from(stage.clients)) as u32;
        let member = rng.index(stage.members);
        let timeout = stage.session_timeout;
        let one = Target::Client(client);
        let path = match rng.below(4) {
            0 => Target::All,
            1 => Target::Member(member),
            2 => Target::Path(client, member),
            _ => one,
        };
        let (target, lasts, amount) = match fault {
            Fault::Refuse | Fault::SynHole | Fault::Silent | Fault::HoleUp | Fault::HoleDown => {
                (path, rng.scaled(50, timeout), 0)
            }
            Fault::Reset | Fault::Finish => (path, 0, 0),
            Fault::Forget => (one, 0, 0),
            Fault::Slow => (path, rng.scaled(1000, 30_000), rng.scaled(5, 5000)),
            Fault::Narrow => (one, rng.scaled(1000, 30_000), rng.scaled(20, 20_000)),
            Fault::Choppy => (path, rng.scaled(1000, 60_000), 0),
            Fault::Flap => return self.flap(rng, at, client),
            Fault::Swizzle => return self.swizzle(rng, stage, at),
            Fault::Isolate => (one, rng.within(timeout / 2, timeout * 2), 0),
            Fault::Unresolved => (one, rng.scaled(50, timeout), rng.scaled(1, 5000)),
            Fault::Kill if rng.one_in(6) => (Target::All, rng.scaled(10, timeout), 0),
            Fault::Kill => (Target::Member(member), rng.scaled(10, timeout), 0),
            Fault::Pause | Fault::CutOff => (Target::Member(member), rng.scaled(100, 30_000), 0),
            Fault::Depose => (Target::All, 0, 0),
            Fault::Lag => (Target::Member(member), rng.scaled(100, 30_000), rng.scaled(1, 5000)),
            Fault::Throttle => {
                (Target::Member(member), rng.scaled(100, 30_000), rng.scaled(20, 1_000))
            }
            Fault::Stall => (one, rng.scaled(100, 30_000), 0),
            Fault::Expire
            | Fault::Crash
            | Fault::Disown
            | Fault::Flip
            | Fault::Insert
            | Fault::Remove
            | Fault::WrongXid
            | Fault::Twice
            | Fault::Unsolicited
            | Fault::BadLength
            | Fault::Storm
            | Fault::Swallow => (one, 0, rng.next() >> 32),
            Fault::DropHandles
            | Fault::Close
            | Fault::Split
            | Fault::Late
            | Fault::XidWrap
            | Fault::Meddle => return,
        };
        let lasts = lasts.min(stage.until - at);
        self.0.push(Incident { at, fault, target, lasts, amount });
    }

    /// Has the network fall apart every now and then, with a member and some clients on one side of it, and all others on
    /// the other.
    pub fn split(&mut self, rng: &mut Rng, stage: &Stage) {
        let mut at = rng.within(stage.from, stage.until);
        while at < stage.until {
            // It takes a leader to confirm what is no longer so; often the last member leads.
            let alone = if rng.one_in(2) { stage.members - 1 } else { rng.index(stage.members) };
            let lasts = rng.within(stage.session_timeout / 2, stage.session_timeout * 3);
            let lasts = lasts.min(stage.until - at);
            let mut add = |fault, target| {
                self.0.push(Incident { at, fault, target, lasts, amount: 0 });
            };
            add(Fault::CutOff, Target::Member(alone));
            for client in (0..stage.clients).filter(|_| rng.one_in(2)) {
                for member in (0..stage.members).filter(|member| *member != alone) {
                    add(Fault::Isolate, Target::Path(client, member));
                }
            }
            at += lasts + rng.within(stage.pause, stage.pause * 20);
        }
        self.0.sort_by_key(|incident| incident.at);
    }

    fn flap(&mut self, rng: &mut Rng, at: u64, client: u32) {
        let period = rng.within(20, 200);
        for turn in 0..rng.within(5, 60) {
            let (fault, target) = (Fault::Flap, Target::Client(client));
            let at = at + turn * 2 * period;
            self.0.push(Incident { at, fault, target, lasts: period, amount: 0 });
        }
    }

    fn swizzle(&mut self, rng: &mut Rng, stage: &Stage, at: u64) {
        let mut clients: Vec<u32> = (0..stage.clients).collect();
        rng.shuffle(&mut clients);
        let step = rng.within(10, 500);
        let all = step * u64::from(stage.clients);
        for (place, client) in (0..).zip(clients) {
            let at = at + place * step;
            let lasts = (all - place * step) + rng.below(all.max(1));
            let (fault, target) = (Fault::Swizzle, Target::Client(client));
            self.0.push(Incident { at, fault, target, lasts, amount: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGE: Stage = Stage {
        from: 10_000,
        until: 500_000,
        clients: 8,
        members: 3,
        session_timeout: 10_000,
        pause: 2000,
    };

    #[test]
    fn each_fault_class_is_in_some_schedules() {
        let schedules: Vec<_> =
            (0..200).map(|seed| Schedule::swarm(Rng::new(seed), &STAGE, |_| true)).collect();
        for &fault in Fault::SCHEDULED {
            let has = |schedule: &&Schedule| schedule.0.iter().any(|it| it.fault == fault);
            let count = schedules.iter().filter(has).count();
            assert!((20..200).contains(&count), "{fault:?} in {count} of 200");
        }
    }
}
