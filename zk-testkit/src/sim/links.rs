//! Bytes between clients and the ensemble, as they are sent, arrive and are seen.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use zk_proto::{SessionId, traffic::Received};

use super::{
    Fault, Seen,
    forge::forge,
    frames::{last_frame, received_as, sent_as},
    net::{Arrival, ConnectorId, LinkId},
    state::{State, Wire},
    trace::Actor,
};
use crate::server::{Conn, Member};

impl State {
    pub(super) fn write(&mut self, now: u64, conn: Conn, bytes: Bytes) {
        let Some(&link) = self.conns.get(&conn) else { return };
        let (client, _) = self.net.ends(link);
        let wire = &mut self.wires[link.0];
        let is_greeting = !std::mem::replace(&mut wire.greeted, true);
        let forgeries = &mut self.forgeries[client as usize];
        let mut bytes = bytes;
        if !forgeries.is_empty() {
            let (front, last) = last_frame(&bytes);
            // The first that fits: some wait for another kind of frame.
            let fits = |(at, &(fault, chance)): (usize, &(Fault, u64))| {
                Some((at, fault, chance, forge(fault, chance, is_greeting, last.as_ref()?)?))
            };
            let forged = forgeries.iter().enumerate().find_map(fits);
            if let Some((at, fault, chance, forged)) = forged {
                forgeries.remove(at);
                wire.forged = true;
                *self.fired.entry(fault).or_default() += 1;
                self.trace.note(now, Actor::Client(client), fault.name(), chance);
                let session = self.sessions[client as usize];
                if let (true, Some(observer)) = (fault.damages(), &mut self.observer) {
                    observer.damaged(now, session);
                }
                bytes = [front, forged].concat().into();
            }
        }
        self.net.send(now, link, bytes);
    }

    pub(super) fn arrived(&mut self, now: u64, arrival: Arrival) {
        match arrival {
            Arrival::Syn(link) => {
                let (client, member) = self.net.ends(link);
                let peer = IpAddr::V4(Ipv4Addr::from(0x0A00_0001 + client));
                let conn = self.ensemble.accept(self.time(now), Member(member), peer);
                self.wires[link.0].conn = conn;
                self.conns.extend(conn.map(|conn| (conn, link)));
                self.net.accepted(now, link, conn.is_some());
            }
            Arrival::Bytes(link, bytes) => {
                if let Some(conn) = self.wires[link.0].conn {
                    self.ensemble.received(self.time(now), conn, &bytes);
                }
            }
            Arrival::Gone(link) => {
                if let Some(conn) = self.wires[link.0].conn.take() {
                    self.conns.remove(&conn);
                    self.ensemble.hung_up(self.time(now), conn);
                }
            }
            Arrival::Delivered(link, bytes) => self.delivered(now, link, &bytes),
            Arrival::Reminder(what) => self.incident(now, what),
        }
    }

    fn delivered(&mut self, now: u64, link: LinkId, bytes: &[u8]) {
        let seen = self.seen(now, link);
        self.trace.absorb(bytes);
        if let Some(observer) = &mut self.observer {
            observer.heard(now, link);
        }
        self.wires[link.0].tap.down(bytes, |frame| {
            let (what, argument) = received_as(frame);
            self.trace.note(now, Actor::Client(seen.client), what, argument);
            if let Received::Connect(greeting) = frame {
                let accepted = greeting.session_id != SessionId(0) && greeting.time_out > 0;
                if accepted {
                    self.sessions[seen.client as usize] = greeting.session_id;
                }
            }
            if let Some(observer) = &mut self.observer {
                observer.received(&seen, frame);
            }
        });
    }

    /// A frame at the client's end of a connection.
    fn seen(&self, at: u64, link: LinkId) -> Seen {
        let (client, member) = self.net.ends(link);
        let cut = !self.ensemble.is_in_touch(Member(member));
        let Wire { connector, forged, .. } = self.wires[link.0];
        Seen { at, client, connector, member, link, forged, cut }
    }

    /// A client is about to make one more session, or none.
    pub fn new_connector(&mut self) -> ConnectorId {
        self.connectors += 1;
        ConnectorId(self.connectors)
    }

    /// A client begins to connect.
    pub fn dial(&mut self, client: u32, connector: ConnectorId, member: usize) -> LinkId {
        let now = self.now();
        let link = match self.unresolved[client as usize] {
            Some(after) => self.net.dial_in_vain(now, client, member, after),
            None => self.net.dial(now, client, member),
        };
        self.trace.note(now, Actor::Client(client), "dials", member as u64);
        if let Some(observer) = &mut self.observer {
            observer.dialed(now, client);
        }
        self.wires.push(Wire { connector, ..Wire::default() });
        self.wake_pump();
        link
    }

    /// A client has written this much of its bytes.
    pub fn written(&mut self, link: LinkId, bytes: &[u8]) {
        let now = self.now();
        let seen = self.seen(now, link);
        self.trace.absorb(bytes);
        self.wires[link.0].tap.up(bytes, |frame| {
            let (what, argument) = sent_as(frame);
            self.trace.note(now, Actor::Client(seen.client), what, argument);
            if let Some(observer) = &mut self.observer {
                observer.sent(&seen, frame);
            }
        });
        let ends_frame = self.wires[link.0].tap.is_up_whole();
        if let Some(observer) = &mut self.observer {
            observer.wrote(now, seen.client, ends_frame);
        }
        self.wake_pump();
    }

    /// A client lets go of a connection.
    pub fn left(&mut self, link: LinkId) {
        let now = self.now();
        let (client, member) = self.net.ends(link);
        self.trace.note(now, Actor::Client(client), "leaves", member as u64);
        if let Some(observer) = &mut self.observer {
            observer.left(now, client, link);
        }
        self.net.leave(now, link);
        self.wake_pump();
    }
}
