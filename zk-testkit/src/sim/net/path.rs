//! What is wrong between a client and a server.

use super::Way;
use crate::sim::Fault;

/// What is wrong between a client and a server. Each number counts the reasons, so that troubles that
/// overlap end one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Nothing listens.
    pub refuse: u16,
    /// Attempts to connect get no answer.
    pub syn_hole: u16,
    /// Connections are accepted, and nothing else happens on them.
    pub silent: u16,
    /// What clients send waits.
    pub hole_up: u16,
    /// What servers send waits.
    pub hole_down: u16,
    /// The client is cut off from all members: both ways wait.
    pub isolated: u16,
    /// The server stands still: both ways wait.
    pub paused: u16,
    /// Reads and writes come in small pieces and with false starts.
    pub choppy: u16,
    /// How much longer a way may take.
    pub slow: u64,
    /// Bandwidth; 0 is without limit.
    pub bytes_per_second: u64,
}

impl Path {
    pub(super) const fn blocks_syn(&self) -> bool {
        self.syn_hole > 0
            || self.hole_up > 0
            || self.hole_down > 0
            || self.isolated > 0
            || self.paused > 0
    }

    pub(super) const fn blocks(&self, way: Way) -> bool {
        let hole = match way {
            Way::Up => self.hole_up,
            Way::Down => self.hole_down,
        };
        hole > 0 || self.isolated > 0 || self.paused > 0
    }

    /// Which class of faults holds back what goes this way.
    pub(super) const fn why_blocked(&self, way: Way) -> Fault {
        match way {
            _ if self.isolated > 0 => Fault::Isolate,
            _ if self.paused > 0 => Fault::Pause,
            Way::Up => Fault::HoleUp,
            Way::Down => Fault::HoleDown,
        }
    }

    pub(super) const fn is_choppy(&self) -> bool {
        self.choppy > 0
    }
}

/// All paths.
#[derive(Debug)]
pub(super) struct Paths {
    paths: Vec<Path>,
    servers: usize,
    pub(super) latency: (u64, u64),
}

impl Paths {
    pub(super) fn new(clients: usize, servers: usize, latency: (u64, u64)) -> Self {
        Self { paths: vec![Path::default(); clients * servers], servers, latency }
    }

    pub(super) fn get(&mut self, client: u32, server: usize) -> &mut Path {
        &mut self.paths[client as usize * self.servers + server]
    }

    pub(super) fn heal(&mut self) {
        self.paths.fill(Path::default());
    }
}
