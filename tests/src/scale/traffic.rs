//! Counts what passes between sessions and servers.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::io::{InspectReader, InspectWriter};
use zk_client::{BoxFuture, Connect, Transport};
use zk_proto::{
    OpCode, SessionId,
    traffic::{Received, Sent},
};
use zk_testkit::{
    server::Ensemble,
    sim::{Observer, Seen, SimConnect},
};

/// What has passed since this was last asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Requests, without pings.
    pub(super) requests: u64,
    pub(super) pings: u64,
    /// Events of watches.
    pub(super) events: u64,
    /// Bytes that sessions have received.
    pub(super) received: u64,
    /// Bytes that sessions have sent.
    pub(super) sent: u64,
    /// When sessions have dialed, in milliseconds.
    pub(super) dials: Vec<u64>,
}

/// Counts of all sessions. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic(Arc<Mutex<Counts>>);

impl Traffic {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Counts {
        std::mem::take(&mut self.counts())
    }
}

impl Observer for Traffic {
    fn sent(&mut self, _: &Seen, frame: &Sent<'_>) {
        let Sent::Request(request) = frame else { return };
        if request.header.op == OpCode::PING {
            self.counts().pings += 1;
        } else {
            self.counts().requests += 1;
        }
    }

    fn received(&mut self, _: &Seen, frame: &Received) {
        if matches!(frame, Received::Event { .. }) {
            self.counts().events += 1;
        }
    }

    fn expires(&mut self, _: u64, _: SessionId) {}

    fn damaged(&mut self, _: u64, _: SessionId) {}

    fn stepped(&mut self, _: u64, _: &Ensemble) {}
}

/// The way of one session into the simulated network.
#[derive(Clone, Debug)]
pub(super) struct CountedConnect {
    pub(super) connect: SimConnect,
    pub(super) traffic: Traffic,
    pub(super) begin: tokio::time::Instant,
}

impl Connect for CountedConnect {
    fn connect(&self, server: &str) -> BoxFuture<'static, io::Result<Box<dyn Transport>>> {
        let now = self.begin.elapsed().as_millis();
        self.traffic.counts().dials.push(u64::try_from(now).unwrap_or(u64::MAX));
        let stream = self.connect.connect(server);
        let (down, up) = (self.traffic.clone(), self.traffic.clone());
        let received = move |bytes: &[u8]| down.counts().received += bytes.len() as u64;
        let sent = move |bytes: &[u8]| up.counts().sent += bytes.len() as u64;
        Box::pin(async move {
            let stream = InspectReader::new(InspectWriter::new(stream.await?, sent), received);
            Ok(Box::new(stream) as Box<dyn Transport>)
        })
    }

    fn fails_whole(&self) -> bool {
        true
    }
}
