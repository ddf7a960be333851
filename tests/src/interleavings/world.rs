//! The server and the clients, moved by one step at a time.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::DuplexStream,
    time::{Instant, sleep_until},
};
use zk_client::{BoxFuture, Client, Connect, ConnectOptions, SessionId, Transport};
use zk_proto::{
    Acl, CreateFlags, Time, Xid,
    frame::{LEN_REPLY_MAX, RequestFrame, split_frame},
    request::{CreateRequest, DeleteRequest},
};
use zk_testkit::server::{Config, Conn, Ensemble, Member, Output, Tree};

use super::{
    contender::{Contender, Phase},
    judge::Judge,
    link::{Line, Link},
    names::{Label, Names},
    scenario::{PATHS, Scenario, Wish},
    step::Step,
};

/// How long a step takes: everything that is not asleep comes to rest in it.
const STEP: Duration = Duration::from_millis(1);

/// The server's tick, and what clients ask for: long enough that none of them sends a ping before a run is over.
const TICK: Duration = Duration::from_millis(200);
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// A client waits for at most a twentieth of its timeout before it connects again.
const DIALED_WITHIN: Duration = Duration::from_millis(250);

/// What lasts longer than this is not over at all. Waiters look at their own nodes after a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections that clients have begun.
type Dials = Arc<Mutex<Vec<(usize, DuplexStream)>>>;

/// The server, the clients, and what they do.
pub(super) struct World {
    began: Instant,
    ensemble: Ensemble,
    dials: Dials,
    outsider: Conn,
    next_xid: Xid,
    clients: Vec<Client>,
    pub(super) sessions: Vec<SessionId>,
    pub(super) links: Vec<Link>,
    pub(super) contenders: Vec<Contender>,
    /// How long nobody had anything to say, in all.
    idle: Duration,
    /// Time alone brings nothing about any more.
    pub(super) is_over: bool,
    pub(super) names: Names,
    pub(super) judge: Judge,
}

struct Dialer(usize, Dials);

impl Connect for Dialer {
    fn connect(&self, _: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push((self.0, theirs));
        Box::pin(async { Ok(Box::new(ours) as Box<dyn Transport>) })
    }

    fn fails_whole(&self) -> bool {
        true
    }
}

impl World {
    /// All clients are connected, the path is there, and all contenders have begun to ask.
    pub(super) async fn new(scenario: Scenario) -> Self {
        let mut config = Config::default();
        config.tick = TICK;
        let began = Instant::now();
        let mut ensemble = Ensemble::new(config);
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let outsider = ensemble.accept(Time::ZERO, Member(0), peer).expect("it is up");
        let clients = scenario.clients();
        let mut world = Self {
            began,
            ensemble,
            dials: Dials::default(),
            outsider,
            next_xid: Xid(1),
            clients: Vec::new(),
            sessions: Vec::new(),
            links: (0..clients).map(|_| Link::default()).collect(),
            contenders: Vec::new(),
            idle: Duration::ZERO,
            is_over: false,
            names: Names::default(),
            judge: Judge::default(),
        };
        world.greet_outsider();
        for client in 0..clients {
            world.connect(client).await;
        }
        for &(client, wish) in scenario.contenders() {
            let contender = Contender::begin(client, &world.clients[client], wish);
            world.contenders.push(contender);
        }
        world.settle().await;
        world
    }

    async fn connect(&mut self, client: usize) {
        let began = self.began;
        let options = ConnectOptions::new("server")
            .expect("it is one")
            .session_timeout(SESSION_TIMEOUT)
            .connector(Dialer(client, self.dials.clone()))
            .clock(move || began.elapsed())
            .seed(client as u64 + 1);
        let connecting = tokio::spawn(async move { options.connect().await });
        self.settle().await;
        while !connecting.is_finished() {
            assert!(self.serve(client).await, "a client that says nothing gets no session");
        }
        let zk = connecting.await.expect("it does not panic").expect("a session");
        self.sessions.push(zk.session().id());
        self.clients.push(zk);
    }

    pub(super) fn now(&self) -> Time {
        Time::new(self.began.elapsed())
    }

    pub(super) fn tree(&self) -> &Tree {
        self.ensemble.tree(Member(0)).expect("there is one member")
    }

    pub(super) fn watches(&self, client: usize) -> (Vec<&str>, Vec<&str>) {
        let line = self.links[client].line.as_ref();
        line.map(|line| self.ensemble.watches(line.conn)).unwrap_or_default()
    }

    pub(super) fn has_session(&self, client: usize) -> bool {
        let session = self.sessions[client];
        self.ensemble.sessions().any(|(id, _)| id == session)
    }

    /// How many requests of a client wait for the server.
    pub(super) fn waiting(&self, client: usize) -> usize {
        self.links[client].line.as_ref().map_or(0, |line| line.up.len())
    }

