//! An outline: signatures first.
use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use zk_proto::{SessionId, Time, Zxid};

use super::Config;

/// One member of an ensemble, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub usize);

/// One connection of a client. Never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn(pub u64);

/// What the ensemble wants done, in this order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send these bytes to a client.
    Write { conn: Conn, bytes: Bytes },
    /// Close this connection once everything before is sent. The connection is forgotten.
    Close { conn: Conn },
}

/// An ensemble of servers, or a standalone one.
#[derive(Debug)]
pub struct Ensemble {
    config: Config,
}

impl Ensemble {
    pub fn new(config: Config) -> Self {
        Self { config }
    }
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// A client wants to connect. `None`: nobody listens there.
    pub fn accept(&mut self, now: Time, member: Member, peer: IpAddr) -> Option<Conn> {
        None
    }
    /// A client has sent these bytes; any split is fine.
    pub fn received(&mut self, now: Time, conn: Conn, bytes: &[u8]) {}
    /// A client's side of a connection is gone.
    pub fn hung_up(&mut self, now: Time, conn: Conn) {}
    /// What to do next; ask until `None` after every other call.
    pub fn poll(&mut self) -> Option<Output> {
        None
    }
    /// When to call `elapsed` next.
    pub fn deadline(&self) -> Option<Time> {
        None
    }
    pub fn elapsed(&mut self, now: Time) {}

    /// Like SIGKILL: connections are closed, memory of applied state stays (it is on disk).
    pub fn stop(&mut self, now: Time, member: Member) {}
    pub fn start(&mut self, now: Time, member: Member) {}
    /// The network between this member and the others is cut / healed.
    pub fn cut_off(&mut self, now: Time, member: Member) {}
    pub fn rejoin(&mut self, now: Time, member: Member) {}
    /// How far this member lags behind what is committed, from now on.
    pub fn set_lag(&mut self, now: Time, member: Member, lag: Duration) {}
    pub fn leader(&self) -> Option<Member> {
        None
    }
    /// Makes another member the leader, if there is one that can.
    pub fn depose(&mut self, now: Time) {}
    /// Ends a session as if its time were over.
    pub fn expire(&mut self, now: Time, session: SessionId) {}
    /// Closes all connections of clients, or those of one member.
    pub fn drop_connections(&mut self, now: Time, member: Option<Member>) {}
    /// Last transaction that this member has applied.
    pub fn applied(&self, member: Member) -> Zxid {
        Zxid(0)
    }
}
