//! How faults are brought about, and how they end.

use super::{
    Fault, Incident, Target,
    cluster::State,
    net::{LinkId, Path},
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
        self.cut.fill(0);
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
        let change =
            |count: &mut u16| *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        match fault {
            Fault::Refuse => self.on_paths(now, target, |path| change(&mut path.refuse)),
            Fault::SynHole => self.on_paths(now, target, |path| change(&mut path.syn_hole)),
            Fault::Silent => self.on_paths(now, target, |path| change(&mut path.silent)),
            Fault::HoleUp => self.on_paths(now, target, |path| change(&mut path.hole_up)),
            Fault::HoleDown => self.on_paths(now, target, |path| change(&mut path.hole_down)),
            Fault::Choppy => self.on_paths(now, target, |path| change(&mut path.choppy)),
            Fault::Slow => {
                let slow = if begins { amount * self.net.per_milli } else { 0 };
                self.on_paths(now, target, |path| path.slow = slow);
            }
            Fault::Narrow => {
                self.on_paths(now, target, |path| {
                    path.bytes_per_second = if begins { amount } else { 0 };
                });
                self.hit_target(fault, target, begins);
            }
            Fault::Isolate | Fault::Flap | Fault::Swizzle => {
                self.on_paths(now, target, |path| change(&mut path.isolated));
                self.hit_target(fault, target, begins);
            }
            Fault::Unresolved => {
                for client in self.clients(target) {
                    self.unresolved[client as usize] =
                        begins.then_some(amount.max(1) * self.net.per_milli);
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
                    self.stall(now, client, begins);
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
        let Incident { fault, target, amount, .. } = incident;
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
                    match begins {
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
                    let cut = &mut self.cut[member];
                    *cut = if begins { *cut + 1 } else { cut.saturating_sub(1) };
                    match *cut > 0 {
                        true => self.ensemble.cut_off(at, Member(member)),
                        false => self.ensemble.rejoin(at, Member(member)),
                    }
                }
            }
            Fault::Lag => {
                let usual = self.ensemble.config().lag;
                let lag = if begins { std::time::Duration::from_millis(amount) } else { usual };
                for member in members {
                    self.ensemble.set_lag(at, Member(member), lag);
                }
            }
            Fault::Throttle => {
                for member in members {
                    let in_a_thousand = if begins { amount } else { 0 };
                    self.ensemble.throttle(at, Member(member), in_a_thousand);
                }
            }
            _ => {}
        }
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
        match target {
            Target::Client(client) | Target::Path(client, _) => vec![client],
            Target::All | Target::Member(_) => (0..self.sessions.len() as u32).collect(),
        }
    }

    fn links(&self, target: Target) -> Vec<LinkId> {
        let client = match target {
            Target::Client(client) | Target::Path(client, _) => Some(client),
            Target::All | Target::Member(_) => None,
        };
        let member = match target {
            Target::Member(member) | Target::Path(_, member) => Some(member),
            Target::All | Target::Client(_) => None,
        };
        let links = self.net.open_links(client);
        links.filter(|&link| member.is_none_or(|member| self.net.ends(link).1 == member)).collect()
    }

    /// Changes paths, and lets go on what they hold back no longer.
    fn on_paths(&mut self, now: u64, target: Target, change: impl Fn(&mut Path)) {
        for client in self.clients(target) {
            for member in 0..self.ensemble.config().members {
                let hit = match target {
                    Target::Member(only) | Target::Path(_, only) => only == member,
                    Target::All | Target::Client(_) => true,
                };
                if hit {
                    change(self.net.path(client, member));
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
