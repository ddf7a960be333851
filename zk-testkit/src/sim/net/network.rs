//! What goes from one end of a connection to the other, and when it gets there.

use std::collections::BinaryHeap;

use bytes::Bytes;

use super::{
    LinkId, Path, Way,
    link::{End, Link, Packet},
    path::Paths,
};
use crate::sim::{Fault, Rng};

/// Something that comes out of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A client wants to connect: answer with [`Net::accepted`].
    Syn(LinkId),
    /// Bytes for the server.
    Bytes(LinkId, Bytes),
    /// The client's end is gone.
    Gone(LinkId),
    /// Bytes that have come to the client, for observers. It has them to read already.
    Delivered(LinkId, Bytes),
    /// What was put there with [`Net::remind`] is due.
    Reminder(u64),
}

/// Longest time, in milliseconds, for which bytes are on their way through a narrow path: buffers are not endless.
const BACKLOG_MAX: u64 = 60_000;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Syn(LinkId),
    /// The answer to a dial has come: 0 connected, 1 refused, 2 no address.
    Dialed(LinkId, u8),
    Packet(LinkId, Way, Packet),
    /// What was held back goes on.
    Flush(LinkId, Way),
    Reminder(u64),
}

/// Soonest first, and in the order of scheduling.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled(std::cmp::Reverse<(u64, u64)>, Happening);

/// A network between clients and servers, both counted from 0. Times are milliseconds, or parts of these.
#[derive(Debug)]
pub struct Net {
    pub(super) rng: Rng,
    pub(super) links: Vec<Link>,
    /// The links with which something can still happen, and some others: of the many that there have been,
    /// few are.
    recent: Vec<usize>,
    /// How many of them there may be before those others are taken out.
    recent_max: usize,
    pub(super) paths: Paths,
    heap: BinaryHeap<Scheduled>,
    scheduled: u64,
    /// How many of the numbers by which times are told make a millisecond.
    pub(in crate::sim) per_milli: u64,
    /// What went wrong with clients, for counters.
    pub(in crate::sim) effects: Vec<Fault>,
}

impl Net {
    /// A network in which nothing goes wrong yet. One way takes `latency` milliseconds, first and last
    /// included.
    #[must_use]
    pub fn new(rng: Rng, clients: usize, servers: usize, latency: (u64, u64)) -> Self {
        Self {
            rng,
            links: Vec::new(),
            recent: Vec::new(),
            recent_max: 0,
            paths: Paths::new(clients, servers, latency),
            heap: BinaryHeap::new(),
            scheduled: 0,
            per_milli: 1,
            effects: Vec::new(),
        }
    }

    /// The way between a client and a server, for things to go wrong on.
    pub fn path(&mut self, client: u32, server: usize) -> &mut Path {
        self.paths.get(client, server)
    }

    /// Everything is well again with all paths.
    pub fn heal_all(&mut self, now: u64) {
        self.paths.heal();
        for link in self.recent.clone() {
            self.release(now, LinkId(link));
        }
    }

    fn add(&mut self, link: Link) {
        if self.recent.len() >= self.recent_max {
            let links = &self.links;
            self.recent.retain(|&id| !links[id].is_finished());
            self.recent_max = self.recent.len() * 2 + 16;
        }
        self.recent.push(self.links.len());
        self.links.push(link);
    }

    /// Begins to connect.
    pub fn dial(&mut self, now: u64, client: u32, server: usize) -> LinkId {
        let id = LinkId(self.links.len());
        let path = self.paths.get(client, server);
        let mut link = Link::new(client, server, &mut self.rng, path.is_choppy());
        if path.silent > 0 {
            link.silent = true;
            self.effects.push(Fault::Silent);
        }
        if path.refuse > 0 {
            self.effects.push(Fault::Refuse);
        }
        if path.syn_hole > 0 {
            self.effects.push(Fault::SynHole);
        }
        let refused = path.refuse > 0;
        self.add(link);
        let at = now + self.latency(id);
        match refused {
            true => self.schedule(at, Happening::Dialed(id, 1)),
            false => self.schedule(at, Happening::Syn(id)),
        }
        id
    }

    /// A name has no address: as [`dial`](Net::dial), and fails after this long.
    pub fn dial_in_vain(&mut self, now: u64, client: u32, server: usize, after: u64) -> LinkId {
        let id = LinkId(self.links.len());
        self.effects.push(Fault::Unresolved);
        let link = Link::new(client, server, &mut self.rng, false);
        self.add(link);
        self.schedule(now + after, Happening::Dialed(id, 2));
        id
    }

    /// The server's answer to a [`Syn`](Arrival::Syn).
    pub fn accepted(&mut self, now: u64, id: LinkId, accepted: bool) {
        let at = now + self.latency(id);
        let link = &mut self.links[id.0];
        link.server_open = accepted;
        let answer = u8::from(!accepted);
        self.schedule(at, Happening::Dialed(id, answer));
    }

    /// The server sends bytes.
    pub fn send(&mut self, now: u64, id: LinkId, bytes: Bytes) {
        self.push(now, id, Way::Down, bytes);
    }

