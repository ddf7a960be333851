//! Leases that a leader confirms which is cut off, while the others find another one.

use std::{net::IpAddr, time::Duration};

use zk_proto::{
    SessionId, Time,
    session::{Config, Lease, LinkError, Output as Wish, Session, State},
};
use zk_testkit::server::{self, Conn, Ensemble, Member, Output};

const LOCALHOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// As long as Java's servers wait for better votes at least.
const ELECTION: Duration = Duration::from_millis(200);

/// A session whose user does nothing but rely on it, and which reaches no member but the leader.
struct World {
    ensemble: Ensemble,
    leader: Member,
    session: Session<(), ()>,
    conn: Option<Conn>,
    id: SessionId,
    now: Time,
}

impl World {
    fn new(now: Time, tick: Duration, sync_limit: u32, timeout: Duration) -> Self {
        let mut servers = server::Config::default();
        (servers.members, servers.tick, servers.election) = (3, tick, ELECTION);
        servers.sync_limit = tick * sync_limit;
        let ensemble = Ensemble::new(servers);
        let leader = ensemble.leader().unwrap();
        let mut config = Config::new(["leader:2181"]);
        (config.session_timeout, config.lease) = (timeout, Lease::Confirmed);
        let mut session = Session::new(config, 1, now);
        session.rely(true);
        let (conn, id) = (None, SessionId(0));
        Self { ensemble, leader, session, conn, id, now }
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
                        self.conn = ensemble.accept(*now, self.leader, LOCALHOST);
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
            let mut world = World::new(begin, tick, sync_limit, timeout);
            world.pass(cut, |_| false);
            world.ensemble.cut_off(cut, world.leader);
            let given_up = cut.after(tick * sync_limit);
            world.pass(given_up.after(timeout * 3), World::has_ended);
            assert!(world.has_ended(), "{tick:?} {timeout:?} {part}: the others expire it");
            let Some(lease) = world.session.confirmed_lease() else { continue };
            assert!(
                lease <= world.now,
                "tick {tick:?}, timeout {timeout:?}, cut off at {cut}: a lease until {lease} of a session that \
                 ended at {}",
                world.now,
            );
            let full = lease.after(Lease::Confirmed.margin(timeout));
            confirmed_too_late += u32::from(full > world.now);
        }
    }
    assert!(confirmed_too_late > 0, "without a margin it would go unnoticed");
}
