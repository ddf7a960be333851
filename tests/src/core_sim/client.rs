//! One client: a session, its user, and the hand that drives it.

use std::{collections::VecDeque, time::Duration};

use zk_proto::{
    Time,
    session::{Config, Session},
};
use zk_testkit::server::Member;

use super::{checker::Checker, schedule::Happening, workload::Wish};

/// A client, which lives through any number of sessions.
#[derive(Debug)]
pub(crate) struct Client {
    number: usize,
    pub(crate) session: Session<u64, u64>,
    pub(crate) checker: Checker,
    /// The connection that it has or is making.
    pub(crate) link: Option<usize>,
    /// The servers that the session has dialed last, as far back as none of them has its turn again.
    dialed: VecDeque<Member>,
    /// When it is to be woken, as far as that is planned.
    pub(crate) wake: Option<Time>,
    /// The process stands still; what happens to it meanwhile waits.
    pub(crate) is_paused: bool,
    pub(crate) waiting: VecDeque<Happening>,
    pub(crate) is_isolated: bool,
    /// Whether its connections break after a few deliveries.
    pub(crate) is_frail: bool,
    /// Added to the time that everything takes on the way.
    pub(crate) slow: Duration,
    /// Whether bytes come in crumbs.
    pub(crate) in_crumbs: bool,
    pub(crate) is_closing: bool,
    /// Batches of the script that were asked for.
    pub(crate) batches: usize,
    tokens: u64,
}

impl Client {
    pub(crate) fn new(number: usize, config: Config, seed: u64, now: Time) -> Self {
        Self {
            number,
            session: Session::new(config, seed, now),
            checker: Checker::default(),
            link: None,
            dialed: VecDeque::new(),
            wake: None,
            is_paused: false,
            waiting: VecDeque::new(),
            is_isolated: false,
            is_frail: false,
            slow: Duration::ZERO,
            in_crumbs: false,
            is_closing: false,
            batches: 0,
            tokens: 0,
        }
    }

    /// Another session for the same user.
    pub(crate) fn begin(&mut self, config: Config, seed: u64, now: Time) {
        self.session = Session::new(config, seed, now);
        self.checker = Checker::default();
        self.dialed.clear();
    }

    /// The session dials one of so many servers. Returns whether all others had their turn since the last time.
    pub(crate) fn dials(&mut self, member: Member, servers: usize) -> bool {
        let is_in_turn = !self.dialed.contains(&member);
        self.dialed.push_back(member);
        if self.dialed.len() >= servers {
            self.dialed.pop_front();
        }
        is_in_turn
    }

    /// Never the same twice, and greater for each.
    pub(crate) fn token(&mut self) -> u64 {
        self.tokens += 1;
        (self.number as u64 + 1) << 40 | self.tokens
    }

    pub(crate) fn ask(&mut self, now: Time, wish: Wish) {
        let token = self.token();
        let (request, watching) = wish.request(token);
        self.checker.asked(token, wish, watching);
        self.session.submit(now, request);
    }

    pub(crate) fn close(&mut self, now: Time) {
        self.is_closing = true;
        let token = self.token();
        self.checker.asked(token, Wish::Close, None);
        self.session.close(now, token);
    }
}
