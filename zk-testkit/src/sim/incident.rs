//! How faults are brought about, and how they end.

use std::time::Duration;

use super::{
    Fault, Incident, Target,
    net::{LinkId, Path},
    state::State,
    trace::Actor,
};
use crate::server::Member;

impl State {
    /// A fault of the schedule begins (even number) or ends (odd).
    pub(super) fn incident(&mut self, now: u64, what: u64) {
        let Some(&incident) = self.schedule.0.get((what / 2) as usize) else { return };
        if self.healed {
            return;
        }
        let begins = what % 2 == 0;
        if begins {
            self.trace.note(now, actor(incident.target), incident.fault.name(), incident.lasts);
            self.net.remind(now + incident.lasts * self.net.per_milli, what + 1);
        }
        self.inflict(now, incident, begins);
    }

    /// A fault begins that is not in the schedule yet.
    pub fn strike(&mut self, incident: Incident) {
        let now = self.now();
        let number = self.schedule.0.len() as u64;
        self.schedule.0.push(Incident { at: now / self.net.per_milli, ..incident });
        self.incident(now, number * 2);
    }

    /// All faults end, and no more of the schedule come.
    pub fn heal(&mut self) {
        let now = self.now();
        self.healed = true;
        self.trace.note(now, Actor::World, "heal", 0);
        self.net.heal_all(now);
        self.unresolved.fill(None);
        self.underway.clear();
        self.forgeries.iter_mut().for_each(Vec::clear);
        for client in 0..self.sessions.len() as u32 {
            self.stall(now, client, false);
        }
        for member in 0..self.ensemble.config().members {
            let member = Member(member);
            let at = self.time(now);
            self.ensemble.start(at, member);
            self.ensemble.rejoin(at, member);
            self.ensemble.set_lag(at, member, self.ensemble.config().lag);
            self.ensemble.throttle(at, member, 0);
        }
    }

    fn inflict(&mut self, now: u64, incident: Incident, begins: bool) {
        let Incident { fault, target, amount, .. } = incident;
        if begins {
            self.underway.push(incident);
        } else if let Some(at) = self.underway.iter().position(|it| *it == incident) {
            self.underway.swap_remove(at);
        }
        let change =
            |count: &mut u16| *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        match fault {
            Fault::Refuse => self.on_paths(now, target, |path| change(&mut path.refuse)),
            Fault::SynHole => self.on_paths(now, target, |path| change(&mut path.syn_hole)),
            Fault::Silent => self.on_paths(now, target, |path| change(&mut path.silent)),
            Fault::HoleUp => self.on_paths(now, target, |path| change(&mut path.hole_up)),
            Fault::HoleDown => self.on_paths(now, target, |path| change(&mut path.hole_down)),
            Fault::Choppy => self.on_paths(now, target, |path| change(&mut path.choppy)),
            Fault::Slow => self.measure_paths(now, fault, target),
            Fault::Narrow => {
                self.measure_paths(now, fault, target);
                self.hit_target(fault, target, begins);
            }
            Fault::Isolate | Fault::Flap | Fault::Swizzle => {
                self.on_paths(now, target, |path| change(&mut path.isolated));
                self.hit_target(fault, target, begins);
            }
            Fault::Unresolved => {
                for client in self.clients(target) {
                    let worst = self.worst(fault, |it| it.concerns(client));
                    self.unresolved[client as usize] =
                        worst.map(|amount| amount.max(1) * self.net.per_milli);
                }
            }
            _ if fault_of_servers(fault) => self.on_servers(now, incident, begins),
            _ if !begins && fault != Fault::Stall => {}
            Fault::Reset | Fault::Finish | Fault::Forget => {
                for link in self.links(target) {
                    match fault {
                        Fault::Reset => self.net.reset(now, link),
                        Fault::Finish => self.net.finish(now, link),
                        _ => self.net.forget(link),
                    }
                }
            }
            Fault::Stall => {
                self.hit_target(fault, target, begins);
                for client in self.clients(target) {
                    let stalls = self.worst(fault, |it| it.concerns(client));
                    self.stall(now, client, stalls.is_some());
                }
            }
            Fault::Crash => {
                self.hit_target(fault, target, true);
                self.crashed.extend(self.clients(target));
            }
            // What is left are forgeries.
            _ => {
                for client in self.clients(target) {
                    self.forgeries[client as usize].push((fault, amount));
                }
            }
        }
    }

