//! L3 of cohorts: a lock that others wait for is passed on so many times within a process, and no more.

use std::collections::BTreeMap;

use zk_locks::FencingToken;
use zk_proto::Zxid;

use super::{Checker, exclusion::Held};
use crate::sim::recipe::Recipe;

/// How many tasks of a cohort have the lock one after the other at most while others wait.
pub(crate) const SECTIONS: u32 = 3;

/// The time in which a cohort has one node, as far as it was seen.
#[derive(Debug)]
struct Turn {
    czxid: i64,
    /// How many tasks have had the lock. Some to which it was passed have left by then, and their numbers are missing.
    sections: u32,
    /// Another contender that waits behind it, and since when that is known here.
    behind: Option<(Zxid, u64)>,
    /// Since when the lock may not be handed over any more.
    spent: bool,
}

/// The turns of all cohorts, by clients.
#[derive(Debug, Default)]
pub(super) struct Turns(BTreeMap<u32, Turn>);

impl Checker {
    pub(super) fn check_passing(&mut self, held: &Held) {
        if held.site.recipe != Recipe::CohortLock {
            return;
        }
        let (client, token) = (held.client, held.claim.token());
        if token.local() > 0 {
            self.count("granted: locks within a cohort");
        }
        let known = self.turns.0.remove(&client).filter(|turn| turn.czxid == token.get());
        if known.as_ref().is_some_and(|turn| turn.spent) {
            let text = format!("c{client} keeps {} to itself with {token}", held.site.path());
            self.violated("L3", text);
        }
        let begins = || Turn { czxid: token.get(), sections: 0, behind: None, spent: false };
        let mut turn = known.unwrap_or_else(begins);
        turn.sections += 1;
        let turn = self.seen(held, token, turn);
        self.turns.0.insert(client, turn);
    }

    /// What is known of a turn at a grant.
    fn seen(&self, held: &Held, token: FencingToken, turn: Turn) -> Turn {
        let path = held.site.path();
        let own = held.session.id();
        let behind = |czxid: Zxid| {
            self.history.children(&path).any(|(_, live)| live.czxid == czxid && live.owner != own)
        };
        let known = turn.behind.filter(|(czxid, _)| behind(*czxid));
        let first = || {
            let others = self.history.children(&path).filter(|(_, live)| live.owner != own);
            others.map(|(_, live)| live.czxid).filter(|czxid| czxid.0 > token.get()).min()
        };
        let behind = known.or_else(|| first().map(|czxid| (czxid, self.now)));
        // It has heard of that one by now, unless it stood still.
        let heard =
            behind.is_some_and(|(_, since)| self.now > since + self.news(since, held.client));
        let spent = heard && turn.sections >= SECTIONS;
        Turn { behind, spent, ..turn }
    }

    /// How long news take to come to a client.
    pub(super) fn news(&self, since: u64, client: u32) -> u64 {
        if since > self.options.well_from() {
            1_000 + 10 * self.options.latency.1
        } else {
            self.patience(client)
        }
    }

    /// A client has stood still, and has heard of nothing.
    pub(super) fn forget_turn(&mut self, client: u32) {
        self.turns.0.remove(&client);
    }
}
