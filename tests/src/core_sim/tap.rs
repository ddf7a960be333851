//! What a tap on a connection shows.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, Zxid,
    frame::{LEN_PREFIX, split_frame},
    request::{AnyRequest, MultiOp},
    traffic::{Received, Reply, Sent, SentRequest, Traffic},
};

use super::{
    change_log::mark_of,
    watching::{Armed, Rearmed},
};

/// What is seen of a connection at the client's end.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// Bytes that the session has put in front of the driver.
    appended: usize,
    /// Bytes that the driver has taken.
    taken: usize,
    /// Marks of writes, with the places where their frames begin.
    untaken: VecDeque<(usize, u64)>,
    traffic: Traffic,
    inbound: BytesMut,
}

/// What a session says for itself.
#[derive(Debug)]
pub(crate) enum Said {
    /// The newest transaction that it has seen, in a handshake.
    HasSeen(Zxid),
    /// A request for a confirmation of its lease.
    AsksToBeConfirmed,
}

/// What a tap has seen of a server's bytes.
#[derive(Debug)]
pub(crate) enum Heard {
    /// These watches are armed again, at this state.
    Restored(Zxid, Vec<Rearmed>),
    /// A write was refused without being carried out.
    Refused(u64),
}

impl Tap {
    /// Sees what the session wants written; `outbound` is all of it that was not taken. Returns what it says for itself.
    pub(crate) fn sees(&mut self, outbound: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        let mut new = BytesMut::from(&outbound[self.appended - self.taken..]);
        while let Some(frame) = split_frame(&mut new, usize::MAX).expect("lengths are in range") {
            let sent = self.traffic.sent(&frame).expect("what a session sends can be read");
            match sent {
                Sent::Connect(connect) => said.push(Said::HasSeen(connect.last_zxid_seen)),
                Sent::Request(request) => {
                    let mark = mark_in(&request);
                    self.untaken.extend(mark.map(|mark| (self.appended, mark)));
                    said.extend(is_confirmation(&request).then_some(Said::AsksToBeConfirmed));
                }
            }
            self.appended += LEN_PREFIX + frame.len();
        }
        assert!(new.is_empty(), "only whole frames are put in front of the driver");
        said
    }

    /// The driver takes so many bytes. Returns the marks of the writes that it has begun to write.
    pub(crate) fn takes(&mut self, count: usize) -> Vec<u64> {
        self.taken += count;
        let begun = self.untaken.partition_point(|(start, _)| *start < self.taken);
        self.untaken.drain(..begun).map(|(_, mark)| mark).collect()
    }

    /// Sees bytes of the server that the session is about to be given. Returns them, with what was seen in them,
    /// and apart from the others each frame by which watches are armed again: what the session says of others must
    /// not be held against that.
    pub(crate) fn hears(&mut self, mut bytes: Bytes) -> Vec<(Bytes, Vec<Heard>)> {
        let mut pieces: Vec<(usize, Vec<Heard>)> = Vec::new();
        let mut known = self.inbound.len();
        self.inbound.extend_from_slice(&bytes);
        while let Ok(Some(frame)) = split_frame(&mut self.inbound, usize::MAX) {
            let len = LEN_PREFIX + frame.len() - std::mem::take(&mut known);
            let heard = self.heard(&frame);
            let is_apart = |heard: &Heard| matches!(heard, Heard::Restored(..));
            match pieces.last_mut() {
                Some((all, before)) if !before.iter().chain(&heard).any(is_apart) => {
                    *all += len;
                    before.extend(heard);
                }
                _ => pieces.push((len, heard.into_iter().collect())),
            }
        }
        let whole: usize = pieces.iter().map(|(len, _)| len).sum();
        pieces.push((bytes.len() - whole, Vec::new()));
        pieces.retain(|(len, _)| *len > 0);
        pieces.into_iter().map(|(len, heard)| (bytes.split_to(len), heard)).collect()
    }

    fn heard(&mut self, frame: &Bytes) -> Option<Heard> {
        let Ok(Received::Reply(Reply { header, request: Some(request), .. })) =
            self.traffic.received(frame)
        else {
            return None;
        };
        match header.err {
            ErrorCode::OK => {
                rearmed_by(&request).map(|rearmed| Heard::Restored(header.zxid, rearmed))
            }
            ErrorCode::SESSION_MOVED => mark_in(&request).map(Heard::Refused),
            _ => None,
        }
    }
}

/// Users ask for other nodes to be synchronized.
fn is_confirmation(request: &SentRequest) -> bool {
    let sync = |it| matches!(it, AnyRequest::Sync(sync) if sync.path.as_bytes() == Some(b"/"));
    request.decode().is_ok_and(sync)
}

/// What a request arms again, if it is one that does.
fn rearmed_by(request: &SentRequest) -> Option<Vec<Rearmed>> {
    let lists = match request.decode().ok()? {
        AnyRequest::SetWatches(it) => vec![
            (Armed::Data, it.data_watches),
            (Armed::Missing, it.exist_watches),
            (Armed::Children, it.child_watches),
        ],
        AnyRequest::SetWatches2(it) => vec![
            (Armed::Data, it.data_watches),
            (Armed::Missing, it.exist_watches),
            (Armed::Children, it.child_watches),
            (Armed::Persistent, it.persistent_watches),
            (Armed::Recursive, it.persistent_recursive_watches),
        ],
        _ => return None,
    };
    let each =
        lists.iter().flat_map(|(armed, paths)| paths.strs().map(|path| (*armed, path.into())));
    Some(each.collect())
}

/// The mark of a write on its way to the server.
fn mark_in(request: &SentRequest) -> Option<u64> {
    match request.decode().ok()? {
        AnyRequest::Create2(create) => mark_of(create.0.data?),
        AnyRequest::Create(create) => mark_of(create.data?),
        AnyRequest::SetData(set) => mark_of(set.data?),
        AnyRequest::Multi(multi) => multi.iter().find_map(|(_, op)| match op {
            MultiOp::SetData(set) => mark_of(set.data?),
            _ => None,
        }),
        _ => None,
    }
}
