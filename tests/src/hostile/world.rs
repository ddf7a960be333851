//! A session among a user, a network and servers that are all made up.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Buf as _;
use zk_proto::{
    Time, Xid,
    frame::RequestFrame,
    request::GetDataRequest,
    session::{
        CloseReason, Config, LinkError, OnLoss, Outgoing, Output, Patience, Session, State,
        WatchIntent,
    },
};

use super::{
    link::{CLOSE, Link},
    oracle::{Oracle, Watch, thirds},
    script::credentials,
    server::{Handshake, Message},
};

/// Wake-ups for one passing of time above which the session is taken to run in circles.
const WAKE_UPS_MAX: usize = 10_000;

/// Session timeouts from here on, of which only mad servers make any, are not waited for.
const TIMEOUT_LONG: Duration = Duration::from_secs(3600);

/// Where the driver's side of the connection stands.
#[derive(Debug)]
enum Wire {
    Down,
    Dialing,
    Up(Link),
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) session: Session<String, String>,
    oracle: Oracle,
    wire: Wire,
    /// How many bytes the socket takes.
    pub(crate) room: usize,
    pub(crate) now: Time,
    timeout: Duration,
    /// Whether there is a session on the servers that could expire.
    is_established: bool,
    /// When bytes last came over an established connection.
    heard: Option<Time>,
    /// When something last came that was certainly a frame of an established connection.
    frame: Option<Time>,
    /// The last number in the stream of what servers send, and the last new session.
    number: i64,
    watches: BTreeMap<String, Watch>,
    tokens: usize,
    is_closing: bool,
    /// The client is gone.
    is_ending: bool,
}

impl World {
    pub(crate) fn new(config: Config, seed: u64) -> Self {
        let (timeout, resume) = (config.session_timeout, config.resume.clone());
        let next_xid = resume.as_ref().map_or(Xid::FIRST, |resume| resume.next_xid);
        let mut oracle = Oracle::new(next_xid, config.auth.len());
        if let Some(resume) = &resume {
            oracle.known_ids.insert(resume.id.0);
            oracle.answered_zxids.insert(resume.last_zxid.0);
        }
        let since = resume.is_some().then_some(Time::ZERO);
        let mut world = Self {
            session: Session::new(config, seed, Time::ZERO),
            oracle,
            wire: Wire::Down,
            room: usize::MAX,
            now: Time::ZERO,
            timeout,
            is_established: resume.is_some(),
            heard: since,
            frame: since,
            number: 1000,
            watches: BTreeMap::new(),
            tokens: 0,
            is_closing: false,
            is_ending: false,
        };
        world.settle();
        world
    }

    pub(crate) fn add_auth(&mut self) {
        let token = self.token("auth");
        self.oracle.submitted(&token);
        self.oracle.identities += usize::from(!self.is_closing);
        self.session.add_auth(self.now, credentials(&token), token);
    }

    pub(crate) fn close(&mut self) {
        let token = if self.is_closing { self.token("again") } else { CLOSE.into() };
        self.is_closing = true;
        self.oracle.submitted(&token);
        self.session.close(self.now, token);
    }

    pub(crate) fn hang_up(&mut self, why: LinkError) {
        if let Wire::Up(_) = self.wire {
            self.wire = Wire::Down;
        }
        self.session.hung_up(self.now, why);
    }

    fn token(&mut self, kind: &str) -> String {
        self.tokens += 1;
        format!("{kind}{}", self.tokens)
    }

    pub(crate) fn submit(&mut self, watch: Option<Watch>, on_loss: OnLoss) {
        let token = self.token("request");
        let watcher = format!("watcher of {token}");
        self.oracle.requested(&token, watch.map(|watch| (watcher.clone(), watch)), on_loss);
        let watch = watch.map(|watch| {
            self.watches.insert(watcher.clone(), watch);
            Box::new(WatchIntent { path: Arc::from(watch.path), by: watch.by, watcher })
        });
        // What is asked for is of no interest to the session, so that all can be the same.
        let request = GetDataRequest { path: (&*token).into(), watch: watch.is_some() };
        let frame = RequestFrame::of(&request);
        let patience = Patience::Connections;
        self.session.submit(self.now, Outgoing { frame, token, watch, on_loss, patience });
    }

