//! Catching up with the leader.

use zk_proto::{
    Str, Zxid,
    request::{SyncRequest, SyncResponse},
};

use super::builder::{awaitable, read};
use crate::{
    error::ReadError,
    request::{
        answer::{ReadAnswer, body},
        call_options::Admission,
        pending::Pending,
        target::Target,
    },
};

awaitable! {
    LeaderSync: (), ReadError;
}

/// Waits until this server has caught up with the leader: see [`Client::sync`](crate::Client::sync).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct LeaderSync<'a> {
    target: Target<'a>,
    path: &'a str,
}

impl<'a> LeaderSync<'a> {
    pub(crate) const fn new(target: Target<'a>, path: &'a str) -> Self {
        Self { target, path }
    }

    fn start(self, admission: Admission) -> Pending<(), ReadError> {
        self.start_as(admission, |answer, _| body::<SyncResponse>(&answer).map(drop))
    }

    /// Submits the sync now, or as soon as there is room; resolves to the transaction that the server has caught up
    /// with.
    pub(crate) fn for_zxid(self) -> Pending<Zxid, ReadError> {
        self.start_as(Admission::Waiting, |answer, _| {
            body::<SyncResponse>(&answer).map(|_| answer.zxid)
        })
    }

    fn start_as<T>(self, admission: Admission, answer: ReadAnswer<T>) -> Pending<T, ReadError> {
        let frame = |path: Str<'_>| self.target.frame(&SyncRequest { path });
        read(self.target, self.path, None, frame, admission, answer)
    }
}
