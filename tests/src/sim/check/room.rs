//! S8: no more requests at once, nor more of their bytes, than there is room for.

use std::collections::BTreeMap;

use zk_proto::{OpCode, Xid, traffic::SentRequest};
use zk_testkit::sim::{ConnectorId, LinkId, Seen};

use super::Checker;
use crate::sim::workload::ERRANDS;

/// Bytes of a request's header.
const LEN_HEADER: usize = 8;

/// Reads at once with which several hundred nodes are read before others have changed some of them at once.
const READS_MIN: usize = 16;

/// Bytes of a read, about.
const READ_LEN: usize = 100;

/// How much a session may ask for at once, and hear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) requests: usize,
    pub(crate) bytes: usize,
    /// How many events each stream keeps, if that is little.
    pub(crate) events: Option<usize>,
}

/// By clients, and by their connections.
#[derive(Default)]
pub(super) struct Rooms {
    clients: BTreeMap<u32, (ConnectorId, Room)>,
    links: BTreeMap<LinkId, Lane>,
    /// The most requests at once of each client, since it has begun to ask.
    most: BTreeMap<u32, usize>,
}

/// A connection, and the lengths of requests that have no reply yet.
struct Lane {
    client: u32,
    room: Room,
    open: BTreeMap<Xid, usize>,
}

impl Room {
    /// Whether events that come at once can make a gap, and while all is read anew, a few nodes at a time, they come again.
    pub(crate) const fn is_of_gaps(&self) -> bool {
        self.events.is_some() && (self.requests < READS_MIN || self.bytes < READS_MIN * READ_LEN)
    }
}

impl Checker {
    /// The next session of a client may ask for so much at once.
    pub(crate) fn has_room(&mut self, client: u32, connector: ConnectorId, room: Room) {
        self.rooms.clients.insert(client, (connector, room));
    }

    /// A client closes its session, or drops it, which closes it: what still waits for room is sent at once.
    pub(crate) fn sends_the_rest(&mut self, client: u32) {
        self.rooms.clients.remove(&client);
        self.rooms.links.retain(|_, lane| lane.client != client);
    }

    /// How much a client may ask for at once.
    pub(crate) fn room_of(&self, client: u32) -> Option<Room> {
        self.rooms.clients.get(&client).map(|(_, room)| *room)
    }

    /// A client begins to ask as much as it may.
    pub(crate) fn begins_to_ask(&mut self, client: u32) {
        self.rooms.most.remove(&client);
    }

    /// How many requests of a client were under way at once, since it has begun to ask.
    pub(crate) fn asked_at_once(&self, client: u32) -> usize {
        self.rooms.most.get(&client).copied().unwrap_or_default()
    }

    pub(super) fn opens(&mut self, seen: &Seen) {
        // A session that its client has let go of is not what comes next.
        let room = self
            .rooms
            .clients
            .get(&seen.client)
            .filter(|(connector, _)| *connector == seen.connector);
        if let Some(&(_, room)) = room {
            let lane = Lane { client: seen.client, room, open: BTreeMap::new() };
            self.rooms.links.insert(seen.link, lane);
        }
    }

    /// What clients ask for of their own accord: searches, for one, need no room.
    pub(super) fn takes_room(&mut self, seen: &Seen, request: &SentRequest) {
        let is_asked = matches!(request.header.op, OpCode::GET_DATA | OpCode::SET_DATA)
            && request.path().is_some_and(|path| path.lossy().starts_with(ERRANDS));
        let Some(lane) = self.rooms.links.get_mut(&seen.link).filter(|_| is_asked) else { return };
        lane.open.insert(request.header.xid, LEN_HEADER + request.body.len());
        let bytes = lane.open.values().copied().fold(0, usize::saturating_add);
        let requests = lane.open.len();
        let room = lane.room;
        let most = self.rooms.most.entry(lane.client).or_default();
        *most = requests.max(*most);
        if requests > 1 && (requests > room.requests || bytes > room.bytes) {
            let text =
                format!("c{} asks {requests} times at once, {bytes} bytes: {room:?}", seen.client);
            self.violated("S8", text);
        }
    }

    pub(super) fn leaves_room(&mut self, link: LinkId, xid: Xid) {
        if let Some(lane) = self.rooms.links.get_mut(&link) {
            lane.open.remove(&xid);
        }
    }

    pub(super) fn closes_lane(&mut self, link: LinkId) {
        self.rooms.links.remove(&link);
    }
}
