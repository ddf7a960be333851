//! One client: a session, its user, and its end of a connection.

use std::collections::VecDeque;

use zk_proto::{
    Time,
    session::{Config, Session},
};
use zk_testkit::{real::Release, sim::LinkId};

use super::{checker::Checker, dialing::Dialing, tap::Tap, workload::Wish};

/// A client, which lives through any number of sessions.
#[derive(Debug)]
pub(crate) struct Client {
    number: u32,
    pub(crate) session: Session<u64, u64>,
    pub(crate) checker: Checker,
    /// The connection that it has or is making.
    pub(crate) link: Option<LinkId>,
    /// Whether it knows that it is connected.
    pub(crate) is_made: bool,
    pub(crate) tap: Tap,
    pub(crate) dialing: Dialing,
    /// The servers that the session has dialed last, as far back as none of them has its turn again.
    dialed: VecDeque<usize>,
    /// When its user asks for something.
    pub(crate) ask_at: u64,
    /// When its socket takes bytes again, if that is full.
    pub(crate) writable_at: Option<u64>,
    /// When it begins another session, if this one is over.
    pub(crate) reborn_at: Option<u64>,
    /// Until when its connections break after a few reads, and how many the present one has left.
    pub(crate) frail: (u64, u64),
    pub(crate) is_closing: bool,
    pub(crate) is_relied_on: bool,
    /// Batches of the script that were asked for.
    pub(crate) batches: usize,
    tokens: u64,
}

impl Client {
    pub(crate) fn new(number: u32, config: Config, seed: u64, now: Time) -> Self {
        Self {
            number,
            session: Session::new(config, seed, now),
            checker: Checker::default(),
            link: None,
            is_made: false,
            tap: Tap::default(),
            dialing: Dialing::default(),
            dialed: VecDeque::new(),
            ask_at: u64::MAX,
            writable_at: None,
            reborn_at: None,
            frail: (0, 0),
            is_closing: false,
            is_relied_on: false,
            batches: 0,
            tokens: 0,
        }
    }

    /// Its user relies on the session, or does not.
    pub(crate) fn rely(&mut self, relies: bool) {
        self.is_relied_on = relies;
        self.session.rely(relies);
    }

    /// Another session for the same user.
    pub(crate) fn begin(&mut self, config: Config, seed: u64, now: Time) {
        self.session = Session::new(config, seed, now);
        self.checker = Checker::default();
        self.dialing = Dialing::default();
        self.dialed.clear();
        self.reborn_at = None;
    }

    /// The session dials one of so many servers. Returns whether all others had their turn since the last time.
    pub(crate) fn dials(&mut self, member: usize, servers: usize) -> bool {
        let is_in_turn = !self.dialed.contains(&member);
        self.dialed.push_back(member);
        if self.dialed.len() >= servers {
            self.dialed.pop_front();
        }
        is_in_turn
    }

    /// The session looks for another server: the one that it finds is the next, and the order begins anew.
    pub(crate) fn probes(&mut self) {
        self.dialed.clear();
    }

    /// Never the same twice, and greater for each.
    pub(crate) fn token(&mut self) -> u64 {
        self.tokens += 1;
        (u64::from(self.number) + 1) << 40 | self.tokens
    }

    pub(crate) fn ask(&mut self, now: Time, wish: Wish, release: Release) {
        let token = self.token();
        let (request, watching) = wish.request(token, release);
        self.checker.asked(token, wish, watching);
        self.session.submit(now, request);
    }

    /// The user wants to hear no more of one of its watches.
    pub(crate) fn unwatch(&mut self, now: Time, choice: u64) {
        if let Some((watcher, by, path)) = self.checker.forget(choice) {
            self.session.unwatch(now, by, path, |it| *it == watcher);
        }
    }

    pub(crate) fn close(&mut self, now: Time) {
        self.is_closing = true;
        let token = self.token();
        self.checker.asked(token, Wish::Close, None);
        self.session.close(now, token);
    }
}
