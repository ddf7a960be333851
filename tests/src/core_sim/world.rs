//! Clients, links and an ensemble, on one schedule.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use zk_proto::{
    SessionId, Time,
    session::{Config, LinkError, Output},
};
use zk_testkit::{
    server::{self, Conn, Ensemble, Member},
    sim::{Rng, Trace},
};

use super::{
    change_log::ChangeLog,
    client::Client,
    link::{Heard, Link},
    plan::{Plan, TICK},
    report::Report,
    schedule::{Happening, Schedule},
};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Longest request of cramped clients: enough to read, write and delete, but to arm only one watch.
const CRAMPED_LEN_MAX: usize = 36;

/// Deliveries after which frail connections have broken.
const FRAIL_MAX: u64 = 8;

/// Everything.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) now: Time,
    pub(crate) schedule: Schedule,
    pub(crate) rng: Rng,
    pub(crate) ensemble: Ensemble,
    pub(crate) clients: Vec<Client>,
    pub(crate) links: Vec<Link>,
    by_conn: BTreeMap<Conn, usize>,
    /// Members that take no connections, and those that say nothing on new ones.
    pub(crate) refusing: BTreeSet<usize>,
    pub(crate) hanging: BTreeSet<usize>,
    /// Sessions that a fault has ended.
    pub(crate) forced: BTreeSet<SessionId>,
    pub(crate) log: ChangeLog,
    tick: Option<Time>,
    pub(crate) deliveries: usize,
    /// Faults that begin before so many deliveries, the next first.
    pub(crate) by_delivery: VecDeque<(usize, usize)>,
    pub(crate) ending: super::run::Ending,
    pub(crate) has_cut_off: bool,
    pub(crate) report: Report,
    pub(crate) trace: Trace,
    pub(crate) violations: Vec<String>,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let mut config = server::Config::default();
        config.members = plan.members;
        config.tick = TICK;
        config.sync_limit = plan.timeout;
        config.keep_history = true;
        config.seed = plan.seed;
        let mut world = Self {
            plan,
            now: Time::ZERO,
            schedule: Schedule::default(),
            rng: Rng::new(plan.seed ^ 0x5EED),
            ensemble: Ensemble::new(config),
            clients: Vec::new(),
            links: Vec::new(),
            by_conn: BTreeMap::new(),
            refusing: BTreeSet::new(),
            hanging: BTreeSet::new(),
            forced: BTreeSet::new(),
            log: ChangeLog::default(),
            tick: None,
            deliveries: 0,
            by_delivery: VecDeque::new(),
            ending: super::run::Ending::default(),
            has_cut_off: false,
            report: Report { runs: 1, ..Report::default() },
            trace: Trace::default(),
            violations: Vec::new(),
        };
        for number in 0..plan.clients {
            let seed = world.rng.next();
            world.clients.push(Client::new(number, world.config(number), seed, Time::ZERO));
            world.settle(number);
            world.plan_ask(number);
        }
        world.pump();
        world
    }

    pub(crate) fn config(&self, client: usize) -> Config {
        let servers = (0..self.plan.members).map(|member| format!("{member}:2181"));
        let mut config = Config::new(servers);
        config.session_timeout = self.plan.timeout;
        if self.plan.is_cramped && client % 2 == 1 {
            config.request_len_max = CRAMPED_LEN_MAX;
        }
        config
    }

    pub(crate) fn latency(&mut self, client: usize) -> Duration {
        let (least, most) = self.plan.latency;
        self.rng.micros(least, most) + self.clients[client].slow
    }

    /// Does what a session says, writes what it wants written, and plans when to wake it.
    pub(crate) fn settle(&mut self, client: usize) {
        while let Some(output) = self.clients[client].session.poll() {
            self.carry_out(client, output);
        }
        self.write(client);
        let Self { clients, violations, now, plan, .. } = self;
        let client_now = &mut clients[client];
        let session = &client_now.session;
        let is_over = session.over().is_some();
        if session.over() != client_now.checker.over || is_over != session.deadline().is_none() {
            violations.push(format!("S4: {:?} is over and not over", client_now.checker.id));
        }
        let longest = now.after(plan.timeout.max(TICK * 2));
        if session.lease().is_some_and(|lease| is_over || lease > longest) {
            violations.push(format!("S4: a lease of {:?} at {now}", session.lease()));
        }
        violations.append(&mut client_now.checker.violations);
        if let Some(due) = session.deadline() {
            if client_now.wake.is_none_or(|wake| due < wake) {
                client_now.wake = Some(due);
                self.schedule.plan(due.max(*now), Happening::Wake { client });
            }
        }
    }

    fn carry_out(&mut self, client: usize, output: Output<u64, u64>) {
        match output {
            Output::Dial { server } => self.dial(client, &server),
            Output::HangUp => self.hang_up(client),
            Output::Failed { .. } => {
                if let Some(link) = self.clients[client].link.take() {
                    self.links[link].is_held = false;
                }
            }
            Output::Reply { token, outcome } => {
                self.clients[client].checker.concluded(token, &outcome, &self.log);
            }
            Output::Watch { watcher, notice } => {
                self.clients[client].checker.noticed(watcher, &notice, &self.log);
            }
            Output::State(state) => {
                self.clients[client].checker.state(&state);
                if self.clients[client].checker.over.is_some() {
                    let at = self.now.after(self.rng.micros(1_000, 400_000));
                    self.schedule.plan(at, Happening::Reborn { client });
                }
            }
            other => self.violations.push(format!("nobody has asked for {other:?}")),
        }
    }

    fn dial(&mut self, client: usize, server: &str) {
        let member = server.split(':').next().and_then(|member| member.parse().ok());
        let member = Member(member.expect("servers are named by their numbers"));
        if !self.clients[client].dials(member, self.plan.members) {
            self.violations
                .push(format!("L1: {member:?} is dialed before the others had their turn"));
        }
        let link = self.links.len();
        self.links.push(Link::new(client, member));
        self.clients[client].link = Some(link);
        if self.clients[client].is_frail {
            self.weaken(link);
        }
        if !self.clients[client].is_isolated {
            let at = self.now.after(self.latency(client));
            self.schedule.plan(at, Happening::Dialed { link });
        }
    }

    /// A connection is to break after a few deliveries.
    pub(crate) fn weaken(&mut self, link: usize) {
        let most = 1 + self.rng.below(FRAIL_MAX);
        self.links[link].frail = Some(self.rng.below(most));
    }

    /// A connection attempt has reached its server.
    pub(crate) fn dialed(&mut self, link: usize) {
        let Link { client, member, is_held, .. } = self.links[link];
        if !is_held {
            return;
        }
        let hangs = self.hanging.contains(&member.0) || self.clients[client].is_isolated;
        let mut outcome = Ok(());
        if self.refusing.contains(&member.0) {
            outcome = Err(LinkError::Refused);
        } else if hangs {
            self.links[link].up.is_hole = true;
        } else {
            match self.ensemble.accept(self.now, member, PEER) {
                Some(conn) => {
                    self.links[link].conn = Some(conn);
                    self.by_conn.insert(conn, link);
                }
                None => outcome = Err(LinkError::Refused),
            }
        }
        self.links[link].is_made = outcome.is_ok();
        self.clients[client].session.dialed(self.now, outcome);
        self.pump();
        self.settle(client);
    }

    fn hang_up(&mut self, client: usize) {
        let Some(link) = self.clients[client].link.take() else {
            self.violations.push(format!("client {client} hangs up on nobody"));
            return;
        };
        let at = self.now.after(self.latency(client));
        let held = &mut self.links[link];
        held.is_held = false;
        let at = held.up.arrival(at);
        self.schedule.plan(at, Happening::UpEnd { link });
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, client: usize) {
        let Some(link) = self.clients[client].link else { return };
        if self.clients[client].session.outbound().is_empty() {
            return;
        }
        let outbound = self.clients[client].session.outbound();
        self.links[link].tap.sees(outbound);
        if self.links[link].is_full {
            return;
        }
        let in_crumbs = self.clients[client].in_crumbs;
        let outbound_len = self.clients[client].session.outbound().len();
        let all = !in_crumbs && (self.plan.is_scripted || self.rng.per_mille(950));
        let count = if all { outbound_len } else { 1 + self.rng.index(outbound_len.min(40)) };
        let bytes = self.clients[client].session.outbound().split_to(count).freeze();
        for token in self.links[link].tap.takes(count) {
            self.clients[client].checker.begun(token);
        }
        if count < outbound_len {
            self.links[link].is_full = true;
            let at = self.now.after(self.rng.micros(10, 2_000));
            self.schedule.plan(at, Happening::Writable { link });
        }
        let at = self.now.after(self.latency(client));
        let at = self.links[link].up.arrival(at);
        self.schedule.plan(at, Happening::Up { link, bytes });
    }

    /// Does what the ensemble says, learns what has happened, and plans when to wake it.
    pub(crate) fn pump(&mut self) {
        self.log.learn(self.ensemble.history());
        while let Some(output) = self.ensemble.poll() {
            match output {
                server::Output::Write { conn, bytes } => self.send_down(conn, &bytes),
                server::Output::Close { conn } => {
                    let Some(link) = self.by_conn.remove(&conn) else { continue };
                    self.links[link].conn = None;
                    let at = self.now.after(self.latency(self.links[link].client));
                    let at = self.links[link].down.arrival(at);
                    self.schedule.plan(at, Happening::DownEnd { link });
                }
            }
        }
        self.look_at_ends();
        if let Some(due) = self.ensemble.deadline() {
            if self.tick.is_none_or(|tick| due < tick) {
                self.tick = Some(due);
                self.schedule.plan(due.max(self.now), Happening::Tick);
            }
        }
    }

    fn send_down(&mut self, conn: Conn, bytes: &bytes::Bytes) {
        let Some(&link) = self.by_conn.get(&conn) else { return };
        let client = self.links[link].client;
        let mut rest = bytes.clone();
        while !rest.is_empty() {
            let whole = !self.clients[client].in_crumbs;
            let split = !self.plan.is_scripted && self.rng.per_mille(self.plan.splits);
            let count = match (whole, split) {
                (true, false) => rest.len(),
                (true, true) => 1 + self.rng.index(rest.len()),
                (false, _) => (1 + self.rng.index(3)).min(rest.len()),
            };
            let bytes = rest.split_to(count);
            let at = self.now.after(self.latency(client));
            let at = self.links[link].down.arrival(at);
            self.schedule.plan(at, Happening::Down { link, bytes });
        }
    }

    /// A session that has ended by itself must not have been leased at that time.
    fn look_at_ends(&mut self) {
        for end in std::mem::take(&mut self.log.ends) {
            let is_its = |client: &&Client| client.checker.id == Some(end.session);
            let Some(client) = self.clients.iter().find(is_its) else { continue };
            if client.is_closing || self.forced.contains(&end.session) {
                continue;
            }
            self.report.met("expired by servers");
            // A member that is cut off answers heartbeats of which its leader does not know.
            let is_sound = !self.has_cut_off;
            if is_sound && client.session.lease().is_some_and(|lease| lease > end.at) {
                let lease = client.session.lease();
                self.violations.push(format!("S4: {end:?} in spite of a lease until {lease:?}"));
            }
        }
    }

    pub(crate) fn tick(&mut self) {
        self.tick = None;
        self.ensemble.elapsed(self.now);
        self.pump();
    }

    /// Bytes or an end of a client reach the server.
    pub(crate) fn arrive_up(&mut self, link: usize, bytes: Option<&[u8]>) {
        let found = &mut self.links[link];
        if found.is_dead || found.up.is_hole {
            return;
        }
        let Some(conn) = found.conn else { return };
        match bytes {
            Some(bytes) => self.ensemble.received(self.now, conn, bytes),
            None => {
                found.conn = None;
                self.by_conn.remove(&conn);
                self.ensemble.hung_up(self.now, conn);
            }
        }
        self.pump();
    }

    /// Bytes or an end of a server reach the client.
    pub(crate) fn arrive_down(&mut self, link: usize, bytes: Option<&[u8]>) {
        let found = &mut self.links[link];
        let client = found.client;
        if found.is_dead || found.down.is_hole || !found.is_held {
            return;
        }
        match &mut found.frail {
            Some(0) => return self.reset(link),
            Some(left) => *left -= 1,
            None => {}
        }
        match bytes {
            Some(bytes) => {
                let heard = found.tap.hears(bytes);
                let client = &mut self.clients[client];
                for heard in heard {
                    match heard {
                        Heard::Restored(zxid, rearmed) => {
                            client.checker.restored.push((zxid, rearmed));
                        }
                        Heard::Refused(mark) => client.checker.refused(mark),
                    }
                }
                client.session.inbound().extend_from_slice(bytes);
                client.session.received(self.now);
            }
            None => self.lose(link, LinkError::Closed),
        }
        self.settle(client);
    }

    /// The client hears that its connection is gone.
    fn lose(&mut self, link: usize, why: LinkError) {
        let found = &mut self.links[link];
        found.is_held = false;
        let client = &mut self.clients[found.client];
        if found.is_made {
            client.link = None;
            client.session.hung_up(self.now, why);
        } else {
            client.session.dialed(self.now, Err(why));
        }
    }

    /// Both sides hear of a reset.
    pub(crate) fn reset(&mut self, link: usize) {
        let found = &mut self.links[link];
        found.is_dead = true;
        let client = found.client;
        if let Some(conn) = found.conn.take() {
            self.by_conn.remove(&conn);
            self.ensemble.hung_up(self.now, conn);
            self.pump();
        }
        if self.links[link].is_held {
            self.lose(link, LinkError::Reset);
        }
        self.settle(client);
    }
}
