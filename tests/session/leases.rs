//! Leases of sessions on members that are cut off: on the leader, while the others find another one, and on a follower.

use std::{net::IpAddr, time::Duration};

use zk_proto::{
    SessionId, Time,
    session::{Config, Credentials, Lease, LinkError, Output as Wish, Session, State},
};
use zk_testkit::server::{self, Conn, Ensemble, Member, Output};

const LOCALHOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// As long as Java's servers wait for better votes at least.
const ELECTION: Duration = Duration::from_millis(200);

/// A session whose user does nothing but rely on it, and which reaches no member but one.
struct World {
    ensemble: Ensemble,
    member: Member,
    session: Session<(), ()>,
    conn: Option<Conn>,
    id: SessionId,
    now: Time,
}

impl World {
    fn new(now: Time, tick: Duration, sync_limit: u32, timeout: Duration, leads: bool) -> Self {
        let mut servers = server::Config::default();
        (servers.members, servers.tick, servers.election) = (3, tick, ELECTION);
        servers.sync_limit = tick * sync_limit;
        let ensemble = Ensemble::new(servers);
        let leader = ensemble.leader().unwrap();
        let member = if leads { leader } else { Member(1 - leader.0.min(1)) };
        let session = relied_on(now, timeout, None);
        let (conn, id) = (None, SessionId(0));
        Self { ensemble, member, session, conn, id, now }
    }

    /// Another process goes on with the session, and wishes for another timeout.
    fn resume(&mut self, timeout: Duration) {
        let credentials = self.session.credentials();
        let conn = self.conn.take().unwrap();
        self.ensemble.hung_up(self.now, conn);
        self.session = relied_on(self.now, timeout, credentials);
    }

    /// Everything that is due now, both ways, as fast as light.
    fn settle(&mut self) {
        let Self { ensemble, session, now, .. } = self;
        ensemble.elapsed(*now);
        session.elapsed(*now);
        loop {
            let mut idle = true;
            while let Some(wish) = session.poll() {
                idle = false;
                match wish {
                    Wish::Dial { .. } => {
                        self.conn = ensemble.accept(*now, self.member, LOCALHOST);
                        session.dialed(*now, Ok(()));
                    }
                    Wish::HangUp | Wish::Failed { .. } => {
                        self.conn.take().inspect(|conn| ensemble.hung_up(*now, *conn));
                    }
                    Wish::State(State::Connected(granted)) => self.id = granted.id,
                    _ => {}
                }
            }
            if let (Some(conn), false) = (self.conn, session.outbound().is_empty()) {
                idle = false;
                let bytes = session.outbound().take_all();
                ensemble.received(*now, conn, &bytes);
            }
            while let Some(output) = ensemble.poll() {
                idle = false;
                match output {
                    Output::Write { conn, bytes } if Some(conn) == self.conn => {
                        session.inbound().extend_from_slice(&bytes);
                        session.received(*now);
                    }
                    Output::Close { conn } if Some(conn) == self.conn => {
                        self.conn = None;
                        session.hung_up(*now, LinkError::Closed);
                    }
                    _ => {}
                }
            }
            if idle {
                return;
            }
        }
    }

    /// Lets time pass, and everything happen that is due, until then or until a condition holds.
    fn pass(&mut self, until: Time, ends: impl Fn(&Self) -> bool) {
        loop {
            self.settle();
            if self.now >= until || ends(self) {
                return;
            }
            let due = self.ensemble.deadline().into_iter().chain(self.session.deadline());
            self.now = due.min().unwrap_or(until).min(until).max(self.now);
        }
    }

    fn has_ended(&self) -> bool {
        self.id.0 != 0 && self.ensemble.sessions().all(|(id, _)| id != self.id)
    }
}

fn relied_on(now: Time, timeout: Duration, resume: Option<Credentials>) -> Session<(), ()> {
    let mut config = Config::new(["member:2181"]);
    (config.session_timeout, config.lease, config.resume) = (timeout, Lease::Confirmed, resume);
    let mut session = Session::new(config, 1, now);
    session.rely(true);
    session
}

