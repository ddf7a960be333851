//! What a session must never do, whatever happens to it, and what it must have done by the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use zk_proto::{
    ErrorCode, Time, Xid,
    session::{CloseReason, OnLoss, Outcome, State, WatchBy, WatchNotice},
};

use super::link::{Link, What};

/// What is known of a request, or of credentials.
#[derive(Debug, Default)]
struct Request {
    watch: Option<(String, Watch)>,
    /// Whether it may be sent twice.
    is_harmless: bool,
    /// Whether a byte of it was ever written.
    is_begun: bool,
    /// Whether a server has said that it was not carried out.
    is_refused: bool,
    is_concluded: bool,
}

/// What a request would arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) by: WatchBy,
    pub(crate) path: &'static str,
}

impl Watch {
    fn is_persistent(self) -> bool {
        matches!(self.by, WatchBy::Persistent | WatchBy::Recursive)
    }

    /// Whether an answer arms it.
    fn is_armed(self, code: ErrorCode) -> bool {
        code == ErrorCode::OK || (self.by == WatchBy::Exists && code == ErrorCode::NO_NODE)
    }
}

/// The promises, and what it takes to check them.
#[derive(Debug)]
pub(crate) struct Oracle {
    requests: BTreeMap<String, Request>,
    /// Watches that the server's answers have armed and that have not heard their last news.
    armed: BTreeMap<String, Watch>,
    /// The xid that is next.
    next_xid: Xid,
    /// Identities that the session has been given.
    pub(crate) identities: usize,
    /// What the connection has seen besides the handshake.
    stage: Stage,
    /// Newest number in the stream of the server's frames that the user has heard of.
    heard: i64,
    /// Newest transaction shown in a handshake.
    shown_zxid: i64,
    /// What may be shown: transactions of replies from writable servers.
    pub(crate) answered_zxids: BTreeSet<i64>,
    /// Sessions that may be shown to servers: 0, and those that a writable server has made.
    pub(crate) known_ids: BTreeSet<i64>,
    /// Whether a server has sent what is not accounted for: it may have been a transaction.
    pub(crate) is_lied_to: bool,
    /// Whether a server has said that it does not know what all requests ask for: others need not be sent.
    knows_nothing: bool,
    pub(crate) connected: bool,
    pub(crate) over: Option<CloseReason>,
}

/// How far a connection is in what must come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// So many identities are still to be proved.
    Auth(usize),
    Watches,
    Requests,
    Closed,
}

impl Oracle {
    pub(crate) fn new(next_xid: Xid, identities: usize) -> Self {
        Self {
            requests: BTreeMap::new(),
            armed: BTreeMap::new(),
            next_xid: next_xid.max(Xid::FIRST),
            identities,
            stage: Stage::Auth(0),
            heard: 0,
            shown_zxid: 0,
            answered_zxids: BTreeSet::from([0]),
            known_ids: BTreeSet::from([0]),
            is_lied_to: false,
            knows_nothing: false,
            connected: false,
            over: None,
        }
    }

    pub(crate) fn submitted(&mut self, token: &str) {
        self.requests.insert(token.into(), Request::default());
    }

    pub(crate) fn requested(
        &mut self,
        token: &str,
        watch: Option<(String, Watch)>,
        on_loss: OnLoss,
    ) {
        let is_harmless = on_loss == OnLoss::Resend;
        self.requests.insert(token.into(), Request { watch, is_harmless, ..Request::default() });
    }

    pub(crate) fn begun(&mut self, token: &str) {
        // No caller waits for the credentials of the configuration.
        if let Some(request) = self.requests.get_mut(token) {
            request.is_begun = true;
        }
    }

    pub(crate) fn refused(&mut self, token: &str) {
        self.request(token).is_refused = true;
    }

    /// The user no longer listens.
    pub(crate) fn unwatched(&mut self, watcher: &str) {
        self.armed.remove(watcher);
        for request in self.requests.values_mut() {
            request.watch.take_if(|(named, _)| named == watcher);
        }
    }

    fn request(&mut self, token: &str) -> &mut Request {
        self.requests.get_mut(token).unwrap_or_else(|| panic!("{token} was never submitted"))
    }

