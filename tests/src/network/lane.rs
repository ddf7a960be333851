//! One connection: frames up, frames down.

use std::{collections::VecDeque, sync::Arc};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf},
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, sleep_until},
};
use zk_proto::{
    ErrorCode, Time, Xid,
    frame::{LEN_REPLY_MAX, split_frame},
    traffic::{Received, Sent, SentRequest, Traffic},
};
use zk_testkit::server::Conn;

use super::{
    Disposition, LATENCY, Links, Name, Network, State, Way,
    disposition::{framed, refusal, stand_in},
    pass,
};

/// The longest part of a frame that is under way at once.
const PIECE_LEN: usize = 8 << 10;

/// One connection of a client.
pub(super) struct Lane {
    pub(super) name: Name,
    down: mpsc::UnboundedSender<(Instant, Bytes)>,
    pump: AbortHandle,
    /// What has come up and is no whole frame yet.
    up: BytesMut,
    traffic: Traffic,
    /// Requests under way that something becomes of.
    dispositions: VecDeque<(Xid, Disposition)>,
    /// Nothing gets to the client before.
    not_before: Instant,
}

impl Lane {
    /// A connection, and the client's end of it.
    pub(super) fn open(
        network: &Network,
        name: Name,
        conn: Conn,
        links: Arc<Links>,
    ) -> (Self, DuplexStream) {
        let (client, server) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(server);
        let (down, frames) = mpsc::unbounded_channel();
        let pump_up = pump_up(network.clone(), name, conn, reader, links.clone());
        let pump_down = pump_down(name, frames, writer, links);
        let pump = tokio::spawn(async move {
            tokio::select! {
                // Everything here happens in the same order each time.
                biased;
                () = pump_up => {}
                () = pump_down => {}
            }
        });
        let lane = Self {
            name,
            down,
            pump: pump.abort_handle(),
            up: BytesMut::new(),
            traffic: Traffic::default(),
            dispositions: VecDeque::new(),
            not_before: Instant::now(),
        };
        (lane, client)
    }

    /// The server has closed it: what it has said before still arrives.
    pub(super) fn close(self) {}

    /// It goes down, with what is under way.
    pub(super) fn cut(self) {
        self.pump.abort();
    }

    fn say(&mut self, frame: Bytes) {
        self.not_before = self.not_before.max(Instant::now() + LATENCY);
        // The client may have gone.
        let _ = self.down.send((self.not_before, frame));
    }

    /// What becomes of the request that this is the answer to.
    fn disposition_of(&mut self, xid: Xid) -> Option<Disposition> {
        let place = self.dispositions.iter().position(|(asked, _)| *asked == xid)?;
        self.dispositions.remove(place).map(|(_, disposition)| disposition)
    }
}

impl State {
    /// Bytes have come from a client, whole frames or parts of them.
    fn hear(&mut self, now: Time, conn: Conn, bytes: &[u8]) {
        let Some(lane) = self.lanes.get_mut(&conn) else { return };
        lane.up.extend_from_slice(bytes);
        while let Some(lane) = self.lanes.get_mut(&conn) {
            let Ok(Some(frame)) = split_frame(&mut lane.up, LEN_REPLY_MAX) else { return };
            let mut carried = framed(&frame);
            if let Ok(Sent::Request(SentRequest { header, .. })) = lane.traffic.sent(&frame) {
                let name = lane.name;
                let disposition = self.director.as_mut().map(|director| director(name, header.op));
                let disposition = disposition.unwrap_or(Disposition::Answered);
                if disposition == Disposition::Lost {
                    self.hang_up(now, conn);
                    return;
                }
                if matches!(disposition, Disposition::Throttled | Disposition::Unknown) {
                    carried = stand_in(header.xid);
                }
                if let Some(lane) = self.lanes.get_mut(&conn) {
                    lane.dispositions.push_back((header.xid, disposition));
                }
            }
            self.ensemble.received(now, conn, &carried);
        }
    }

    /// The server says something.
    pub(super) fn send(&mut self, now: Time, conn: Conn, bytes: &[u8]) {
        let mut rest = BytesMut::from(bytes);
        while let Some(lane) = self.lanes.get_mut(&conn) {
            // Servers say whole frames.
            let Ok(Some(frame)) = split_frame(&mut rest, LEN_REPLY_MAX) else { return };
            let reply = match lane.traffic.received(&frame) {
                Ok(Received::Reply(reply)) => Some(reply.header),
                _ => None,
            };
            let disposition = reply.and_then(|reply| lane.disposition_of(reply.xid));
            match (disposition, reply) {
                (Some(Disposition::AnswerLost), _) => return self.hang_up(now, conn),
                (Some(Disposition::Outage(lasts)), _) => {
                    let name = lane.name;
                    self.refused.insert(name, Some(Instant::now() + lasts));
                    return self.hang_up(now, conn);
                }
                (Some(Disposition::Throttled), Some(reply)) => {
                    lane.say(refusal(reply, ErrorCode::THROTTLED_OP));
                }
                (Some(Disposition::Unknown), Some(reply)) => {
                    lane.say(refusal(reply, ErrorCode::UNIMPLEMENTED));
                    if let Some(lane) = self.lanes.remove(&conn) {
                        lane.close();
                        self.ensemble.hung_up(now, conn);
                    }
                    return;
                }
                (Some(Disposition::Late(by)), _) => {
                    lane.not_before = Instant::now() + by;
                    lane.say(framed(&frame));
                }
                _ => lane.say(framed(&frame)),
            }
        }
    }
}

async fn pump_up(
    network: Network,
    name: Name,
    conn: Conn,
    mut reader: ReadHalf<DuplexStream>,
    links: Arc<Links>,
) {
    let mut buffer = vec![0; PIECE_LEN];
    loop {
        let len = reader.read(&mut buffer).await.unwrap_or(0);
        pass(LATENCY).await;
        links.passes(name).await;
        links.carries(name, Way::ToServer, len).await;
        let now = network.now();
        let mut state = network.state();
        if len == 0 {
            state.ensemble.hung_up(now, conn);
            state.lanes.remove(&conn);
        } else {
            state.hear(now, conn, &buffer[..len]);
        }
        network.moved(state, now);
        if len == 0 {
            return;
        }
    }
}

async fn pump_down(
    name: Name,
    mut frames: mpsc::UnboundedReceiver<(Instant, Bytes)>,
    mut writer: WriteHalf<DuplexStream>,
    links: Arc<Links>,
) {
    while let Some((not_before, frame)) = frames.recv().await {
        sleep_until(not_before).await;
        links.passes(name).await;
        for piece in frame.chunks(PIECE_LEN) {
            links.carries(name, Way::ToClient, piece.len()).await;
            if writer.write_all(piece).await.is_err() {
                return;
            }
        }
    }
    // A close takes as long as anything else.
    pass(LATENCY).await;
}
