//! Which member leads, which follow, and which are left alone.

use zk_proto::{Time, Zxid};

use super::{
    Ensemble, Member,
    member::{Replica, Service},
    quirks,
};

impl Ensemble {
    /// Kills a member, as SIGKILL would. What it has written down stays.
    pub fn stop(&mut self, now: Time, member: Member) {
        self.act(now, |this| {
            let Some(replica) = this.members.get_mut(member.0).filter(|it| it.up) else { return };
            replica.up = false;
            replica.gives_up = None;
            this.retire(member.0, Service::Nobody);
            this.review(now, None);
        })
    }

    /// Starts a member again.
    pub fn start(&mut self, now: Time, member: Member) {
        self.act(now, |this| {
            let Some(replica) = this.members.get_mut(member.0).filter(|it| !it.up) else {
                return;
            };
            replica.up = true;
            if replica.cut {
                // It finds no leader, whether there is one or not.
                this.give_up(now, member.0);
            }
            this.review(now, None);
        })
    }

    /// Cuts the network between a member and the others; its clients still reach it.
    ///
    /// It takes [`Config::sync_limit`](super::Config::sync_limit) until that is noticed, and a
    /// [tick](super::Config::tick) more if it leads. Until then it answers reads, and writes get no answer; a leader also
    /// answers `sync`, and lets sessions that it knows connect.
    pub fn cut_off(&mut self, now: Time, member: Member) {
        self.act(now, |this| {
            if this.members.len() < 2 {
                return;
            }
            let alone = this.alone(member.0);
            let Some(replica) = this.members.get_mut(member.0).filter(|it| !it.cut) else {
                return;
            };
            replica.cut = true;
            let gives_up = now.after(this.config.sync_limit);
            if replica.service == Service::All {
                replica.gives_up = Some(match alone {
                    Some(_) => gives_up.after(this.config.tick),
                    None => gives_up,
                });
            }
            replica.alone = alone;
            this.review(now, Some(gives_up));
        })
    }

    /// Heals the network between a member and the others.
    pub fn rejoin(&mut self, now: Time, member: Member) {
        self.act(now, |this| {
            let Some(replica) = this.members.get_mut(member.0).filter(|it| it.cut) else {
                return;
            };
            replica.cut = false;
            this.review(now, None);
        })
    }

    /// Adds a server that runs, as if it had been started with the ensemble's configuration. It follows the leader; to have a
    /// vote, clients must let it join by that number. `None`: it cannot reach a leader, or there is one of that number.
    pub fn add(&mut self, now: Time, number: i64) -> Option<Member> {
        self.act(now, |this| {
            if this.standalone || this.members.iter().any(|it| it.number == number) {
                return None;
            }
            let leader = this.leads().and_then(|leader| this.members.get(leader))?;
            let mixed = quirks::watches_mix(this.config.release);
            let mut replica = Replica::new(number, leader.tree.clone(), mixed, this.config.lag);
            (replica.applied, replica.logged) = (leader.applied, leader.logged);
            this.members.push(replica);
            this.join(now, this.members.len() - 1);
            Some(Member(this.members.len() - 1))
        })
    }

    /// Makes the members that can reach each other look for a leader anew: another one, unless that has heard of less. One
    /// that is cut off does not hear of it.
    pub fn depose(&mut self, now: Time) {
        self.act(now, |this| {
            this.deposed = this.leader;
            this.step_down(now);
        })
    }

    pub(super) fn step_down(&mut self, now: Time) {
        self.leader = None;
        for member in 0..self.members.len() {
            if self.members.get(member).is_some_and(Replica::reachable) {
                self.retire(member, Service::Nobody);
            }
        }
        self.review(now, None);
    }

    /// Whether these can decide anything.
    fn has_quorum(&self) -> bool {
        self.membership.has_quorum(self.reachable())
    }

    /// Whether enough members look for a leader: others follow one still, or think that they do.
    fn can_elect(&self) -> bool {
        let looking = self.members.iter().filter(|it| it.looks());
        self.membership.has_quorum(looking.map(|it| it.number))
    }

    /// Which members run, in their order.
    pub(super) fn running(&self) -> impl Iterator<Item = bool> {
        self.members.iter().map(|it| it.up)
    }

    fn reachable(&self) -> impl Iterator<Item = i64> {
        self.members.iter().filter(|it| it.reachable()).map(|it| it.number)
    }

    /// The number of the last leader.
    pub(super) const fn epoch(&self) -> i64 {
        self.zxid.0 >> 32
    }

    /// The leader, if it can decide anything.
    pub(super) fn leads(&self) -> Option<usize> {
        let reachable = |leader: &usize| self.members.get(*leader).is_some_and(|it| it.reachable());
        self.leader.filter(reachable).filter(|_| self.has_quorum())
    }

    /// The leader, if this member can reach it.
    pub(super) fn leader_of(&self, member: usize) -> Option<usize> {
        let replica = self.members.get(member)?;
        replica.follows(self.epoch()).then(|| self.leads()).flatten()
    }

