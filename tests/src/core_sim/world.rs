//! Clients, and between them a network and an ensemble.

use std::{task::Waker, time::Duration};

use bytes::Buf as _;
use zk_proto::{
    Time,
    session::{self, Config, LinkError, Output, ProbeAnswer},
};
use zk_testkit::{
    server::{self, Member},
    sim::{ConnectorId, Fault, Rng, Setup, State},
};

use super::{
    change_log::ChangeLog,
    client::Client,
    dialing::Moment,
    fault::isolates_members,
    plan::{ELECTION, Plan, TICK},
    report::Report,
    tap::{Heard, Said, Tap},
};

/// Longest request of cramped clients: enough to read, write and delete, but to arm only one watch.
const CRAMPED_LEN_MAX: usize = 36;

/// Reads after which frail connections have broken.
const FRAIL_MAX: u64 = 8;

/// Everything. Numbers that say when are microseconds.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) state: State,
    pub(crate) rng: Rng,
    pub(crate) clients: Vec<Client>,
    pub(crate) log: ChangeLog,
    pub(crate) deliveries: u64,
    /// How many of the faults that begin before a delivery have begun.
    pub(crate) struck: usize,
    pub(crate) ending: super::run::Ending,
    /// When it is looked at how far the run is.
    pub(crate) phase_at: u64,
    pub(crate) report: Report,
    pub(crate) violations: Vec<String>,
}