    fn on_servers(&mut self, now: u64, incident: Incident, begins: bool) {
        let Incident { fault, target, .. } = incident;
        let at = self.time(now);
        if fault != Fault::Expire {
            self.hit_target(fault, target, begins);
        }
        let members: Vec<usize> = match target {
            Target::Member(member) => vec![member],
            _ => (0..self.ensemble.config().members).collect(),
        };
        match fault {
            Fault::Depose if begins => self.ensemble.depose(at),
            Fault::Expire if begins => {
                for client in self.clients(target) {
                    let session = self.session(client);
                    if session.0 != 0 && !self.expired.contains(&session) {
                        self.hit(fault);
                        self.expired.push(session);
                        if let Some(observer) = &mut self.observer {
                            observer.expires(now, session);
                        }
                        self.ensemble.expire(at, session);
                    }
                }
            }
            Fault::Kill => {
                for member in members {
                    match self.befalls(fault, member).is_some() {
                        true => self.ensemble.stop(at, Member(member)),
                        false => self.ensemble.start(at, Member(member)),
                    }
                }
            }
            Fault::CutOff | Fault::Pause => {
                if fault == Fault::Pause {
                    self.on_paths(now, target, |path| {
                        path.paused =
                            if begins { path.paused + 1 } else { path.paused.saturating_sub(1) };
                    });
                }
                for member in members {
                    let cuts = [Fault::CutOff, Fault::Pause];
                    match cuts.iter().any(|fault| self.befalls(*fault, member).is_some()) {
                        true => self.ensemble.cut_off(at, Member(member)),
                        false => self.ensemble.rejoin(at, Member(member)),
                    }
                }
            }
            Fault::Lag => {
                let usual = self.ensemble.config().lag;
                for member in members {
                    let lag = self.befalls(fault, member).map(Duration::from_millis);
                    let lag = lag.unwrap_or(usual);
                    self.ensemble.set_lag(at, Member(member), lag);
                }
            }
            Fault::Throttle => {
                for member in members {
                    let in_a_thousand = self.befalls(fault, member).unwrap_or_default();
                    self.ensemble.throttle(at, Member(member), in_a_thousand);
                }
            }
            _ => {}
        }
    }

    /// The greatest amount of a fault, of those that have begun there and not ended. Where several overlap, the end of one is
    /// not the end of all.
    fn worst(&self, fault: Fault, there: impl Fn(Target) -> bool) -> Option<u64> {
        let there = |it: &&Incident| it.fault == fault && there(it.target);
        self.underway.iter().filter(there).map(|it| it.amount).max()
    }

    fn befalls(&self, fault: Fault, member: usize) -> Option<u64> {
        self.worst(fault, |it| it.is_member(member))
    }

    /// Makes paths as slow, or as narrow, as the worst of what is underway there.
    fn measure_paths(&mut self, now: u64, fault: Fault, target: Target) {
        let underway = self.underway.iter().filter(|it| it.fault == fault);
        let underway: Vec<Incident> = underway.copied().collect();
        let per_milli = self.net.per_milli;
        self.on_paths_of(now, target, |client, member, path| {
            let there = underway.iter().filter(|it| it.target.is_about(client, member));
            let amounts = there.map(|it| it.amount);
            match fault {
                Fault::Slow => path.slow = amounts.max().unwrap_or_default() * per_milli,
                _ => path.bytes_per_second = amounts.min().unwrap_or_default(),
            }
        });
    }

    fn stall(&mut self, now: u64, client: u32, begins: bool) {
        let process = Self::process(client);
        let (sum, since) = &mut self.stalls[client as usize];
        if begins {
            since.get_or_insert(now);
            self.tasks.stall(process);
        } else if let Some(begun) = since.take() {
            *sum += now - begun;
            self.tasks.resume(process);
        }
    }

    /// Counts a fault with all that are hit by it as it begins.
    fn hit_target(&mut self, fault: Fault, target: Target, begins: bool) {
        if !begins {
            return;
        }
        for client in self.clients(target) {
            let connected_there = match target {
                Target::Member(member) => {
                    let links: Vec<LinkId> = self.net.open_links(Some(client)).collect();
                    links.into_iter().any(|link| self.net.ends(link).1 == member)
                }
                _ => true,
            };
            if connected_there {
                self.hit(fault);
            }
        }
    }

    fn clients(&self, target: Target) -> Vec<u32> {
        (0..self.sessions.len() as u32).filter(|client| target.concerns(*client)).collect()
    }