    /// Whether nothing can become of a client any more: its contenders are done, and so is it with their nodes.
    pub(super) fn is_done(&self, client: usize) -> bool {
        let of_client = |it: &&Contender| it.client == client;
        self.contenders.iter().filter(of_client).all(Contender::is_done)
            && self.links[client].line.as_ref().is_none_or(|line| line.up.is_empty())
            && self.names.existing().all(|known| usize::from(known.label.client) != client)
    }

    /// Everything that may happen next.
    pub(super) fn choices(&self, faults_left: usize) -> Vec<Step> {
        let mut choices = Vec::new();
        let number = |index: usize| u8::try_from(index).unwrap_or(u8::MAX);
        let live = || (0..self.links.len()).filter(|client| !self.is_done(*client));
        choices.extend(live().filter(|it| self.waiting(*it) > 0).map(|it| Step::Serve(number(it))));
        let phases: Vec<Phase> = self.contenders.iter().map(Contender::phase).collect();
        for (index, phase) in phases.iter().enumerate() {
            if matches!(phase, Phase::Holding { .. }) {
                choices.push(Step::Release(number(index)));
            }
        }
        if choices.is_empty() && !self.is_over && live().next().is_some() {
            choices.push(Step::Wait);
        }
        if faults_left == 0 {
            return choices;
        }
        for client in live() {
            if self.links[client].line.is_some() {
                choices.push(Step::Cut(number(client)));
                let lost = 1..=number(self.waiting(client));
                choices.extend(lost.map(|requests| Step::Lose(number(client), requests)));
            }
            if self.has_session(client) {
                choices.push(Step::Expire(number(client)));
                if self.links[client].line.is_some() {
                    choices.push(Step::ExpireHeard(number(client)));
                }
            }
        }
        choices.extend(self.names.existing().map(|known| Step::Delete(known.label)));
        for (index, phase) in phases.iter().enumerate() {
            if matches!(phase, Phase::Waiting) {
                choices.push(Step::GiveUp(number(index)));
            }
        }
        choices
    }

    /// Does one thing, and lets everybody hear of it.
    pub(super) async fn take(&mut self, step: Step) {
        self.is_over = false;
        match step {
            Step::Serve(client) => {
                self.serve(usize::from(client)).await;
            }
            Step::Release(contender) => {
                let contender = &self.contenders[usize::from(contender)];
                self.links[contender.client].note("release");
                contender.release();
                self.settle().await;
            }
            Step::Wait => self.wait().await,
            Step::Cut(client) => self.cut(usize::from(client)).await,
            Step::Lose(client, requests) => {
                for _ in 0..requests {
                    self.process(usize::from(client));
                    self.deliver(Some(usize::from(client))).await;
                }
                self.cut(usize::from(client)).await;
            }
            Step::Expire(client) => {
                let client = usize::from(client);
                self.judge.wronged(self.sessions[client]);
                self.hang_up(client);
                self.ensemble.expire(self.now(), self.sessions[client]);
                self.deliver(None).await;
                self.dialed(client).await;
            }
            Step::ExpireHeard(client) => {
                let client = usize::from(client);
                self.judge.wronged(self.sessions[client]);
                self.ensemble.expire(self.now(), self.sessions[client]);
                self.deliver(None).await;
                self.dialed(client).await;
            }
            Step::Delete(label) => self.delete(label).await,
            Step::GiveUp(contender) => {
                let contender = &self.contenders[usize::from(contender)];
                self.links[contender.client].note("give up");
                contender.give_up();
                self.settle().await;
            }
        }
    }

    /// The server takes a client's next request. Returns whether there was one.
    async fn serve(&mut self, client: usize) -> bool {
        let any = self.process(client);
        self.deliver(None).await;
        any
    }

    fn process(&mut self, client: usize) -> bool {
        let now = self.now();
        let Some(line) = &mut self.links[client].line else { return false };
        let Some(request) = line.next() else { return false };
        self.ensemble.received(now, line.conn, &request);
        true
    }

    /// Passes on everything that the server says, but nothing to the client that is `deaf`.
    async fn deliver(&mut self, deaf: Option<usize>) {
        self.ensemble.elapsed(self.now());
        self.look();
        while let Some(output) = self.ensemble.poll() {
            let (Output::Write { conn, .. } | Output::Close { conn }) = output;
            let of_conn = |link: &Link| link.line.as_ref().is_some_and(|line| line.conn == conn);
            let Some(client) = self.links.iter().position(of_conn).filter(|it| Some(*it) != deaf)
            else {
                continue;
            };
            match output {
                Output::Write { bytes, .. } => {
                    let mut rest = BytesMut::from(&bytes[..]);
                    while let Ok(Some(frame)) = split_frame(&mut rest, LEN_REPLY_MAX) {
                        self.tell(client, &frame).await;
                    }
                }
                Output::Close { .. } => {
                    self.links[client].note("closed");
                    self.links[client].line = None;
                }
            }
        }
        self.settle().await;
    }

