//! A member that cannot reach the others, at the end of a run in which nothing else goes wrong any more. Clients that read
//! from it have to find the others: its connections are sound.

use zk_testkit::sim::{Fault, Incident, Rng, Schedule, Stage, Target};

/// Shortest run in which there is time for this.
pub(super) const DURATION_MIN: u64 = 180_000;

/// How long it lasts, in milliseconds.
pub(super) const LASTS: u64 = 70_000;

/// From when on sessions end, in milliseconds behind its beginning: this member has noticed by then, and serves those that
/// begin another one. It knows none of the others' sessions.
const NOTICED: u64 = 19_000;

/// Until when they do: the others have a leader, too.
const BREAKS: u64 = 30_000;

/// How often each client's session ends meanwhile.
const ENDS: u64 = 3;

/// How long before the end it is looked who reads from this member. A search that was in vain as long as the others had no
/// leader pauses for as long again.
pub(super) const LOOKS: u64 = 20_000;

/// Which member is left alone: the others are to be a quorum.
pub(super) fn member(rng: &mut Rng, members: usize) -> Option<usize> {
    (members >= 3).then(|| rng.index(members))
}

/// From here on only this goes wrong.
pub(super) fn leave(schedule: &mut Schedule, member: usize, stage: &Stage, rng: &mut Rng) {
    let from = stage.until - LASTS;
    schedule.0.retain(|incident| incident.at < from);
    for incident in &mut schedule.0 {
        incident.lasts = incident.lasts.min(from - incident.at);
    }
    let mut add = |at, fault, target, lasts| {
        schedule.0.push(Incident { at, fault, target, lasts, amount: 0 });
    };
    add(from, Fault::CutOff, Target::Member(member), LASTS);
    for client in 0..stage.clients {
        for _ in 0..ENDS {
            let at = from + rng.within(NOTICED, BREAKS);
            add(at, Fault::Expire, Target::Client(client), 0);
        }
    }
    schedule.0.sort_by_key(|incident| incident.at);
}
