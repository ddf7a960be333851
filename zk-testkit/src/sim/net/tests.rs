//! What the network promises: late or lost, but never missing, doubled or out of order.

use std::task::Waker;

use bytes::Bytes;

use super::{Arrival, LinkId, Net, link::WINDOW};
use crate::sim::Rng;

/// A network with one connection, made at once.
struct Pair {
    net: Net,
    link: LinkId,
    now: u64,
    at_server: Vec<u8>,
    server_told: bool,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut net = Net::new(Rng::new(seed), 1, 1, (1, 20));
        let link = net.dial(0, 0, 0);
        let mut pair = Self { net, link, now: 0, at_server: Vec::new(), server_told: false };
        pair.until(1000);
        assert_eq!(pair.net.poll_dial(link, Waker::noop()), Some(0));
        pair
    }

    fn until(&mut self, end: u64) {
        while let Some(at) = self.net.next_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            match self.net.pop(self.now) {
                Some(Arrival::Syn(link)) => self.net.accepted(self.now, link, true),
                Some(Arrival::Bytes(_, bytes)) => self.at_server.extend_from_slice(&bytes),
                Some(Arrival::Gone(_)) => self.server_told = true,
                Some(Arrival::Delivered(..) | Arrival::Reminder(_)) | None => {}
            }
        }
        self.now = end;
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let written = self.net.poll_write(self.now, self.link, bytes, Waker::noop());
        written.map_or(0, |written| written.unwrap_or(0))
    }

    fn read(&mut self) -> Option<std::io::Result<Bytes>> {
        self.net.poll_read(self.link, usize::MAX, Waker::noop())
    }

    fn read_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(Ok(bytes)) = self.read() {
            if bytes.is_empty() {
                break;
            }
            all.extend_from_slice(&bytes);
        }
        all
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

#[test]
fn bytes_arrive_whole_and_in_order() {
    for seed in 0..200 {
        let mut pair = Pair::new(seed);
        let mut rng = Rng::new(seed);
        let all = bytes(5_000);
        let (mut up, mut down) = (0, 0);
        let mut got = Vec::new();
        while up < all.len() || down < all.len() {
            let end = (up + rng.index(300)).min(all.len());
            up += pair.write(&all[up..end]);
            let end = (down + rng.index(300)).min(all.len());
            pair.net.send(pair.now, pair.link, Bytes::copy_from_slice(&all[down..end]));
            down = end;
            let path = pair.net.path(0, 0);
            path.hole_up = rng.below(2) as u16;
            path.hole_down = rng.below(2) as u16;
            path.choppy = rng.below(2) as u16;
            path.slow = rng.below(400);
            path.bytes_per_second = rng.below(3) * 10_000;
            pair.net.release(pair.now, pair.link);
            let next = pair.now + rng.below(200);
            pair.until(next);
            got.extend(pair.read_all());
        }
        pair.net.heal_all(pair.now);
        pair.until(1_000_000);
        got.extend(pair.read_all());
        assert!(pair.at_server == all, "up, seed {seed}");
        assert!(got == all, "down, seed {seed}");
    }
}

#[test]
fn reset_delivers_a_part_to_both_ends() {
    let mut parts = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let mut pair = Pair::new(seed);
        let all = bytes(100);
        assert_eq!(pair.write(&all), 100);
        pair.net.send(pair.now, pair.link, Bytes::from(all.clone()));
        pair.net.reset(pair.now, pair.link);
        pair.until(10_000);
        let error = pair.read().expect("the client is told").expect_err("of a reset");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(pair.server_told && all.starts_with(&pair.at_server));
        parts.insert(pair.at_server.len());
    }
    assert!(parts.len() > 10, "{parts:?}");
}

#[test]
fn nothing_arrives_after_a_reset_cut() {
    let mut torn = 0;
    for seed in 0..200 {
        let mut pair = Pair::new(seed);
        let all = bytes(1_000);
        for chunk in all.chunks(100) {
            pair.net.send(pair.now, pair.link, Bytes::copy_from_slice(chunk));
        }
        // Resets overtake nothing: bytes that are under way still come, one after the other.
        let mut got = Vec::new();
        for _ in 0..20 {
            pair.net.reset(pair.now, pair.link);
            pair.until(pair.now + 1);
            got.extend(pair.read_all());
        }
        assert!(all.starts_with(&got), "seed {seed}");
        torn += usize::from(got.len() % 100 != 0);
    }
    assert!(torn > 20, "{torn}");
}

#[test]
fn a_proper_end_comes_behind_all_bytes() {
    let mut pair = Pair::new(7);
    pair.net.send(pair.now, pair.link, Bytes::from_static(b"last words"));
    pair.net.close(pair.now, pair.link);
    pair.until(10_000);
    assert_eq!(pair.read_all(), b"last words");
    assert!(pair.read().expect("an end").expect("a proper one").is_empty());
    // A client that goes on writing gets an error in the end.
    assert!(pair.write(b"hello?") > 0);
    pair.until(20_000);
    let more = pair.net.poll_write(pair.now, pair.link, b"hello?", Waker::noop());
    assert_eq!(more.expect("news").expect_err("bad ones").kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn forgotten_connection_stays_silent() {
    let mut pair = Pair::new(7);
    pair.net.forget(pair.link);
    assert!(pair.write(b"anybody?") > 0);
    pair.net.send(pair.now, pair.link, Bytes::from_static(b"anybody?"));
    pair.net.heal_all(pair.now);
    pair.until(1_000_000);
    assert!(pair.at_server.is_empty() && pair.read().is_none() && !pair.server_told);
}

#[test]
fn writer_into_a_hole_blocks_on_full_window() {
    let mut pair = Pair::new(7);
    pair.net.path(0, 0).hole_up = 1;
    let all = bytes(2 * WINDOW);
    assert_eq!(pair.write(&all), WINDOW);
    pair.until(5_000);
    assert_eq!(pair.write(&all), 0);
    pair.net.heal_all(pair.now);
    pair.until(10_000);
    assert_eq!(pair.at_server.len(), WINDOW);
    assert!(pair.write(&all) > 0);
}

#[test]
fn bytes_arrive_after_the_client_has_left() {
    let mut pair = Pair::new(7);
    pair.net.path(0, 0).hole_up = 1;
    assert!(pair.write(b"farewell") > 0);
    pair.until(2_000);
    pair.net.leave(pair.now, pair.link);
    pair.until(4_000);
    assert!(!pair.server_told);
    pair.net.heal_all(pair.now);
    pair.until(10_000);
    assert_eq!(pair.at_server, b"farewell");
    assert!(pair.server_told);
}

#[test]
fn dial_is_refused_ignored_or_left_silent() {
    let mut net = Net::new(Rng::new(1), 3, 1, (1, 5));
    net.path(0, 0).refuse = 1;
    net.path(1, 0).syn_hole = 1;
    net.path(2, 0).silent = 1;
    let links: Vec<LinkId> = (0..3).map(|client| net.dial(0, client, 0)).collect();
    let mut heard_of = 0;
    while net.next_at().is_some() {
        let at = net.next_at().unwrap_or_default();
        heard_of += usize::from(net.pop(at).is_some());
    }
    let answers: Vec<_> = links.iter().map(|link| net.poll_dial(*link, Waker::noop())).collect();
    assert_eq!(answers, [Some(1), None, Some(0)]);
    assert_eq!(heard_of, 0, "the server hears of none of them");
}