    /// A client hears one frame.
    async fn tell(&mut self, client: usize, frame: &Bytes) {
        let link = &mut self.links[client];
        let Some(line) = &mut link.line else { return };
        let received = line.understand(frame);
        line.write(frame);
        if let Some(received) = received {
            link.told(client, &received, &self.names);
        }
        self.settle().await;
    }

    /// Waits until everybody has done what there is to be done without the server.
    async fn settle(&mut self) {
        pass(STEP).await;
        self.accept();
        for client in 0..self.links.len() {
            let has_left = self.links[client].line.as_mut().is_some_and(Line::read);
            if has_left {
                self.hang_up(client);
            }
        }
        self.judge.grants(&self.contenders, &self.names);
        self.forget();
    }

    /// Drops what does not matter any more of what clients have been told, so that more states are the same.
    fn forget(&mut self) {
        for client in 0..self.links.len() {
            let mut contenders = self.contenders.iter().filter(|it| it.client == client);
            let (Some(contender), None) = (contenders.next(), contenders.next()) else { continue };
            let link = &mut self.links[client];
            if !link.is_asleep() {
                continue;
            }
            match (contender.wish, contender.phase()) {
                (_, Phase::Holding { .. }) => link.forget("holds"),
                (Wish::Permit, _) => {}
                (_, Phase::Waiting) => link.forget_before_listing(),
                _ => {}
            }
        }
    }

    /// Takes the connections that clients have begun.
    fn accept(&mut self) {
        let dials = std::mem::take(&mut *self.dials.lock().unwrap_or_else(PoisonError::into_inner));
        for (client, end) in dials {
            self.hang_up(client);
            let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let conn = self.ensemble.accept(self.now(), Member(0), peer).expect("it is up");
            self.links[client].line = Some(Line::new(conn, end));
        }
    }

    fn hang_up(&mut self, client: usize) {
        if let Some(line) = self.links[client].line.take() {
            self.ensemble.hung_up(self.now(), line.conn);
        }
    }

    async fn cut(&mut self, client: usize) {
        self.hang_up(client);
        self.dialed(client).await;
    }

    /// A client's connection has gone; waits until it has begun the next.
    async fn dialed(&mut self, client: usize) {
        self.links[client].note("lost");
        let until = Instant::now() + DIALED_WITHIN;
        while self.links[client].line.is_none() && Instant::now() < until {
            self.settle().await;
        }
    }

    fn look(&mut self) {
        let tree = self.ensemble.tree(Member(0)).expect("there is one member");
        self.names.look(tree, &self.sessions);
    }

    fn greet_outsider(&mut self) {
        let mut bytes = BytesMut::new();
        let greeting = zk_proto::request::ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: zk_proto::Zxid(0),
            time_out: i32::try_from(SESSION_TIMEOUT.as_millis()).unwrap_or(i32::MAX),
            session_id: SessionId(0),
            passwd: zk_proto::Secret(None),
            read_only: zk_proto::request::TrailingFlag(None),
        };
        zk_proto::frame::encode_frame(&greeting, &mut bytes);
        // The recipes' own paths, so that no contender is busy with making them.
        for path in PATHS {
            let acl = [Acl::open_unsafe()].into_iter().collect();
            let flags = CreateFlags(0);
            let create = CreateRequest { path: path.into(), data: Some(b""), acl, flags };
            self.next_xid = Xid(self.next_xid.0 + 1);
            RequestFrame::of(&create).write(self.next_xid, &mut bytes);
        }
        self.ensemble.received(self.now(), self.outsider, &bytes);
        while self.ensemble.poll().is_some() {}
    }

    async fn delete(&mut self, label: Label) {
        let Some(known) = self.names.get(label) else { return };
        self.judge.wronged(self.sessions[usize::from(label.client)]);
        let mut bytes = BytesMut::new();
        let delete = DeleteRequest { path: known.path.as_str().into(), version: -1 };
        self.next_xid = Xid(self.next_xid.0 + 1);
        RequestFrame::of(&delete).write(self.next_xid, &mut bytes);
        self.ensemble.received(self.now(), self.outsider, &bytes);
        self.deliver(None).await;
    }

    /// Lets time pass until there is something else to choose, or all patience is used up.
    async fn wait(&mut self) {
        let begun = Instant::now();
        while self.choices(0) == [Step::Wait] {
            if self.idle + begun.elapsed() >= PATIENCE {
                self.is_over = true;
            } else {
                pass(Duration::from_millis(50)).await;
                self.settle().await;
            }
        }
        self.idle += begun.elapsed();
    }

    /// Whether nothing is left to be done.
    pub(super) fn is_all_done(&self) -> bool {
        (0..self.links.len()).all(|client| self.is_done(client))
    }
}

async fn pass(time: Duration) {
    sleep_until(Instant::now() + time).await;
}