    /// The server closes its end, once everything before is sent.
    pub fn close(&mut self, now: u64, id: LinkId) {
        self.links[id.0].server_open = false;
        self.put(now, id, Way::Down, Packet::Fin);
    }

    /// Something between them resets a connection, here and now: both ends find out, and of what was under
    /// way a part arrives.
    pub fn reset(&mut self, now: u64, id: LinkId) {
        let link = &mut self.links[id.0];
        if !link.is_open() || link.dead {
            return;
        }
        link.cut();
        self.effects.push(Fault::Reset);
        self.put(now, id, Way::Up, Packet::Reset);
        self.put(now, id, Way::Down, Packet::Reset);
    }

    /// The server's side ends a connection properly although the server has not asked for it.
    pub fn finish(&mut self, now: u64, id: LinkId) {
        let link = &self.links[id.0];
        if !link.is_open() || link.dead {
            return;
        }
        self.effects.push(Fault::Finish);
        self.put(now, id, Way::Up, Packet::Fin);
        self.put(now, id, Way::Down, Packet::Fin);
    }

    /// From now on nothing passes, for good, without a notice.
    pub fn forget(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if link.is_open() && !link.dead {
            link.dead = true;
            self.effects.push(Fault::Forget);
        }
    }

    /// Has [`Arrival::Reminder`] come out at some time.
    pub fn remind(&mut self, at: u64, what: u64) {
        self.schedule(at, Happening::Reminder(what));
    }

