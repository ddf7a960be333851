//! What a client does with its end of a connection.

use std::task::Waker;

use bytes::Bytes;

use super::{LinkId, Net, Way, link::Packet};
use crate::sim::Fault;

impl Net {
    /// A client's poll of its dial: whether there was an answer.
    pub fn poll_dial(&mut self, id: LinkId, waker: &Waker) -> Option<u8> {
        self.links[id.0].poll_dial(waker)
    }

    /// A client reads: so many bytes, into `take`; `None`: nothing yet.
    pub fn poll_read(
        &mut self,
        id: LinkId,
        len_max: usize,
        waker: &Waker,
    ) -> Option<std::io::Result<Bytes>> {
        let choppy = self.paths.get(self.links[id.0].client, self.links[id.0].server).is_choppy();
        let link = &mut self.links[id.0];
        if choppy && link.has_news() && self.rng.one_in(3) {
            self.effects.push(Fault::Choppy);
            waker.wake_by_ref();
            return None;
        }
        let limit = if choppy { self.rng.scaled(1, 64) as usize } else { len_max };
        link.poll_read(limit.min(len_max), waker)
    }

    /// A client writes: so many bytes were taken; `None`: there is no room.
    pub fn poll_write(
        &mut self,
        now: u64,
        id: LinkId,
        bytes: &[u8],
        waker: &Waker,
    ) -> Option<std::io::Result<usize>> {
        let choppy = self.paths.get(self.links[id.0].client, self.links[id.0].server).is_choppy();
        if choppy && self.rng.one_in(3) {
            self.effects.push(Fault::Choppy);
            waker.wake_by_ref();
            return None;
        }
        let limit = if choppy { self.rng.scaled(1, 64) as usize } else { usize::MAX };
        let taken = match self.links[id.0].poll_write(bytes.len().min(limit), waker)? {
            Ok(taken) => taken,
            Err(error) => return Some(Err(error)),
        };
        self.push(now, id, Way::Up, Bytes::copy_from_slice(&bytes[..taken]));
        Some(Ok(taken))
    }

    /// A client lets go of its end.
    pub(in crate::sim) fn leave(&mut self, now: u64, id: LinkId) {
        let link = &mut self.links[id.0];
        let knows_the_end = link.is_ended();
        link.client_gone = true;
        link.forget_wakers();
        if !knows_the_end {
            self.put(now, id, Way::Up, Packet::Fin);
        }
    }
}