    /// The session has put frames in front of the driver.
    pub(crate) fn sent(&mut self, link: &Link, frames: &[What]) {
        for frame in frames {
            match frame {
                What::Handshake { id, zxid } => {
                    assert!(
                        self.known_ids.contains(id),
                        "session {id:#x} is nobody else's business"
                    );
                    assert!(*zxid >= self.shown_zxid || *id == 0, "time goes back for the session");
                    let is_known = self.is_lied_to || self.answered_zxids.contains(zxid);
                    assert!(is_known, "only replies show transactions");
                    assert!(*id != 0 || *zxid == 0, "a new session has seen nothing");
                    self.shown_zxid = *zxid;
                    continue;
                }
                _ => assert!(link.greeted, "nothing may follow an unanswered handshake: {frame:?}"),
            }
            if let What::Request { token, .. } = frame {
                let request = self.request(token);
                let may_be_sent = !request.is_begun || request.is_harmless || request.is_refused;
                assert!(may_be_sent, "{token} is sent again");
            }
            if let Some(xid) = frame.xid() {
                // Some are lost with a connection that breaks before they were read.
                let mut skipped =
                    std::iter::successors(Some(self.next_xid), |xid| Some(xid.next()));
                assert!(skipped.by_ref().take(1000).any(|next| next == xid), "{xid} out of order");
                self.next_xid = xid.next();
            }
            assert!(self.stage < Stage::Closed, "nothing may follow a close: {frame:?}");
            self.stage = match (frame, self.stage) {
                (What::Auth { .. }, Stage::Auth(left)) if left > 0 => Stage::Auth(left - 1),
                (What::Auth { .. }, stage) => stage,
                (_, Stage::Auth(left)) if left > 0 => panic!("credentials precede {frame:?}"),
                (What::SetWatches { .. }, Stage::Requests) => panic!("watches precede requests"),
                (What::SetWatches { .. }, _) => Stage::Watches,
                (What::Close { .. }, _) => Stage::Closed,
                _ => Stage::Requests,
            };
        }
    }

    /// A request has got its outcome.
    pub(crate) fn concluded(&mut self, token: &str, outcome: &Outcome) {
        let over = self.over;
        let request = self.request(token);
        assert!(!request.is_concluded, "{token} has more than one outcome");
        request.is_concluded = true;
        let (watch, is_begun) = (request.watch.take(), request.is_begun);
        match outcome {
            Outcome::Answered(answer) => {
                assert!(over.is_none(), "{token} answered after the end");
                let is_unknown = answer.code == ErrorCode::UNIMPLEMENTED;
                let is_known_answer = is_unknown && self.knows_nothing;
                assert!(is_begun || is_known_answer, "{token} answered without having been sent");
                self.knows_nothing |= is_unknown;
                self.armed.extend(watch.filter(|(_, watch)| watch.is_armed(answer.code)));
                self.in_order(answer.zxid.0);
            }
            Outcome::NotSent(_) => {
                assert!(!is_begun || request.is_refused, "{token} was sent");
            }
            Outcome::Unknown(_) => assert!(is_begun, "{token} was certainly not sent"),
        }
    }

    /// A watch has heard something.
    pub(crate) fn noticed(&mut self, watcher: &str, notice: &WatchNotice) {
        let watch = self.armed.get(watcher).copied();
        let watch = watch.unwrap_or_else(|| panic!("{watcher} is not armed: {notice:?}"));
        let is_persistent = watch.is_persistent();
        let is_last = match notice {
            WatchNotice::Event(event) => {
                if let Some(zxid) = event.zxid {
                    self.in_order(zxid.0);
                }
                !is_persistent
            }
            WatchNotice::Gap => {
                assert!(is_persistent);
                false
            }
            WatchNotice::Unsupported => {
                assert!(is_persistent);
                true
            }
            WatchNotice::Over(_) => true,
            _ => panic!("unheard of: {notice:?}"),
        };
        if is_last {
            self.armed.remove(watcher);
        }
    }

    /// Servers number what they send; users hear of it in that order.
    fn in_order(&mut self, number: i64) {
        // Some answers carry no number of their own.
        if number > 0 {
            let is_in_order = self.is_lied_to || number >= self.heard;
            assert!(is_in_order, "{number} after {}", self.heard);
            self.heard = number;
        }
    }

    /// The session says where it stands.
    pub(crate) fn state(&mut self, state: &State) {
        assert!(self.over.is_none(), "{state:?} after the end");
        match state {
            State::Connected(_) => {
                assert!(!self.connected, "connected twice");
                self.connected = true;
                self.stage = Stage::Auth(self.identities);
            }
            State::Disconnected(_) => {
                assert!(self.connected, "disconnected without having been connected");
                self.connected = false;
            }
            State::Over(over) => {
                self.over = Some(*over);
                self.connected = false;
            }
        }
    }

    /// Nothing more will happen.
    pub(crate) fn at_end(&self) {
        let open = self.requests.iter().filter(|(_, request)| !request.is_concluded);
        let open = open.map(|(token, _)| token).collect::<Vec<_>>();
        assert!(open.is_empty(), "without an outcome: {open:?}");
        assert!(self.armed.is_empty(), "watches forgotten: {:?}", self.armed);
    }
}

/// When something must have happened: two thirds of the timeout for silence, four for the end.
pub(crate) fn thirds(timeout: Duration, count: u32, since: Time) -> Time {
    since.after(timeout * count / 3)
}