    /// When the next thing happens.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Scheduled(std::cmp::Reverse((at, _)), _)| *at)
    }

    /// The next thing to come out, if it is due.
    pub fn pop(&mut self, now: u64) -> Option<Arrival> {
        while self.next_at().is_some_and(|at| at <= now) {
            let arrival = self.turn(now);
            if arrival.is_some() {
                return arrival;
            }
        }
        None
    }

    /// The next thing happens; it may come out.
    pub(in crate::sim) fn turn(&mut self, now: u64) -> Option<Arrival> {
        let Scheduled(_, happening) = self.heap.pop()?;
        match happening {
            Happening::Syn(id) => self.syn(now, id),
            Happening::Dialed(id, answer) => {
                self.links[id.0].dialed(answer);
                None
            }
            Happening::Packet(id, way, packet) => self.arrive(now, id, way, packet),
            Happening::Flush(id, way) => self.flush(now, id, way),
            Happening::Reminder(what) => Some(Arrival::Reminder(what)),
        }
    }

    /// Whether the next thing to happen is that bytes arrive.
    #[must_use]
    pub fn next_is_delivery(&self) -> bool {
        let next = self.heap.peek().map(|Scheduled(_, happening)| happening);
        matches!(next, Some(Happening::Packet(_, _, Packet::Bytes(_))))
    }

    /// Lets everything go on that a path held back, if it does so no longer.
    pub fn release(&mut self, now: u64, id: LinkId) {
        let (client, server) = (self.links[id.0].client, self.links[id.0].server);
        let path = *self.paths.get(client, server);
        if !path.blocks_syn() && std::mem::take(&mut self.links[id.0].syn_held) {
            let at = now + self.rng.within(1, 1000 * self.per_milli);
            self.schedule(at, Happening::Syn(id));
        }
        for way in [Way::Up, Way::Down] {
            if !path.blocks(way) && !self.links[id.0].held(way).is_empty() {
                // A sender that has waited for an acknowledgement tries again after a while.
                let at = now + self.rng.within(1, 300 * self.per_milli);
                self.schedule(at, Happening::Flush(id, way));
            }
        }
    }

    /// The oldest packet that was held back arrives, before any that was sent later.
    fn flush(&mut self, now: u64, id: LinkId, way: Way) -> Option<Arrival> {
        let link = &mut self.links[id.0];
        if link.dead || self.paths.get(link.client, link.server).blocks(way) {
            return None;
        }
        let packet = link.held(way).pop_front()?;
        if !link.held(way).is_empty() {
            self.schedule(now, Happening::Flush(id, way));
        }
        self.come_out(now, id, way, packet)
    }

    /// The connections of a client, or of all, that are not over.
    pub fn open_links(&self, client: Option<u32>) -> impl Iterator<Item = LinkId> {
        let wanted = move |link: &Link| client.is_none_or(|client| client == link.client);
        let alive = |link: &Link| link.is_open() && !link.client_gone;
        let links = self.recent.iter().map(|&id| (id, &self.links[id]));
        links.filter(move |(_, link)| alive(link) && wanted(link)).map(|(id, _)| LinkId(id))
    }

    /// All connections that some end still has to hear about, of a path.
    pub(in crate::sim) fn of_path(&self, client: u32, server: usize) -> Vec<LinkId> {
        let ours = |link: &Link| link.client == client && link.server == server;
        let links = self.recent.iter().map(|&id| (id, &self.links[id]));
        links.filter(|(_, link)| ours(link) && !link.is_over()).map(|(id, _)| LinkId(id)).collect()
    }

    /// The owner of the connection, and its other end.
    #[must_use]
    pub fn ends(&self, id: LinkId) -> (u32, usize) {
        (self.links[id.0].client, self.links[id.0].server)
    }

    /// Whether the client has left this connection.
    #[must_use]
    pub fn is_left(&self, id: LinkId) -> bool {
        self.links[id.0].client_gone
    }

    fn latency(&mut self, id: LinkId) -> u64 {
        let link = &self.links[id.0];
        let path = self.paths.get(link.client, link.server);
        let slow = path.slow;
        if slow > 0 {
            self.effects.push(Fault::Slow);
        }
        let (low, high) = self.paths.latency;
        self.rng.within(low, high) + if slow > 0 { self.rng.within(0, slow) } else { 0 }
    }

    /// Sends bytes, in pieces.
    pub(super) fn push(&mut self, now: u64, id: LinkId, way: Way, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let piece = self.links[id.0].piece(&mut self.rng, bytes.len());
            if piece < bytes.len() {
                self.effects.push(Fault::Split);
            }
            let piece = bytes.split_to(piece);
            self.put(now, id, way, Packet::Bytes(piece));
        }
    }

    pub(super) fn put(&mut self, now: u64, id: LinkId, way: Way, packet: Packet) {
        let mut at = now + self.latency(id);
        let link = &mut self.links[id.0];
        let path = self.paths.get(link.client, link.server);
        if let (Packet::Bytes(bytes), true) = (&packet, path.bytes_per_second > 0) {
            let passes = bytes.len() as u64 * 1000 * self.per_milli / path.bytes_per_second;
            let backlog_ends = now + BACKLOG_MAX * self.per_milli;
            at = (at.max(link.last(way)) + passes).min(backlog_ends);
        }
        at = at.max(link.last(way));
        link.raise_last(way, at);
        self.schedule(at, Happening::Packet(id, way, packet));
    }

    fn schedule(&mut self, at: u64, happening: Happening) {
        self.scheduled += 1;
        self.heap.push(Scheduled(std::cmp::Reverse((at, self.scheduled)), happening));
    }

    fn syn(&mut self, now: u64, id: LinkId) -> Option<Arrival> {
        let link = &mut self.links[id.0];
        if link.client_gone {
            return None;
        }
        if self.paths.get(link.client, link.server).blocks_syn() {
            link.syn_held = true;
            return None;
        }
        if link.silent {
            // The server never hears of it.
            let at = now + self.latency(id);
            self.schedule(at, Happening::Dialed(id, 0));
            return None;
        }
        Some(Arrival::Syn(id))
    }

    fn arrive(&mut self, now: u64, id: LinkId, way: Way, packet: Packet) -> Option<Arrival> {
        let link = &mut self.links[id.0];
        if link.dead {
            return None;
        }
        let path = self.paths.get(link.client, link.server);
        if path.blocks(way) || !link.held(way).is_empty() {
            if path.blocks(way) {
                self.effects.push(path.why_blocked(way));
            }
            link.held(way).push_back(packet);
            return None;
        }
        self.come_out(now, id, way, packet)
    }

    fn come_out(&mut self, now: u64, id: LinkId, way: Way, packet: Packet) -> Option<Arrival> {
        match way {
            Way::Up => self.arrive_up(now, id, packet),
            Way::Down => self.arrive_down(now, id, packet),
        }
    }

    fn arrive_up(&mut self, now: u64, id: LinkId, packet: Packet) -> Option<Arrival> {
        let link = &mut self.links[id.0];
        match packet {
            Packet::Bytes(bytes) => {
                link.taken(bytes.len());
                let bytes = link.survives(Way::Up, bytes, &mut self.rng)?;
                if link.server_open {
                    if link.client_gone {
                        self.effects.push(Fault::Late);
                    }
                    return Some(Arrival::Bytes(id, bytes));
                }
                // The other side is gone: the sender gets an error.
                if !link.silent && !link.client_gone {
                    self.put(now, id, Way::Down, Packet::Reset);
                }
                None
            }
            Packet::Fin | Packet::Reset => {
                link.up_over = true;
                std::mem::take(&mut link.server_open).then_some(Arrival::Gone(id))
            }
        }
    }

    fn arrive_down(&mut self, now: u64, id: LinkId, packet: Packet) -> Option<Arrival> {
        let link = &mut self.links[id.0];
        match packet {
            Packet::Bytes(bytes) if link.client_gone => {
                if link.server_open {
                    self.put(now, id, Way::Up, Packet::Reset);
                }
                drop(bytes);
                None
            }
            Packet::Bytes(bytes) => {
                let bytes = link.survives(Way::Down, bytes, &mut self.rng)?;
                link.deliver(&bytes).then_some(Arrival::Delivered(id, bytes))
            }
            Packet::Fin => {
                link.end(End::Closed);
                None
            }
            Packet::Reset => {
                link.end(End::Reset);
                None
            }
        }
    }
}
