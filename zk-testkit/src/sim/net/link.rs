//! One connection: what each end has, and what is under way.

use std::{collections::VecDeque, io, task::Waker};

use bytes::{Bytes, BytesMut};

use super::Way;
use crate::sim::Rng;

/// Bytes that a sender may have under way before it has to wait: a small socket buffer.
pub(super) const WINDOW: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Packet {
    Bytes(Bytes),
    Fin,
    Reset,
}

/// How a client's end ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Reset,
}

/// How bytes are cut into pieces.
#[derive(Clone, Copy, Debug)]
enum Pieces {
    Whole,
    UpTo(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Not,
    Within,
    Behind,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: u32,
    pub(super) server: usize,
    /// The answer to the dial.
    dialed: Option<u8>,
    dial_waker: Option<Waker>,
    /// Whether the server has this connection.
    pub(super) server_open: bool,
    pub(super) client_gone: bool,
    /// Whether the server knows of its end.
    pub(super) up_over: bool,
    /// Whether a reset is on its way: of the next bytes a part arrives, and nothing after them.
    cut_up: Cut,
    cut_down: Cut,
    /// Whether nothing passes any more, without a notice.
    pub(super) dead: bool,
    /// Whether it is accepted and then ignored.
    pub(super) silent: bool,
    pub(super) syn_held: bool,
    received: BytesMut,
    end: Option<End>,
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
    /// Bytes that the client has written and the server has not taken.
    under_way: usize,
    pieces: Pieces,
    last_up: u64,
    last_down: u64,
    held_up: VecDeque<Packet>,
    held_down: VecDeque<Packet>,
}

impl Link {
    pub(super) fn new(client: u32, server: usize, rng: &mut Rng, choppy: bool) -> Self {
        let pieces = match rng.below(10) {
            _ if choppy => Pieces::UpTo(rng.within(1, 20)),
            0..=7 => Pieces::Whole,
            8 => Pieces::UpTo(200),
            _ => Pieces::UpTo(rng.within(1, 40)),
        };
        Self {
            client,
            server,
            dialed: None,
            dial_waker: None,
            server_open: false,
            client_gone: false,
            up_over: false,
            cut_up: Cut::Not,
            cut_down: Cut::Not,
            dead: false,
            silent: false,
            syn_held: false,
            received: BytesMut::new(),
            end: None,
            read_waker: None,
            write_waker: None,
            under_way: 0,
            pieces,
            last_up: 0,
            last_down: 0,
            held_up: VecDeque::new(),
            held_down: VecDeque::new(),
        }
    }

    /// Whether the client has it and it has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.dialed == Some(0) && self.end.is_none()
    }

    /// Whether the client knows that it is over, or has never begun.
    pub(super) const fn is_ended(&self) -> bool {
        self.end.is_some() || matches!(self.dialed, Some(1..))
    }

    /// Whether nothing can happen with it any more.
    pub(super) fn is_over(&self) -> bool {
        let client = self.client_gone || self.end.is_some() || matches!(self.dialed, Some(1..));
        let server = !self.server_open;
        client && server && self.held_up.is_empty() && self.held_down.is_empty()
    }

    /// Whether it is over for good: its beginning is not awaited, either.
    pub(super) fn is_finished(&self) -> bool {
        self.dialed.is_some() && self.is_over()
    }

    pub(super) fn held(&mut self, way: Way) -> &mut VecDeque<Packet> {
        match way {
            Way::Up => &mut self.held_up,
            Way::Down => &mut self.held_down,
        }
    }

    pub(super) const fn last(&self, way: Way) -> u64 {
        match way {
            Way::Up => self.last_up,
            Way::Down => self.last_down,
        }
    }

    pub(super) fn raise_last(&mut self, way: Way, at: u64) {
        let last = match way {
            Way::Up => &mut self.last_up,
            Way::Down => &mut self.last_down,
        };
        *last = at.max(*last);
    }

    /// Length of the next piece of so many bytes.
    pub(super) fn piece(&self, rng: &mut Rng, len: usize) -> usize {
        match self.pieces {
            Pieces::Whole => len,
            Pieces::UpTo(max) => (rng.within(1, max) as usize).min(len),
        }
    }

    pub(super) fn dialed(&mut self, answer: u8) {
        self.dialed = Some(answer);
        wake(&mut self.dial_waker);
    }

    pub(super) fn poll_dial(&mut self, waker: &Waker) -> Option<u8> {
        if self.dialed.is_none() {
            remember(&mut self.dial_waker, waker);
        }
        self.dialed
    }

    /// What is cut already stays so: nothing may come behind it.
    pub(super) fn cut(&mut self) {
        for cut in [&mut self.cut_up, &mut self.cut_down] {
            if matches!(cut, Cut::Not) {
                *cut = Cut::Within;
            }
        }
    }

    /// As much of these bytes as a reset lets through.
    pub(super) fn survives(&mut self, way: Way, mut bytes: Bytes, rng: &mut Rng) -> Option<Bytes> {
        let cut = match way {
            Way::Up => &mut self.cut_up,
            Way::Down => &mut self.cut_down,
        };
        match cut {
            Cut::Not => {}
            Cut::Within => {
                bytes.truncate(rng.index(bytes.len() + 1));
                *cut = Cut::Behind;
            }
            Cut::Behind => return None,
        }
        Some(bytes).filter(|bytes| !bytes.is_empty())
    }

    /// The server has taken bytes off the way.
    pub(super) fn taken(&mut self, len: usize) {
        self.under_way = self.under_way.saturating_sub(len);
        wake(&mut self.write_waker);
    }

    /// Returns whether the client can still see the bytes.
    pub(super) fn deliver(&mut self, bytes: &[u8]) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.received.extend_from_slice(bytes);
        wake(&mut self.read_waker);
        true
    }

    pub(super) fn end(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
        }
        if end == End::Reset {
            self.end = Some(end);
            self.received.clear();
        }
        wake(&mut self.read_waker);
        wake(&mut self.write_waker);
        wake(&mut self.dial_waker);
    }

    pub(super) fn has_news(&self) -> bool {
        !self.received.is_empty() || self.end.is_some()
    }

    pub(super) fn poll_read(&mut self, len: usize, waker: &Waker) -> Option<io::Result<Bytes>> {
        if !self.received.is_empty() {
            let len = len.min(self.received.len());
            return Some(Ok(self.received.split_to(len).freeze()));
        }
        match self.end {
            Some(End::Closed) => Some(Ok(Bytes::new())),
            Some(End::Reset) => Some(Err(io::ErrorKind::ConnectionReset.into())),
            None => {
                remember(&mut self.read_waker, waker);
                None
            }
        }
    }

    /// How many bytes can be taken; they count as under way then.
    pub(super) fn poll_write(&mut self, len: usize, waker: &Waker) -> Option<io::Result<usize>> {
        if self.end == Some(End::Reset) {
            return Some(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = WINDOW.saturating_sub(self.under_way);
        if room == 0 {
            remember(&mut self.write_waker, waker);
            return None;
        }
        let taken = len.min(room);
        self.under_way += taken;
        Some(Ok(taken))
    }

    pub(super) fn forget_wakers(&mut self) {
        self.dial_waker = None;
        self.read_waker = None;
        self.write_waker = None;
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

fn remember(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(known) if known.will_wake(waker) => {}
        _ => *slot = Some(waker.clone()),
    }
}
