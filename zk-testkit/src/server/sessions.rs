//! Sessions, as the leader keeps them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::BufMut as _;
use zk_proto::{SessionId, Time};

use super::Conn;
use crate::rng;

/// Length of a session's password.
pub(super) const PASSWORD_LEN: usize = 16;

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    pub(super) timeout: Duration,
    /// The timeout that it began with, which servers store.
    stored: Duration,
    pub(super) expires: Time,
    /// The connection that carries it, and only that may write.
    pub(super) conn: Option<Conn>,
}

impl Session {
    /// Its negotiated timeout.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When it ends, unless something is heard of it.
    #[must_use]
    pub const fn expires(&self) -> Time {
        self.expires
    }

    /// The connection that carries it.
    #[must_use]
    pub const fn conn(&self) -> Option<Conn> {
        self.conn
    }
}

/// All sessions. They expire in buckets: at multiples of the tick.
#[derive(Debug)]
pub(super) struct Sessions {
    tick: Duration,
    /// Whether a session whose timeout has become shorter ends the earlier for being heard of.
    shorten: bool,
    all: BTreeMap<SessionId, Session>,
    buckets: BTreeSet<(Time, SessionId)>,
    next: i64,
    secret: u64,
}

impl Sessions {
    pub(super) fn new(tick: Duration, shorten: bool, seed: u64) -> Self {
        // As servers do: the server's number on top, then something like the time, then a counter.
        let next = 1 << 56 | i64::try_from(mix(seed) >> 24).unwrap_or_default() << 16;
        let secret = mix(!seed);
        Self { tick, shorten, all: BTreeMap::new(), buckets: BTreeSet::new(), next, secret }
    }

    /// The same without any sessions.
    pub(super) fn none(&self) -> Self {
        Self { all: BTreeMap::new(), buckets: BTreeSet::new(), ..*self }
    }

    pub(super) fn next_id(&mut self) -> SessionId {
        let id = SessionId(self.next);
        self.next = self.next.wrapping_add(1);
        id
    }

    pub(super) fn open(&mut self, now: Time, id: SessionId, timeout: Duration, conn: Option<Conn>) {
        let expires = self.bucket(now, timeout);
        self.all.insert(id, Session { timeout, stored: timeout, expires, conn });
        self.buckets.insert((expires, id));
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.all.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.all.iter().map(|(id, session)| (*id, session))
    }

    pub(super) fn close(&mut self, id: SessionId) -> Option<Session> {
        let session = self.all.remove(&id)?;
        self.buckets.remove(&(session.expires, id));
        Some(session)
    }

    /// Something was heard of a session.
    pub(super) fn touch(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.all.get(&id) else { return };
        let (before, timeout) = (session.expires, session.timeout);
        let expires = self.bucket(now, timeout);
        self.move_to(id, if self.shorten { expires } else { expires.max(before) });
    }

    /// A connection takes a session over. Returns the one that had it.
    pub(super) fn attach(&mut self, id: SessionId, conn: Conn, timeout: Duration) -> Option<Conn> {
        let session = self.all.get_mut(&id)?;
        session.timeout = timeout;
        session.conn.replace(conn)
    }

    /// These connections carry their sessions, as far as there are any.
    pub(super) fn attach_all(&mut self, bound: &BTreeMap<SessionId, Conn>) {
        for (id, conn) in bound {
            if let Some(session) = self.all.get_mut(id) {
                session.conn = Some(*conn);
            }
        }
    }

    pub(super) fn detach(&mut self, id: SessionId, conn: Conn) {
        if let Some(session) = self.all.get_mut(&id).filter(|it| it.conn == Some(conn)) {
            session.conn = None;
        }
    }

    /// A new leader gives all sessions their whole timeout again: the one that is stored, until it hears of them.
    pub(super) fn restart(&mut self, now: Time) {
        let all: Vec<_> = self.all.iter().map(|(id, session)| (*id, session.stored)).collect();
        for (id, timeout) in all {
            let expires = self.bucket(now, timeout);
            self.move_to(id, expires);
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.buckets.first().map(|(at, _)| *at)
    }

    /// A session whose time is over, the earliest first.
    pub(super) fn expired(&self, now: Time) -> Option<SessionId> {
        self.buckets.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    pub(super) fn password(&self, id: SessionId) -> [u8; PASSWORD_LEN] {
        let [first, second] = [0, 1].map(|half| mix(self.secret ^ id.0 as u64 ^ half));
        let mut password = [0; PASSWORD_LEN];
        let mut rest = &mut password[..];
        rest.put_u64(first);
        rest.put_u64(second);
        password
    }

    fn move_to(&mut self, id: SessionId, expires: Time) {
        if let Some(session) = self.all.get_mut(&id) {
            self.buckets.remove(&(session.expires, id));
            session.expires = expires;
            self.buckets.insert((expires, id));
        }
    }

    /// The first multiple of the tick after the timeout.
    fn bucket(&self, now: Time, timeout: Duration) -> Time {
        next_multiple(now.since_epoch().saturating_add(timeout), self.tick)
    }
}

/// The first multiple of a unit after a time.
pub(super) fn next_multiple(after: Duration, unit: Duration) -> Time {
    let unit = unit.as_nanos().max(1);
    let nanos = (after.as_nanos() / unit + 1).saturating_mul(unit);
    Time::new(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

/// One number out of another.
const fn mix(mut seed: u64) -> u64 {
    rng::next(&mut seed)
}