    /// Of the watchers that were ever named, the one at this place no longer listens.
    pub(crate) fn unwatch(&mut self, which: usize) {
        let Some((watcher, watch)) = self.watches.iter().nth(which) else { return };
        self.session.unwatch(self.now, watch.by, watch.path, |other| other == watcher);
        self.oracle.unwatched(watcher);
    }

    /// The connection attempt under way ends.
    pub(crate) fn dialed(&mut self, outcome: Result<(), LinkError>) {
        if let Wire::Dialing = self.wire {
            self.wire = if outcome.is_ok() { Wire::Up(Link::default()) } else { Wire::Down };
        }
        self.session.dialed(self.now, outcome);
    }

    /// A connection without any trouble.
    pub(crate) fn connect(&mut self) {
        let was_dialing = matches!(self.wire, Wire::Dialing);
        self.dialed(Ok(()));
        self.room = usize::MAX;
        self.settle();
        let welcome = Handshake::Welcome { timeout: self.timeout, read_only: false };
        self.serve(Message::Handshake(welcome), usize::MAX);
        let is_connected = self.oracle.connected || self.oracle.over.is_some();
        assert!(is_connected || !was_dialing, "a good handshake is not taken for one");
    }

    /// The server sends something. Of all that it has sent so many bytes arrive.
    pub(crate) fn serve(&mut self, message: Message, count: usize) {
        let mut stray = Link::default();
        let link = match &mut self.wire {
            Wire::Up(link) => link,
            Wire::Down | Wire::Dialing => &mut stray,
        };
        message.say(link, &mut self.number, &mut self.oracle);
        let count = count.min(link.coming.len());
        if count == 0 {
            return;
        }
        let (was_greeted, is_sane) = (link.greeted, !link.is_insane);
        let is_whole = link.coming.len() == count;
        let bytes = link.coming.split_to(count);
        let life = self.heard.filter(|_| self.is_established);
        let is_expired = life.is_some_and(|heard| thirds(self.timeout, 4, heard) < self.now);
        self.session.inbound().extend_from_slice(&bytes);
        self.session.received(self.now);
        if was_greeted {
            self.heard = Some(self.now);
        }
        self.settle();
        assert!(self.oracle.over.is_some() || !is_expired, "back to life");
        // A frame that ends the session does not prolong it.
        if was_greeted && is_sane && is_whole && self.oracle.over.is_none() {
            self.frame = Some(self.now);
        }
    }

    /// Wakes the session at each of its deadlines.
    pub(crate) fn advance(&mut self, until: Time) {
        for _ in 0..WAKE_UPS_MAX {
            let Some(due) = self.session.deadline().filter(|&due| due <= until) else {
                self.now = until;
                self.on_time();
                return;
            };
            self.now = self.now.max(due);
            let could_live = self.frame.map(|frame| thirds(self.timeout, 4, frame));
            self.session.elapsed(self.now);
            assert!(self.session.deadline().is_none_or(|next| next > self.now), "in the past");
            self.settle();
            if self.oracle.over == Some(CloseReason::Expired) {
                let could_live = could_live.expect("only an established session expires");
                let rounding = Duration::from_nanos(2);
                assert!(self.now.after(rounding) >= could_live, "{} < {could_live}", self.now);
            }
        }
        panic!("woken {WAKE_UPS_MAX} times until {}", self.now);
    }

