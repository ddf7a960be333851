//! What comes of a call, held against what has to come of it.

use std::{cmp::Ordering, fmt, pin::Pin, time::Duration};

use zk_client::{Cause, ReadError, SessionEnd, SessionState};
use zk_locks::{AcquireError, CheckError, Contender, Lost, ReleaseError, Status};

use super::{ASKED_MAX, Cut, FOR_EVER, Known, LOOK, SOON, Solo};
use crate::sim::{
    check::{Claim, Loss},
    pass,
    patience::Patience,
    workload::{Drawn, Worker, take::Takes},
};

impl Solo {
    /// What came of asking for something that is to be had.
    pub(super) fn had<T>(&self, what: &str, outcome: Result<T, AcquireError>) -> Known<T> {
        let error = match outcome {
            Ok(had) => return Ok(had),
            Err(error) => error,
        };
        if matches!(error, AcquireError::QueueFull { .. } | AcquireError::WouldDeadlock) {
            self.nothing_comes_late()?;
        }
        let Worker { ctx, client, .. } = &self.worker;
        let what = format!("{what} {}", self.path);
        let drawn = Some(Drawn::default());
        ctx.check().failed(ctx.number, &client.session(), drawn, &what, &error);
        Err(if matches!(error, AcquireError::SessionEnded(_)) { Cut::Over } else { Cut::Failed })
    }

    pub(super) fn read<T>(&self, outcome: Result<T, ReadError>) -> Known<T> {
        match outcome {
            Ok(read) => Ok(read),
            Err(ReadError::Unavailable(Cause::SessionEnded(told))) => self.ended(told),
            Err(ReadError::Unavailable(_)) => Err(Cut::Failed),
            Err(error) => self.wrong("S5", format_args!("a read is refused: {error}")),
        }
    }

    /// What came of giving something back.
    pub(super) fn released(&self, outcome: Result<(), ReleaseError>) -> Known<()> {
        match outcome {
            Ok(()) => Ok(()),
            Err(ReleaseError::SessionEnded(told)) => self.ended(told),
            Err(_) => Err(Cut::Failed),
        }
    }

    /// Something has failed with the session, which is said to have ended so.
    pub(super) fn ended<T>(&self, told: SessionEnd) -> Known<T> {
        match self.worker.client.session().state() {
            SessionState::Ended(end) if end != told => {
                self.wrong("E1", format_args!("is told {told}, and it is {end}"))
            }
            // The error may be here before the state is.
            _ => Err(Cut::Over),
        }
    }

    /// Something is still held, and the servers confirm it.
    pub(super) async fn is_held(
        &self,
        claim: &impl Claim,
        check: impl Future<Output = Result<(), CheckError>>,
    ) -> Known<()> {
        let ctx = &self.worker.ctx;
        let before = ctx.check().asked_alone(ctx.number);
        let checked = check.await;
        let asked = ctx.check().asked_alone(ctx.number) > before;
        if let (Status::Lost(lost), Err(CheckError::Unavailable(why))) = (claim.status(), &checked)
        {
            return self.wrong("E1", format_args!("a check tells {why}, and it is lost: {lost}"));
        }
        self.holds(claim)?;
        self.expect("E1", asked, format_args!("a check asks no server: {checked:?}"))?;
        match checked {
            Ok(()) => Ok(()),
            Err(CheckError::Unavailable(_)) => Err(Cut::Failed),
            Err(lost) => self.wrong("E1", format_args!("a check tells {lost}, and it is held")),
        }
    }

    /// Whether something is still held. It may be lost only with the lease or the session.
    pub(super) fn holds(&self, claim: &impl Claim) -> Known<()> {
        self.stands(claim.status())
    }

    pub(super) fn stands(&self, status: Status) -> Known<()> {
        let Status::Lost(why) = status else { return Ok(()) };
        let Worker { ctx, client, .. } = &self.worker;
        ctx.check().lost(&Loss {
            client: ctx.number,
            session: client.session(),
            why,
            drawn: Some(Drawn::default()),
            held: None,
            since: None,
            nodes: Vec::new(),
        });
        Err(Cut::Failed)
    }