/// Lets all pass until the session has ended, of which its client does not hear. Returns until when it relied on it, which
/// must be over.
fn lease_at_the_end(
    world: &mut World,
    cut: Time,
    sync_limit: Duration,
    timeout: Duration,
) -> Option<Time> {
    world.pass(cut, |_| false);
    world.ensemble.cut_off(cut, world.member);
    world.pass(cut.after(sync_limit).after(timeout * 3), World::has_ended);
    assert!(world.has_ended(), "{timeout:?} {cut}: the others expire it");
    let lease = world.session.confirmed_lease()?;
    assert!(
        lease <= world.now,
        "timeout {timeout:?}, sync limit {sync_limit:?}, cut off at {cut}: a lease until {lease} of a session that ended \
         at {}",
        world.now,
    );
    Some(lease)
}

/// A follower answers for a while when it is cut off, and has passed on the last confirmation; but the leader has not been told of
/// that, only of what came before.
#[test]
fn follower_that_is_cut_off_has_not_told_of_the_last_confirmation() {
    let mut not_told = 0;
    for (tick, ticks) in [
        (2000, 2.0),
        (2000, 3.0),
        (2000, 5.0),
        (2000, 7.5),
        (2000, 15.0),
        (2000, 20.0),
        (5000, 5.0),
        (5000, 20.0),
    ] {
        let tick = Duration::from_millis(tick);
        let timeout = tick.mul_f64(ticks);
        for part in 0..400 {
            let begin = Time::ZERO.after(tick * (part % 20) / 20);
            let cut = begin.after(timeout + timeout * (part / 20) / 40);
            let mut world = World::new(begin, tick, 5, timeout, false);
            if lease_at_the_end(&mut world, cut, tick * 5, timeout).is_none() {
                continue;
            }
            not_told += u32::from(world.session.lease().is_some_and(|lease| lease > world.now));
        }
    }
    assert!(not_told > 0, "the session ends by what the leader was told");
}

/// The servers store the timeout that it began with, and go by that behind an election.
#[test]
fn longer_timeout_of_a_resumed_session_is_not_relied_on() {
    let tick = Duration::from_secs(2);
    for part in 0..40 {
        let mut world = World::new(Time::ZERO, tick, 2, tick * 2, true);
        world.pass(Time::ZERO.after(tick), |_| false);
        world.resume(tick * 20);
        let cut = Time::ZERO.after(tick * 15 + tick * part / 40);
        assert!(lease_at_the_end(&mut world, cut, tick * 2, tick * 20).is_some(), "{cut}");
    }
}

/// It confirms for up to a tick after the others have given it up. Whatever the session's timeout, and whenever between two
/// ticks, and between two confirmations, it is cut off.
#[test]
fn leader_that_is_cut_off_confirms_no_lease_beyond_the_session() {
    let mut confirmed_too_late = 0;
    for (tick, ticks, sync_limit) in [
        (2000, 2.0, 2),
        (2000, 2.0, 5),
        (2000, 2.5, 5),
        (2000, 3.0, 2),
        (2000, 5.0, 10),
        (2000, 20.0, 5),
        (5000, 5.0, 2),
        (5000, 20.0, 5),
        (1000, 2.0, 3),
        (200, 2.0, 5),
        (200, 20.0, 5),
    ] {
        let tick = Duration::from_millis(tick);
        let timeout = tick.mul_f64(ticks);
        for part in 0..400 {
            // Sessions expire at the ends of ticks, and ask for confirmations from when they began.
            let begin = Time::ZERO.after(tick * (part % 20) / 20);
            let cut = begin.after(timeout + tick * (part / 20) / 10);
            let mut world = World::new(begin, tick, sync_limit, timeout, true);
            let lease = lease_at_the_end(&mut world, cut, tick * sync_limit, timeout);
            let Some(lease) = lease else { continue };
            let full = lease.after(Lease::Confirmed.margin(timeout));
            confirmed_too_late += u32::from(full > world.now);
        }
    }
    assert!(confirmed_too_late > 0, "without a margin it would go unnoticed");
}