/// Servers are named by their numbers.
fn member_of(server: &str) -> usize {
    let member = server.split(':').next().and_then(|member| member.parse().ok());
    member.expect("it is a number")
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let mut servers = server::Config::default();
        servers.members = plan.members;
        servers.tick = TICK;
        servers.sync_limit = plan.timeout;
        servers.election = ELECTION;
        servers.keep_history = true;
        servers.seed = plan.seed;
        servers.release = plan.release;
        servers.read_only_mode = plan.has_readers;
        let Plan { seed, clients, latency, ref schedule, .. } = *plan;
        let state = State::without_runtime(Setup {
            seed,
            clients,
            servers,
            latency,
            schedule: schedule.clone(),
        });
        let mut world = Self {
            plan,
            phase_at: state.at(Time::new(plan.heal)),
            state,
            rng: Rng::new(seed ^ 0x5EED),
            clients: Vec::new(),
            log: ChangeLog::of(plan.release),
            deliveries: 0,
            struck: 0,
            ending: super::run::Ending::default(),
            report: Report { runs: 1, ..Report::default() },
            violations: Vec::new(),
        };
        for number in 0..clients {
            let seed = world.rng.next();
            let mut client = Client::new(number, world.config(number as usize), seed, Time::ZERO);
            client.rely(world.relies(number as usize));
            world.clients.push(client);
            world.settle(number as usize);
            world.plan_ask(number as usize);
        }
        world
    }

    pub(crate) fn now(&self) -> Time {
        self.state.time(self.state.now())
    }

    /// The present, for a client.
    fn moment(&self, client: usize) -> Moment {
        Moment { at: self.state.now(), stalled: self.state.stalled(client as u32) }
    }

    pub(crate) fn config(&self, client: usize) -> Config {
        let servers = (0..self.plan.members).map(|member| format!("{member}:2181"));
        let mut config = Config::new(servers);
        config.session_timeout = self.plan.timeout;
        if self.plan.is_cramped && client % 2 == 1 {
            config.request_len_max = CRAMPED_LEN_MAX;
        }
        config.read_only = self.plan.reads_alone(client);
        config
    }

    /// Whether a client's user relies on its session.
    pub(crate) fn relies(&self, client: usize) -> bool {
        !self.plan.is_scripted && client % 2 == 0
    }

    /// When a client has to go on by itself.
    pub(crate) fn due(&self, number: usize) -> Option<u64> {
        let client = &self.clients[number];
        if self.state.is_stalled(number as u32) {
            return None;
        }
        let deadline = client.session.deadline().map(|deadline| self.state.at(deadline));
        let probed = client.dialing.due();
        let planned = [deadline, client.writable_at, client.reborn_at, Some(client.ask_at), probed];
        planned.into_iter().flatten().min()
    }

    /// A client does all that it can, as far as its process runs.
    pub(crate) fn turn(&mut self, number: usize) {
        if self.state.is_stalled(number as u32) {
            return;
        }
        let now = self.state.now();
        if self.clients[number].reborn_at.is_some_and(|at| at <= now) {
            self.reborn(number);
        }
        self.connect(number);
        self.read(number);
        let (time, moment) = (self.now(), self.moment(number));
        let client = &mut self.clients[number];
        client.writable_at.take_if(|at| *at <= now);
        if let Some((server, answer)) = client.dialing.answer(moment) {
            client.session.probed(time, &server, answer);
            self.settle(number);
            let client = &self.clients[number];
            let stays = answer == ProbeAnswer::ReadWrite && client.dialing.is_searching();
            if stays && !client.is_closing {
                self.violations.push(format!("L1: client {number} does not go to {server}"));
            }
        }
        let client = &mut self.clients[number];
        if client.session.deadline().is_some_and(|deadline| deadline <= time) {
            client.session.elapsed(time);
        }
        self.settle(number);
        if self.clients[number].ask_at <= now {
            self.ask(number);
        }
    }

    /// Does what a session says, and writes what it wants written.
    pub(crate) fn settle(&mut self, number: usize) {
        while let Some(output) = self.clients[number].session.poll() {
            self.carry_out(number, output);
        }
        self.write(number);
        let (now, moment) = (self.now(), self.moment(number));
        let Self { clients, violations, plan, .. } = self;
        let client = &mut clients[number];
        let session = &client.session;
        let is_over = session.over().is_some();
        if session.over() != client.checker.over || is_over != session.deadline().is_none() {
            violations.push(format!("S4: {:?} is over and not over", client.checker.id));
        }
        let longest = now.after(plan.timeout.max(TICK * 2));
        if session.lease().is_some_and(|lease| is_over || lease > longest) {
            violations.push(format!("S4: a lease of {:?} at {now}", session.lease()));
        }
        if !client.is_closing {
            violations.extend(client.dialing.check(moment).err());
        }
        violations.append(&mut client.checker.violations);
    }

    fn carry_out(&mut self, number: usize, output: Output<u64, u64>) {
        let (now, moment) = (self.state.now(), self.moment(number));
        let client = &mut self.clients[number];
        match output {
            Output::Dial { server } => self.dial(number, &server),
            Output::Probe { server } => {
                client.probes();
                let member = member_of(&server);
                let path = self.state.net.path(number as u32, member);
                let is_reached = path.isolated == 0 && path.refuse == 0;
                let takes_writes = is_reached && self.state.ensemble.is_in_touch(Member(member));
                client.dialing.asks(now, server, takes_writes, &mut self.rng);
            }
            Output::HangUp if client.link.is_none() => {
                self.violations.push(format!("client {number} hangs up on nobody"));
            }
            Output::HangUp | Output::Failed { .. } => {
                let ended = client.dialing.ends(moment, self.plan.members);
                self.violations.extend(ended.err());
                self.leave(number);
            }
            Output::Reply { token, outcome } => {
                client.checker.concluded(token, &outcome, &self.log);
            }
            Output::Watch { watcher, notice } => {
                client.checker.noticed(watcher, &notice, &self.log);
            }
            Output::State(state) => {
                let negotiated = match &state {
                    session::State::Connected(negotiated) => Some(negotiated),
                    _ => None,
                };
                client.dialing.state_changed(moment, negotiated);
                if negotiated.is_some_and(|it| it.read_only) {
                    self.report.met("connections that only read");
                }
                client.checker.state(&state);
                if client.checker.over.is_some() {
                    client.reborn_at = Some(now + self.rng.within(1_000, 400_000));
                }
            }
            other => self.violations.push(format!("nobody has asked for {other:?}")),
        }
    }

    fn dial(&mut self, number: usize, server: &str) {
        let member = member_of(server);
        let moment = self.moment(number);
        let client = &mut self.clients[number];
        if !client.dials(member, self.plan.members) {
            self.violations
                .push(format!("L1: member {member} is dialed before the others had their turn"));
        }
        client.dialing.begins(moment);
        client.link = Some(self.state.dial(number as u32, ConnectorId::default(), member));
        client.tap = Tap::default();
        (client.is_made, client.writable_at) = (false, None);
        client.frail.1 = self.rng.below(FRAIL_MAX);
    }

    /// The answer to a dial, if it has come.
    fn connect(&mut self, number: usize) {
        let now = self.now();
        let client = &mut self.clients[number];
        let Some(link) = client.link.filter(|_| !client.is_made) else { return };
        let Some(answer) = self.state.net.poll_dial(link, Waker::noop()) else { return };
        client.is_made = answer == 0;
        if client.is_made {
            client.session.dialed(now, Ok(()));
        } else {
            self.leave(number);
            self.clients[number].session.dialed(now, Err(LinkError::Refused));
        }
        self.settle(number);
    }

    /// The client forgets its connection.
    fn leave(&mut self, number: usize) {
        if let Some(link) = self.clients[number].link.take() {
            self.state.left(link);
        }
    }

    /// Reads all that there is.
    fn read(&mut self, number: usize) {
        let now = self.now();
        loop {
            let client = &mut self.clients[number];
            let Some(link) = client.link.filter(|_| client.is_made) else { return };
            let read = self.state.net.poll_read(link, usize::MAX, Waker::noop());
            let why = match read {
                Some(Ok(bytes)) if !bytes.is_empty() => {
                    if self.state.now() < client.frail.0 {
                        match client.frail.1 {
                            0 => self.state.net.reset(self.state.now(), link),
                            left => client.frail.1 = left - 1,
                        }
                    }
                    for (bytes, heard) in client.tap.hears(bytes) {
                        self.hear(number, &bytes, heard);
                    }
                    continue;
                }
                Some(Ok(_)) => LinkError::Closed,
                Some(Err(_)) => LinkError::Reset,
                None => return,
            };
            self.leave(number);
            self.clients[number].session.hung_up(now, why);
            return self.settle(number);
        }
    }

    /// The session is given bytes, unless it has left the connection before it came to these.
    fn hear(&mut self, number: usize, bytes: &[u8], heard: Vec<Heard>) {
        let now = self.now();
        let client = &mut self.clients[number];
        if client.link.is_none() || !client.is_made {
            return;
        }
        for heard in heard {
            match heard {
                Heard::Restored(zxid, rearmed) => client.checker.restored.push((zxid, rearmed)),
                Heard::Refused(mark) => client.checker.refused(mark),
            }
        }
        client.session.inbound().extend_from_slice(bytes);
        client.session.received(now);
        self.settle(number);
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, number: usize) {
        let now = self.state.now();
        let client = &mut self.clients[number];
        let Some(link) = client.link.filter(|_| client.is_made) else { return };
        let outbound = client.session.outbound();
        let pending = outbound.pieces().collect::<Vec<_>>().concat();
        for said in client.tap.sees(&pending) {
            match said {
                Said::HasSeen(zxid) => client.checker.claims(zxid),
                Said::AsksToBeConfirmed if client.is_relied_on => {}
                Said::AsksToBeConfirmed => {
                    self.violations.push(format!("L4: client {number} asks to be confirmed"));
                }
            }
        }
        if outbound.is_empty() || client.writable_at.is_some() {
            return;
        }
        let all = self.plan.is_scripted || self.rng.per_mille(950);
        let wanted = if all { outbound.len() } else { 1 + self.rng.index(outbound.len().min(40)) };
        let taken = self.state.net.poll_write(now, link, &pending[..wanted], Waker::noop());
        let taken = taken.and_then(Result::ok).unwrap_or(0);
        outbound.advance(taken);
        if !outbound.is_empty() {
            client.writable_at = Some(now + self.rng.within(10, 2_000));
        }
        for token in client.tap.takes(taken) {
            client.checker.begun(token);
        }
        self.state.written(link, &pending[..taken]);
    }

    /// A session that has ended by itself must not have been leased at that time.
    pub(crate) fn look_at_ends(&mut self) {
        let now = self.state.now();
        let has_begun = |at: u64| Duration::from_millis(at) <= Duration::from_micros(now);
        for end in std::mem::take(&mut self.log.ends) {
            let is_its = |client: &&Client| client.checker.id == Some(end.session);
            let Some(client) = self.clients.iter().find(is_its) else { continue };
            if client.is_closing || self.state.was_expired(end.session) {
                continue;
            }
            self.report.met("expired by servers");
            if client.session.confirmed_lease().is_some_and(|lease| lease > end.at) {
                let lease = client.session.confirmed_lease();
                self.violations
                    .push(format!("S4: {end:?}, and its leader has confirmed {lease:?}"));
            }
            // A member that is cut off answers heartbeats of which its leader does not know.
            let mut faults = self.state.schedule.0.iter();
            let is_sound = !faults.any(|it| isolates_members(it.fault) && has_begun(it.at));
            if is_sound && client.session.lease().is_some_and(|lease| lease > end.at) {
                let lease = client.session.lease();
                self.violations.push(format!("S4: {end:?} in spite of a lease until {lease:?}"));
            }
        }
    }

    /// The next of the faults that begin before a delivery.
    pub(crate) fn strike(&mut self) {
        let (_, incident) = self.plan.by_delivery[self.struck];
        self.struck += 1;
        let zk_testkit::sim::Target::Client(client) = incident.target else {
            return self.state.strike(incident);
        };
        if incident.fault == Fault::Flap {
            let until = self.state.now() + incident.lasts * 1000;
            self.clients[client as usize].frail = (until, self.rng.below(FRAIL_MAX));
            return self.state.hit(Fault::Flap);
        }
        self.state.strike(incident);
    }
}