    fn links(&self, target: Target) -> Vec<LinkId> {
        let is_hit = |link: &LinkId| {
            let (client, member) = self.net.ends(*link);
            target.is_about(client, member)
        };
        self.net.open_links(None).filter(is_hit).collect()
    }

    fn on_paths(&mut self, now: u64, target: Target, change: impl Fn(&mut Path)) {
        self.on_paths_of(now, target, |_, _, path| change(path));
    }

    /// Changes paths, and lets go on what they hold back no longer.
    fn on_paths_of(&mut self, now: u64, target: Target, change: impl Fn(u32, usize, &mut Path)) {
        for client in self.clients(target) {
            for member in 0..self.ensemble.config().members {
                if target.is_about(client, member) {
                    change(client, member, self.net.path(client, member));
                    for link in self.net.of_path(client, member) {
                        self.net.release(now, link);
                    }
                }
            }
        }
    }
}

const fn fault_of_servers(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Kill
            | Fault::Pause
            | Fault::Depose
            | Fault::Lag
            | Fault::Expire
            | Fault::CutOff
            | Fault::Throttle
    )
}

const fn actor(target: Target) -> Actor {
    match target {
        Target::All => Actor::World,
        Target::Client(client) | Target::Path(client, _) => Actor::Client(client),
        Target::Member(member) => Actor::Member(member as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        server::Config,
        sim::{Schedule, Setup},
    };

    /// A state with three clients and members, and a fault at each of these times for so long, of this strength.
    fn state(fault: Fault, target: Target, times: &[(u64, u64, u64)]) -> State {
        let incident = |&(at, lasts, amount)| Incident { at, fault, target, lasts, amount };
        let servers = Config { members: 3, ..Config::default() };
        State::without_runtime(Setup {
            seed: 1,
            clients: 3,
            servers,
            latency: (1, 1),
            schedule: Schedule(times.iter().map(incident).collect()),
        })
    }

    /// Lets time pass until so many milliseconds.
    fn until(state: &mut State, millis: u64) {
        while let Some(at) = state.next_at().filter(|at| *at <= millis * 1000) {
            state.advance(at);
        }
    }

    /// What each fault with a strength leaves, with the first of two at work, with both, with the second, and with none.
    fn strengths(fault: Fault, target: Target, read: impl Fn(&mut State) -> u64) -> [u64; 4] {
        let mut state = state(fault, target, &[(10, 30, 70), (20, 40, 50)]);
        [15, 25, 45, 65].map(|millis| {
            until(&mut state, millis);
            read(&mut state)
        })
    }

    #[test]
    fn end_of_one_fault_is_not_the_end_of_another() {
        let slow = |state: &mut State| state.net.path(1, 2).slow / 1000;
        let narrow = |state: &mut State| state.net.path(1, 2).bytes_per_second;
        for target in [Target::All, Target::Client(1), Target::Member(2), Target::Path(1, 2)] {
            assert_eq!(strengths(Fault::Slow, target, slow), [70, 70, 50, 0], "{target}");
            assert_eq!(strengths(Fault::Narrow, target, narrow), [70, 50, 50, 0], "{target}");
        }
        let unresolved = |state: &mut State| state.unresolved[1].unwrap_or_default() / 1000;
        assert_eq!(strengths(Fault::Unresolved, Target::Client(1), unresolved), [70, 70, 50, 0]);
        let stalls = |state: &mut State| u64::from(state.is_stalled(1));
        assert_eq!(strengths(Fault::Stall, Target::Client(1), stalls), [1, 1, 1, 0]);
        for fault in [Fault::Kill, Fault::CutOff, Fault::Pause] {
            let out_of_touch =
                |state: &mut State| u64::from(!state.ensemble.is_in_touch(Member(0)));
            let times = strengths(fault, Target::Member(0), out_of_touch);
            assert_eq!(times[..3], [1; 3], "{fault:?}");
        }
    }

    /// One that goes on elsewhere changes nothing here.
    #[test]
    fn end_of_a_fault_is_its_own() {
        let mut state = state(Fault::Slow, Target::Path(1, 2), &[(10, 10, 70)]);
        until(&mut state, 15);
        assert_eq!(state.net.path(1, 1).slow, 0);
        assert_eq!(state.net.path(2, 2).slow, 0);
        until(&mut state, 25);
        assert_eq!(state.net.path(1, 2).slow, 0);
    }
}