    /// Something is lost since its node was deleted, which may not be heard of before the lease ends.
    pub(super) fn lost_its_node(&self, lost: Lost) -> Known<()> {
        match lost {
            Lost::NodeDeleted => Ok(()),
            Lost::SessionEnded(_) | Lost::LeaseRanOut => Err(Cut::Failed),
            lost => self.wrong("E1", format_args!("is told {lost}, and its node was deleted")),
        }
    }

    /// A node was deleted that its holder was said to have, and the holder hears of that before long.
    pub(super) async fn is_told_of_its_loss(&self, lost: impl Future<Output = Lost>) -> Known<()> {
        let since = self.worker.ctx.now();
        tokio::select! {
            biased;
            lost = lost => self.lost_its_node(lost),
            () = self.until_overdue(since) => {
                self.wrong("S4", format_args!("is not told that its node was deleted"))
            }
        }
    }

    /// Waits until something that was due then has taken too long.
    pub(super) async fn until_overdue(&self, since: u64) {
        let ctx = &self.worker.ctx;
        while !ctx.check().is_overdue(ctx.number, since) {
            pass(LOOK).await;
        }
    }

    /// Takes something that is free, in one of the ways there are.
    pub(super) async fn free<T: Takes>(&mut self, lock: &T) -> Known<T::Taken> {
        let taken = match self.worker.rng.below(3) {
            0 => lock.take().await.map(Some),
            1 => lock.take_within(FOR_EVER).await.map(Some),
            _ => lock.take_now().await,
        };
        match self.had("taking", taken)? {
            Some(taken) => Ok(taken),
            None => {
                self.nothing_comes_late()?;
                let what = std::any::type_name::<T>();
                self.wrong("E1", format_args!("is told that {what} is taken, and it is free"))
            }
        }
    }

    /// Asks for something that is taken, in one of the ways there are.
    pub(super) async fn taken<T: Takes>(&mut self, lock: &T, by: &impl Claim) -> Known<()> {
        let left = self.left();
        let got = match self.worker.rng.below(3) {
            0 => self.times_out(|time| lock.take_within(time)).await?,
            1 => {
                let patience = Patience::drawn(&mut self.worker.rng, 1_000);
                let taken = patience.wait(lock.take()).await;
                taken.map(|taken| self.had("waiting for", taken)).transpose()?
            }
            _ => {
                let taken = lock.take_now().await;
                self.had("looking at", taken)?
            }
        };
        self.holds(by)?;
        if got.is_some() {
            let (what, by) = (std::any::type_name::<T>(), by.path());
            return self.wrong("S2", format_args!("is granted {what}, which is taken by {by:?}"));
        }
        // Attempts that were given up leave nothing.
        self.until_left(left).await
    }

    /// An attempt that has to fail because time is over, and not before.
    pub(super) async fn times_out<T, F>(
        &mut self,
        take: impl FnOnce(Duration) -> F,
    ) -> Known<Option<T>>
    where
        F: Future<Output = Result<T, AcquireError>>,
    {
        let allowed = self.worker.rng.scaled(5, 1_000);
        let (began, stalled) = (self.worker.ctx.now(), self.worker.ctx.stalled());
        let taken = take(Duration::from_millis(allowed)).await;
        let Worker { ctx, .. } = &self.worker;
        let took = ctx.now() - began;
        ctx.check().took("acquiring", ctx.number, took, ctx.stalled() - stalled, allowed);
        match taken {
            Err(AcquireError::TimedOut) => {
                if took + ctx.check().drift(ctx.number, allowed) < allowed {
                    return self.wrong("L4", format_args!("gave up after {took} of {allowed} ms"));
                }
                Ok(None)
            }
            other => self.had("waiting for", other).map(Some),
        }
    }

