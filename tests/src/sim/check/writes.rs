//! S5: reads show what was committed. S7: no session reads older than it has read or written. S9: what is said
//! about a write is true.

use std::collections::BTreeMap;

use zk_client::{Cause, Stat, WriteError};
use zk_proto::{SessionId, Zxid};

use super::Checker;
use crate::history::{What, digest};

/// Paths below this are created once at most.
pub(crate) const UNIQUE: &str = "/kv/u-";

/// The outcome of a write as its client knows it.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Done(Zxid),
    Rejected,
    NotApplied { unsent: bool },
    InDoubt,
}

#[derive(Default)]
pub(super) struct Writes {
    creates: Vec<(String, Write)>,
    /// The newest state of each path that a session has seen.
    newest: BTreeMap<(SessionId, String), Zxid>,
}

impl Writes {
    pub(super) fn session_ended(&mut self, session: SessionId) {
        self.newest.retain(|(of, _), _| *of != session);
    }
}

impl Write {
    pub(crate) fn of<T>(result: &Result<T, WriteError>, zxid: impl Fn(&T) -> Zxid) -> Self {
        match result {
            Ok(done) => Self::Done(zxid(done)),
            Err(WriteError::Rejected(_)) => Self::Rejected,
            Err(WriteError::NotApplied(cause)) => {
                // Either of these can be an answer.
                let answered = matches!(cause, Cause::Throttled | Cause::SessionEnded(_));
                Self::NotApplied { unsent: !answered }
            }
            Err(_) => Self::InDoubt,
        }
    }
}

impl Checker {
    /// A client has learned the outcome of a create that no other client makes, and that it asked for then.
    pub(crate) fn created(
        &mut self,
        client: u32,
        session: SessionId,
        path: &str,
        write: Write,
        since: u64,
    ) {
        self.count(match write {
            Write::Done(_) => "creates done",
            Write::Rejected => "creates rejected",
            Write::NotApplied { .. } => "creates not applied",
            Write::InDoubt => "creates in doubt",
        });
        if let Write::Done(zxid) = write {
            self.shown(session, zxid);
        }
        if let Write::NotApplied { unsent: true } = write {
            if self.was_sent(path) {
                let text = format!("c{client} is told that {path} was not sent, and it was");
                self.violated("S9", text);
            }
        }
        let may_be_sent = self.was_tried(path) || self.may_have_begun(client, since);
        if matches!(write, Write::InDoubt) && !may_be_sent {
            let text = format!("c{client} is in doubt about {path}, and it was not sent");
            self.violated("S9", text);
        }
        self.writes.creates.push((path.to_owned(), write));
    }

    /// A client has read a node, or written it, and knows so.
    pub(crate) fn found(
        &mut self,
        client: u32,
        session: SessionId,
        path: &str,
        data: &[u8],
        stat: &Stat,
    ) {
        self.count("states checked");
        let (zxid, version) = (stat.mzxid, stat.version);
        let committed = self.history.is_made_at(path, zxid, digest(Some(data)), version);
        if self.is_doubtful(session) {
            return self.count("reads in doubtful sessions");
        }
        if !committed {
            let text =
                format!("c{client} sees version {version} of {path} as of {zxid}, never written");
            self.violated("S5", text);
        }
        if self.may_read_alone(session) {
            return self.count("reads that may come from a minority");
        }
        self.shown(session, zxid);
        let newest = self.writes.newest.entry((session, path.to_owned())).or_default();
        let last = *newest;
        *newest = last.max(zxid);
        if zxid < last {
            self.violated("S7", format!("c{client} sees {path} as of {zxid} after {last}"));
        }
    }

    /// At the end: are the outcomes true that clients were given?
    pub(crate) fn check_writes(&mut self) {
        for (path, write) in std::mem::take(&mut self.writes.creates) {
            let changes = self.history.changes_after(&path, Zxid(0));
            let made = |what: &What| matches!(what, What::Created(_));
            let times: Vec<Zxid> =
                changes.iter().filter(|it| made(&it.what)).map(|it| it.zxid).collect();
            let fits = match write {
                Write::Done(zxid) => times == [zxid],
                Write::Rejected | Write::NotApplied { .. } => times.is_empty(),
                Write::InDoubt => times.len() <= 1,
            };
            if !fits {
                self.violated("S9", format!("{path}: {write:?} was said, {times:?} is true"));
            }
        }
    }
}
