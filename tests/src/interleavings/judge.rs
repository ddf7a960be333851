//! What must hold: at most one holder, in the order of the nodes, with tokens that grow; and in the end nothing stays
//! behind.

use std::collections::BTreeSet;

use zk_locks::FencingToken;
use zk_proto::{SessionId, Zxid};

use super::{
    contender::{Contender, Outcome, Phase},
    names::{Known, Names},
    scenario::{PERMITS, Wish},
    world::World,
};

/// Watches over a run.
#[derive(Debug, Default)]
pub(super) struct Judge {
    granted: Vec<Grant>,
    wronged: BTreeSet<SessionId>,
    /// The first rule that was broken.
    pub(super) verdict: Option<String>,
}

#[derive(Clone, Debug)]
struct Grant {
    contender: usize,
    wish: Wish,
    token: FencingToken,
    path: String,
}

impl Judge {
    /// Whatever becomes of this session's contenders is not their fault.
    pub(super) fn wronged(&mut self, session: SessionId) {
        self.wronged.insert(session);
    }

    /// The largest token so far.
    pub(super) fn last_token(&self) -> Zxid {
        Zxid(self.granted.iter().map(|grant| grant.token.get()).max().unwrap_or(0))
    }

    fn object(&mut self, what: String) {
        self.verdict.get_or_insert(what);
    }

    /// Looks for new grants.
    pub(super) fn grants(&mut self, contenders: &[Contender], names: &Names) {
        for (index, contender) in contenders.iter().enumerate() {
            let Phase::Holding { token, path } = contender.phase() else { continue };
            if self.granted.iter().any(|grant| grant.contender == index) {
                continue;
            }
            let grant = Grant { contender: index, wish: contender.wish, token, path };
            self.grant(&grant, contenders, names);
            self.granted.push(grant);
        }
    }

    fn grant(&mut self, grant: &Grant, contenders: &[Contender], names: &Names) {
        let Grant { contender, wish, token, .. } = *grant;
        let Some(own) = names.existing().find(|known| known.path == grant.path) else {
            return self.object(format!("contender {contender} is granted a node that is gone"));
        };
        if own.created.0 != token.get() {
            self.object(format!(
                "contender {contender} has the token {token:?} for {}",
                own.created
            ));
        }
        let path_of = |phase: Phase| match phase {
            Phase::Holding { path, .. } | Phase::Releasing { path } => Some(path),
            _ => None,
        };
        let exists = |path: &String| names.existing().any(|known| known.path == *path);
        let others = contenders.iter().enumerate().filter(|(index, _)| *index != contender);
        let holding = others
            .filter_map(|(index, it)| path_of(it.phase()).filter(exists).map(|_| (index, it.wish)));
        let holding: Vec<(usize, Wish)> = holding.collect();
        let most = if wish == Wish::Permit { PERMITS as usize - 1 } else { 0 };
        let excluded: Vec<_> = holding.iter().filter(|(_, it)| excludes(wish, *it)).collect();
        if excluded.len() > most {
            self.object(format!("contender {contender} is granted what {excluded:?} hold"));
        }
        if let Some(first) = self.ahead(own, wish, contenders, names) {
            self.object(format!("contender {contender} is granted before {first}"));
        }
        // Those who hold permits together may learn of their grants in any order.
        let before = |it: &&Grant| wish != Wish::Permit && excludes(wish, it.wish);
        let newest = self.granted.iter().filter(before).map(|it| it.token);
        if newest.max().is_some_and(|newest| newest >= token) {
            self.object(format!(
                "contender {contender} is granted a token that is not the largest"
            ));
        }
    }

    /// A node that has to be gone before this one is granted, and is not.
    fn ahead(
        &self,
        own: &Known,
        wish: Wish,
        contenders: &[Contender],
        names: &Names,
    ) -> Option<String> {
        if wish == Wish::Permit {
            // Its node stands for the permit; that in the queue is gone.
            return None;
        }
        let wish_of = |client: u8| {
            contenders.iter().find(|it| it.client == usize::from(client)).map(|it| it.wish)
        };
        let blocks = |known: &&Known| {
            known.created < own.created
                && wish_of(known.label.client).is_some_and(|it| excludes(wish, it))
        };
        names.existing().find(blocks).map(|known| known.label.to_string())
    }

    /// The run is over.
    pub(super) fn end(world: &mut World) {
        if !world.is_all_done() {
            let of = |it: &Contender| format!("{:?}", it.phase());
            let phases: Vec<String> = world.contenders.iter().map(of).collect();
            world.judge.object(format!("this run never ends: {}", phases.join(", ")));
        }
        if let Some(left) = world.names.existing().next() {
            let left = format!("{} stays behind", left.label);
            world.judge.object(left);
        }
        for index in 0..world.contenders.len() {
            let contender = &world.contenders[index];
            let is_wronged = world.judge.wronged.contains(&world.sessions[contender.client]);
            let Phase::Done(outcome) = contender.phase() else { continue };
            if !is_wronged && !matches!(outcome, Outcome::Released | Outcome::GaveUp) {
                world.judge.object(format!("contender {index} fails for no reason: {outcome:?}"));
            }
        }
    }
}

/// Whether two of these may not be granted at the same time.
fn excludes(one: Wish, other: Wish) -> bool {
    !(one == Wish::Read && other == Wish::Read)
}
