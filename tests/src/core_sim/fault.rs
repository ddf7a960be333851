//! What goes wrong, as data: a schedule of faults can be repeated, enumerated and shrunk.

use std::time::Duration;

use zk_testkit::sim::{Fault, Incident, Rng, Schedule, Stage, Target};

/// What can go wrong with a client, or with the link that it has at that moment.
const OF_CLIENT: [Fault; 11] = [
    Fault::Reset,
    Fault::Finish,
    Fault::Forget,
    Fault::HoleUp,
    Fault::HoleDown,
    Fault::Slow,
    Fault::Choppy,
    Fault::Flap,
    Fault::Stall,
    Fault::Isolate,
    Fault::Expire,
];

/// What can go wrong with a member, which closes all its connections if these finish.
const OF_MEMBER: [Fault; 6] =
    [Fault::Kill, Fault::CutOff, Fault::Lag, Fault::Refuse, Fault::Silent, Fault::Finish];

/// Whether sessions are to bear it: their servers tell no lies, their processes live, and what is under way when
/// all is well again arrives soon.
pub(crate) const fn is_borne(fault: Fault) -> bool {
    !matches!(
        fault,
        Fault::Flip
            | Fault::Insert
            | Fault::Remove
            | Fault::WrongXid
            | Fault::Twice
            | Fault::Unsolicited
            | Fault::BadLength
            | Fault::Storm
            | Fault::Swallow
            | Fault::Throttle
            | Fault::Disown
            | Fault::Unresolved
            | Fault::Crash
            | Fault::Narrow
    )
}

/// Whether a member may serve sessions for a while that its leader has ended.
pub(crate) const fn isolates_members(fault: Fault) -> bool {
    matches!(fault, Fault::CutOff | Fault::Pause)
}

/// A fault that is slow for a session with this timeout, but not hopeless.
const fn amount(timeout: Duration) -> u64 {
    timeout.as_millis() as u64 / 8
}

/// All faults, for so many clients and members with such a timeout.
pub(crate) fn all(clients: u32, members: usize, timeout: Duration, lasts: u64) -> Vec<Incident> {
    let of_clients = OF_CLIENT
        .into_iter()
        .flat_map(|fault| (0..clients).map(move |number| (fault, Target::Client(number))));
    let of_members = OF_MEMBER
        .into_iter()
        .flat_map(|fault| (0..members).map(move |number| (fault, Target::Member(number))));
    let all = of_clients.chain(of_members).chain([(Fault::Depose, Target::All)]);
    let amount = amount(timeout);
    all.map(|(fault, target)| Incident { at: 0, fault, target, lasts, amount }).collect()
}

/// A schedule, made up.
pub(crate) fn schedule(rng: &mut Rng, stage: &Stage, timeout: Duration) -> Schedule {
    // Only of members that are in touch can it be said which sessions they let live.
    let with_isolated = rng.one_in(2);
    let may = |fault| is_borne(fault) && (with_isolated || !isolates_members(fault));
    let mut schedule = Schedule::swarm(rng.fork(stage.until), stage, may);
    for incident in &mut schedule.0 {
        incident.lasts = incident.lasts.min(stage.session_timeout * 2);
        if matches!(incident.fault, Fault::Slow | Fault::Lag) {
            incident.amount = incident.amount.min(amount(timeout));
        }
    }
    if with_isolated && stage.members > 1 && rng.one_in(2) {
        schedule.split(rng, stage);
    }
    schedule
}

/// Has a member be alone for long enough to serve those that only read, of whom some reach no other for a while.
pub(crate) fn leave_alone(schedule: &mut Schedule, rng: &mut Rng, stage: &Stage) {
    let timeout = stage.session_timeout;
    let at = rng.within(stage.from, stage.until / 2);
    let (alone, lasts) = (rng.index(stage.members), timeout * 5);
    let mut add = |at, fault, target, lasts| {
        schedule.0.push(Incident { at, fault, target, lasts, amount: 0 });
    };
    add(at, Fault::CutOff, Target::Member(alone), lasts);
    for client in 0..stage.clients {
        let (at, lasts) =
            (at + rng.within(timeout / 2, timeout * 2), rng.within(timeout / 4, timeout * 2));
        for member in (0..stage.members).filter(|member| *member != alone) {
            add(at, Fault::Isolate, Target::Path(client, member), lasts);
        }
        add(at, Fault::Reset, Target::Client(client), 0);
    }
    schedule.0.sort_by_key(|incident| incident.at);
}

/// Times that connections are made to break between two deliveries.
const BREAKS_MAX: u64 = 24;

/// Deliveries to and from one client in a second, about.
const DELIVERIES_PER_SECOND: u64 = 60;

/// Connections that break between two deliveries, made up: between two events of one transaction, or two
/// answers that arm watches again, there is hardly any time.
pub(crate) fn breaks(rng: &mut Rng, stage: &Stage) -> Vec<(u64, Incident)> {
    let of_link = [Fault::Reset, Fault::Finish, Fault::HoleDown];
    let deliveries = stage.until / 1000 * u64::from(stage.clients) * DELIVERIES_PER_SECOND;
    let one = |rng: &mut Rng| {
        let target = Target::Client(rng.below(u64::from(stage.clients)) as u32);
        let delivery = rng.below(deliveries);
        let fault = if rng.per_mille(500) { Fault::Flap } else { *rng.pick(&of_link) };
        (delivery, Incident { at: 0, fault, target, lasts: rng.within(1, 2_000), amount: 0 })
    };
    let mut breaks: Vec<_> = (0..rng.below(BREAKS_MAX)).map(|_| one(rng)).collect();
    breaks.sort_unstable();
    breaks
}