    /// Something is waited for in vain for a while, as long as these are held.
    pub(super) async fn still_waits<T>(
        &self,
        rule: &'static str,
        mut wait: Pin<&mut impl Future<Output = Result<T, AcquireError>>>,
        by: &[&dyn Claim],
    ) -> Known<()> {
        let ctx = &self.worker.ctx;
        let mut asked = 0;
        let early = tokio::select! {
            biased;
            early = &mut wait => Some(early),
            () = async {
                pass(SOON).await;
                let before = ctx.check().asked_alone(ctx.number);
                pass(SOON).await;
                asked = ctx.check().asked_alone(ctx.number) - before;
            } => None,
        };
        self.expect("L3", asked <= ASKED_MAX, format_args!("waits with {asked} requests"))?;
        for claim in by {
            self.stands(claim.status())?;
        }
        let Some(early) = early else { return Ok(()) };
        drop(self.had("waiting for", early)?);
        self.wrong(rule, format_args!("does not wait"))
    }

    /// The nodes that go with the session.
    pub(super) fn there(&self) -> Vec<String> {
        let checker = self.worker.ctx.check();
        let there = checker.history.begin_with(&self.path).filter(|(_, live)| live.owner.0 != 0);
        there.map(|(path, _)| path[self.path.len()..].to_owned()).collect()
    }

    /// How many there are.
    pub(super) fn left(&self) -> usize {
        self.there().len()
    }

    /// How many there have been.
    pub(super) fn came(&self) -> usize {
        let session = self.worker.client.session().id();
        self.worker.ctx.check().came(&self.path, session)
    }

    /// Waits until so many are there, and are seen to be.
    pub(super) async fn until_left(&self, count: usize) -> Known<()> {
        let Worker { ctx, client, .. } = &self.worker;
        let session = client.session();
        let since = ctx.now();
        // What has been asked for may be there only then.
        self.read(client.resolve_in_doubt().await)?;
        loop {
            let left = self.left();
            match left.cmp(&count) {
                Ordering::Equal => break,
                // One is lost, of which others say why.
                Ordering::Less => return Err(Cut::Failed),
                Ordering::Greater => {}
            }
            if matches!(session.state(), SessionState::Ended(_)) {
                return Err(Cut::Over);
            }
            pass(LOOK).await;
            if ctx.check().is_overdue(ctx.number, since) {
                return self.wrong("X3", format_args!("{left} nodes are left instead of {count}"));
            }
        }
        self.read(client.resolve_in_doubt().await).map(drop)
    }

    /// Contenders are these, in this order.
    pub(super) fn lists(&self, listed: &[Contender], expected: &[&dyn Claim]) -> Known<()> {
        for claim in expected {
            self.stands(claim.status())?;
        }
        let session = self.worker.client.session().id();
        let fits = listed.len() == expected.len()
            && listed.iter().zip(expected).all(|(listed, claim)| {
                listed.token.get() == claim.token().get()
                    && listed.session == session
                    && claim.path().is_none_or(|path| path.ends_with(&listed.name))
            });
        if listed.len() > expected.len() {
            self.nothing_comes_late()?;
        }
        let expected: Vec<_> = expected.iter().map(|it| (it.token(), it.path())).collect();
        self.expect("E1", fits, format_args!("is told of {listed:?}, not {expected:?}"))
    }

    /// An attempt that was given up may come late if servers were busy, and leaves then: more are there than expected.
    pub(super) fn nothing_comes_late(&self) -> Known<()> {
        let ctx = &self.worker.ctx;
        if ctx.check().was_throttled(ctx.number) { Err(Cut::Failed) } else { Ok(()) }
    }

    pub(super) fn expect(
        &self,
        rule: &'static str,
        holds: bool,
        text: fmt::Arguments<'_>,
    ) -> Known<()> {
        if holds { Ok(()) } else { self.wrong(rule, text) }
    }

    pub(super) fn wrong<T>(&self, rule: &'static str, text: fmt::Arguments<'_>) -> Known<T> {
        let text = format!("alone in {}: {text}; there is {:?}", self.path, self.there());
        self.worker.shown_wrong(rule, &text);
        Err(Cut::Failed)
    }
}
