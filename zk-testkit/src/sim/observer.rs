//! Watching what passes between clients and servers.

use zk_proto::{
    SessionId,
    traffic::{Received, Sent},
};

use super::{ConnectorId, LinkId};
use crate::server::Ensemble;

/// A frame seen at a client's end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When, in milliseconds.
    pub at: u64,
    /// Whose.
    pub client: u32,
    /// What it was made by.
    pub connector: ConnectorId,
    /// The member at the other end.
    pub member: usize,
    /// The connection.
    pub link: LinkId,
    /// Whether something on this connection was forged: then replies prove nothing.
    pub forged: bool,
    /// Whether the member is out of touch with the leader: then it does not know which sessions live.
    pub cut: bool,
}

/// An observer.
pub trait Observer: Send {
    /// A client begins to connect.
    fn dialed(&mut self, _at: u64, _client: u32) {}
    /// A client has handed this over to a connection.
    fn sent(&mut self, seen: &Seen, frame: &Sent<'_>);
    /// A client has handed over bytes, the last of which end a frame or do not.
    fn wrote(&mut self, _at: u64, _client: u32, _ends_frame: bool) {}
    /// Bytes have come to a client, which may be a part of a frame.
    fn heard(&mut self, _at: u64, _link: LinkId) {}
    /// This has come to a client.
    fn received(&mut self, seen: &Seen, frame: &Received);
    /// A client lets go of a connection. What has come in the same millisecond may not have been read: a
    /// reset takes along what waits to be read.
    fn left(&mut self, _at: u64, _client: u32, _link: LinkId) {}
    /// A fault is about to end this session, whatever its client does.
    fn expires(&mut self, at: u64, session: SessionId);
    /// Bytes for this session were damaged: whatever it sees may be wrong.
    fn damaged(&mut self, at: u64, session: SessionId);
    /// The ensemble has done something, and may have committed transactions.
    fn stepped(&mut self, at: u64, ensemble: &Ensemble);
}