    /// Something about the members has changed: which go on, which give up, and when?
    ///
    /// `unnoticed_until`: the members cannot know yet.
    fn review(&mut self, now: Time, unnoticed_until: Option<Time>) {
        if self.leads().is_some() {
            self.election = None;
            for member in 0..self.members.len() {
                self.join(now, member);
            }
            return;
        }
        match unnoticed_until {
            Some(at) if self.leader.is_some() => {
                for replica in self.members.iter_mut().filter(|it| it.service == Service::All) {
                    replica.gives_up = replica.gives_up.or(Some(at));
                }
            }
            _ => {
                let noticed = |replica: &Replica| replica.gives_up.is_none();
                let retiring: Vec<_> = (0..self.members.len())
                    .filter(|member| self.members.get(*member).is_some_and(noticed))
                    .collect();
                for member in retiring {
                    self.give_up(now, member);
                }
                self.begin_election(now);
            }
        }
    }

    /// A member that sees the leader does what it does.
    fn join(&mut self, now: Time, member: usize) {
        let epoch = self.epoch();
        let Some(replica) = self.members.get_mut(member).filter(|it| it.reachable()) else {
            return;
        };
        replica.gives_up = None;
        if replica.service == Service::All && replica.epoch == epoch {
            // It was away for so short a time that it was not noticed: what it missed comes now.
            if replica.alone.take().is_some() {
                self.sessions.attach_all(&replica.bound);
            }
            self.report_of(now, member);
            self.apply_due(now, member);
            self.resume(member);
            return;
        }
        self.retire(member, Service::Nobody);
        self.apply_all(member);
        if let Some(replica) = self.members.get_mut(member) {
            (replica.service, replica.epoch) = (Service::All, epoch);
        }
    }

    /// A member has found out that it has no leader. There may be another by now.
    pub(super) fn look(&mut self, now: Time, member: usize) {
        self.give_up(now, member);
        if self.leads().is_some() {
            self.join(now, member);
        } else {
            self.begin_election(now);
        }
    }

    fn give_up(&mut self, now: Time, member: usize) {
        let Some(replica) = self.members.get_mut(member) else { return };
        replica.gives_up = None;
        let alone = replica.up && self.config.read_only_mode && !self.standalone;
        self.retire(member, if alone { Service::Readers } else { Service::Nobody });
        if alone {
            self.serve_readers(now, member);
        }
        if self.leader == Some(member) {
            self.leader = None;
        }
    }

    /// Ends what a member does for its clients, and begins something else.
    fn retire(&mut self, member: usize, service: Service) {
        let Some(replica) = self.members.get_mut(member) else { return };
        if replica.service == service && service != Service::Nobody {
            return;
        }
        replica.service = service;
        replica.alone = None;
        if let Some(reader) = replica.reader.take() {
            (replica.tree, replica.applied) = (reader.tree, reader.applied);
        }
        replica.watches.clear();
        replica.bound.clear();
        replica.waiting.clear();
        replica.touched.clear();
        let of = |it: &super::connection::Connection| it.member == member;
        let conns: Vec<_> =
            self.conns.iter().filter(|(_, it)| of(it)).map(|(conn, _)| *conn).collect();
        conns.into_iter().for_each(|conn| self.close(conn));
    }

    /// If enough members see each other, they will have a leader soon; alone, at once.
    fn begin_election(&mut self, now: Time) {
        if self.leads().is_some() || !self.can_elect() {
            return;
        }
        if self.standalone {
            self.elect(now);
        } else if self.election.is_none() {
            self.election = Some(now.after(self.config.election));
        }
    }

    /// The one that has heard most leads; all others learn what it knows.
    pub(super) fn elect(&mut self, now: Time) {
        self.election = None;
        if !self.can_elect() {
            return;
        }
        let may = |(_, it): &(usize, &Replica)| it.looks() && self.membership.votes(it.number);
        let candidates = self.members.iter().enumerate().filter(may);
        let deposed = self.deposed.take();
        let rank =
            |(member, it): &(usize, &Replica)| (it.logged, Some(*member) != deposed, *member);
        let Some((leader, _)) = candidates.max_by_key(rank) else { return };
        self.leader = Some(leader);
        if !self.standalone {
            // A new epoch: the counter begins again.
            let epoch = (self.zxid.0 >> 32).saturating_add(1);
            self.zxid = Zxid(epoch << 32);
        }
        self.sessions.restart(now);
        for member in 0..self.members.len() {
            if self.members.get(member).is_some_and(Replica::looks) {
                self.join(now, member);
            }
        }
        let epoch = self.epoch();
        for replica in self.members.iter_mut().filter(|it| it.follows(epoch)) {
            replica.logged = self.zxid;
            // A lagging member comes to the new epoch when the old one is applied.
            if replica.pending.is_empty() {
                replica.applied = self.zxid;
            }
        }
    }
}