    /// What is true of a session that was always woken in time.
    fn on_time(&self) {
        let Some(heard) = self.heard.filter(|_| self.oracle.over.is_none()) else { return };
        let patience = thirds(self.timeout, 2, heard);
        assert!(!self.oracle.connected || self.now <= patience, "silence is borne since {heard}");
        let life = thirds(self.timeout, 4, heard);
        assert!(!self.is_established || self.now <= life, "not expired by {}", self.now);
    }

    /// Does what the session says, and holds it against the promises.
    pub(crate) fn settle(&mut self) {
        while let Some(output) = self.session.poll() {
            self.carry_out(output);
        }
        self.write();
        let over = self.session.over();
        assert_eq!(over, self.oracle.over);
        assert_eq!(over.is_some(), self.session.deadline().is_none());
        let lease = self.session.lease();
        assert!(lease.is_none_or(|lease| over.is_none() && lease <= self.now.after(self.timeout)));
    }

    fn carry_out(&mut self, output: Output<String, String>) {
        match output {
            Output::Dial { .. } => {
                assert!(matches!(self.wire, Wire::Down), "dials beside a connection");
                assert!(self.oracle.over.is_none(), "dials after the end");
                self.wire = Wire::Dialing;
                if self.is_ending {
                    self.dialed(Err(LinkError::Refused));
                }
            }
            Output::HangUp => {
                assert!(!matches!(self.wire, Wire::Down), "hangs up on nobody");
                self.wire = Wire::Down;
            }
            Output::Failed { .. } => assert!(matches!(self.wire, Wire::Down)),
            Output::Probe { .. } => assert!(self.oracle.connected),
            Output::Reply { token, outcome } => self.oracle.concluded(&token, &outcome),
            Output::Watch { watcher, notice } => self.oracle.noticed(&watcher, &notice),
            Output::State(state) => {
                self.oracle.state(&state);
                if let State::Connected(negotiated) = state {
                    let Wire::Up(link) = &mut self.wire else { panic!("connected to nobody") };
                    link.greeted = true;
                    let is_ours = link.shown.is_none_or(|id| id == 0 || id == negotiated.id.0);
                    assert!(is_ours, "the session is another one");
                    self.timeout = negotiated.timeout;
                    self.is_established = true;
                    (self.heard, self.frame) = (Some(self.now), Some(self.now));
                    if !negotiated.read_only {
                        self.oracle.known_ids.insert(negotiated.id.0);
                    }
                }
            }
            other => panic!("unheard of: {other:?}"),
        }
    }

    /// Writes as much as the socket takes.
    fn write(&mut self) {
        let outbound = self.session.outbound();
        let Wire::Up(link) = &mut self.wire else {
            assert!(outbound.is_empty(), "bytes for nobody");
            return;
        };
        let known = link.appended - link.written;
        let all = outbound.pieces().collect::<Vec<_>>().concat();
        let frames = link.append(&all[known..]);
        self.oracle.sent(link, &frames);
        let count = outbound.len().min(self.room);
        if self.room < usize::MAX {
            self.room -= count;
        }
        outbound.advance(count);
        for token in link.write(count) {
            self.oracle.begun(&token);
        }
    }

    /// All clients leave. All must come to an end, and in time.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
        if let Wire::Dialing = self.wire {
            self.dialed(Err(LinkError::Refused));
            self.settle();
        }
        let life = self.heard.filter(|_| self.is_established && self.timeout < TIMEOUT_LONG);
        if let Some(heard) = life {
            self.advance(self.now.max(thirds(self.timeout, 4, heard)));
        } else {
            self.close();
            self.settle();
            self.advance(self.now.after(Config::new(["any"]).close_timeout));
        }
        self.settle();
        assert!(self.oracle.over.is_some(), "not over by {}", self.now);
        self.submit(None, OnLoss::Resend);
        self.add_auth();
        self.close();
        self.settle();
        self.connect();
        self.settle();
        self.advance(self.now.after(Duration::from_secs(3600)));
        self.settle();
        self.oracle.at_end();
    }
}
