//! S4, L4: a lease lasts for as long as the answers on the wire prove: no longer, and no shorter. E1: no other client is told
//! that it ran out.

use std::collections::{BTreeMap, VecDeque};

use zk_client::{Lease, Session, SessionState};
use zk_proto::{
    ErrorCode, OpCode, SessionId, Xid,
    traffic::{Received, Reply, Sent},
};
use zk_testkit::sim::{LinkId, Seen};

use super::{Checker, ROUNDING};

/// How often it is looked whether clients stand still, in milliseconds.
const LOOK: u64 = 50;

/// What the frames of all connections prove.
#[derive(Default)]
pub(super) struct Leases {
    lanes: BTreeMap<LinkId, Lane>,
    proofs: BTreeMap<SessionId, Proofs>,
    /// When clients were seen to stand still last.
    still: BTreeMap<u32, u64>,
}

/// A connection: when what has no answer yet was sent.
struct Lane {
    began: u64,
    /// When the handshake was sent, if the member has asked the leader.
    asked: u64,
    /// When answers came, and when the newest message was sent that had been answered by then.
    answers: Vec<(u64, u64)>,
    /// Those that were certainly read then.
    read: Vec<(u64, u64)>,
    /// Until when clients may remember less, since answers came late.
    slow: u64,
    session: Option<SessionId>,
    open: VecDeque<(Xid, OpCode, u64)>,
}

/// When the newest messages of a session were sent that have been answered.
#[derive(Default)]
struct Proofs {
    timeout: u64,
    /// Any messages.
    answered: Newest,
    /// Messages whose answers involved the leader. Where it was told of the session too long before, as much earlier.
    confirmed: Newest,
    /// Whether something was answered that no server has said, on its last connection.
    tainted: bool,
    /// When a server has said last that it does not know the session.
    disowned: Option<u64>,
    /// When it was last not sure that the leader keeps the session, by what its client has certainly read.
    unsure: u64,
}

#[derive(Clone, Copy, Default)]
struct Newest {
    /// Of those whose answers may have been read.
    most: u64,
    /// Of those whose answers have been read. What came in the same moment may not have been: the one before that, and the
    /// moment.
    read: u64,
    before: u64,
    since: u64,
}

impl Newest {
    fn raise(&mut self, (least, most): (u64, u64), now: u64, is_read: bool) {
        self.most = self.most.max(most);
        if !is_read {
            return;
        }
        if self.since < now {
            (self.before, self.since) = (self.read, now);
        }
        self.read = self.read.max(least);
    }

    /// The newest whose answer was certainly read.
    const fn read(self, now: u64) -> u64 {
        if self.since < now { self.read } else { self.before }
    }

    /// What has come since then may never be read: a reset takes it along.
    const fn forget_unread(&mut self, since: u64) {
        if self.since >= since {
            self.read = self.before;
        }
    }
}

/// Whether a server asks the leader before it confirms such a request.
const fn asks_the_leader(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::SYNC
            | OpCode::CREATE
            | OpCode::CREATE2
            | OpCode::CREATE_CONTAINER
            | OpCode::CREATE_TTL
            | OpCode::DELETE
            | OpCode::SET_DATA
            | OpCode::SET_ACL
            | OpCode::MULTI
            | OpCode::RECONFIG
    )
}

/// When the newest message was sent that had been answered by then.
fn newest_by(answers: &[(u64, u64)], then: u64) -> Option<(u64, u64)> {
    answers.partition_point(|(came, _)| *came <= then).checked_sub(1).map(|last| answers[last])
}

impl Lane {
    fn new(began: u64) -> Self {
        Self {
            began,
            asked: 0,
            answers: Vec::new(),
            read: Vec::new(),
            slow: 0,
            session: None,
            open: VecDeque::new(),
        }
    }

    fn answered(&mut self, now: u64, sent: u64, is_read: bool) {
        let note = |answers: &mut Vec<(u64, u64)>| {
            let newest = answers.last().map_or(sent, |(_, newest)| sent.max(*newest));
            answers.push((now, newest));
        };
        note(&mut self.answers);
        if is_read {
            note(&mut self.read);
        }
    }

    /// From when on the leader keeps a session, at the least and at the most, that has had an answer which involved the leader: a
    /// member tells it of what it has answered within half a margin. Clients do not remember each answer.
    fn told(&self, now: u64, sent: u64, half: u64, drift: i32) -> (u64, u64) {
        let off = half * u64::from(drift.unsigned_abs()) / 1_000_000 + ROUNDING;
        let most = newest_by(&self.answers, sent.saturating_sub(half.saturating_sub(off)));
        let surely = newest_by(&self.read, sent.saturating_sub(half + off));
        let least =
            surely.and_then(|(came, _)| newest_by(&self.read, came.saturating_sub(half / 2 + off)));
        let least = least.filter(|_| now > self.slow);
        let told =
            |newest: Option<(u64, u64)>| newest.map_or(0, |(_, newest)| newest).max(self.asked);
        // By the client's clock.
        let half = (half * 1_000_000).checked_div((1_000_000 + i64::from(drift)).unsigned_abs());
        let half = half.unwrap_or_default();
        let base = |told: u64| if told == 0 { 0 } else { sent.min(told + half) };
        (base(told(least)), base(told(most)))
    }
}

/// What is subtracted from a session timeout, as documented.
fn margin(lease: Lease, timeout: u64) -> u64 {
    match lease {
        Lease::Margin(margin) if margin.as_millis() as u64 <= timeout * 3 / 4 => {
            margin.as_millis() as u64
        }
        Lease::Margin(_) => timeout / 2,
        Lease::Connection => 0,
        _ => (timeout / 5).max(2_000).min(timeout / 2),
    }
}

impl Checker {
    pub(super) fn sent_at(&mut self, seen: &Seen, frame: &Sent<'_>) {
        match frame {
            Sent::Connect(_) => {
                self.leases.lanes.insert(seen.link, Lane::new(seen.at));
            }
            Sent::Request(request) => {
                if let Some(lane) = self.leases.lanes.get_mut(&seen.link) {
                    let header = request.header;
                    let xid = if header.op == OpCode::PING { Xid::PING } else { header.xid };
                    lane.open.push_back((xid, header.op, seen.at));
                }
            }
        }
    }

    pub(super) fn proved_at(&mut self, seen: &Seen, frame: &Received) {
        let Some(lane) = self.leases.lanes.get_mut(&seen.link) else { return };
        match frame {
            Received::Connect(greeting) if greeting.time_out > 0 => {
                lane.session = Some(greeting.session_id);
                let (began, id) = (lane.began, greeting.session_id);
                let asks = greeting.read_only.0 != Some(true);
                lane.asked = if asks { began } else { 0 };
                let proofs = self.leases.proofs.entry(id).or_default();
                let granted = u64::from(greeting.time_out.unsigned_abs());
                // Servers that find another leader go by the one that it began with.
                proofs.timeout =
                    if proofs.timeout == 0 { granted } else { granted.min(proofs.timeout) };
                (proofs.tainted, proofs.disowned) = (seen.forged, None);
                self.proved(seen, id, began, asks);
            }
            Received::Reply(Reply { header, .. }) => {
                let at = lane.open.iter().position(|(xid, ..)| *xid == header.xid);
                let sent = at.and_then(|at| lane.open.remove(at));
                let Some(id) = lane.session else { return };
                let taints = seen.forged || sent.is_none();
                let proofs = self.leases.proofs.entry(id).or_default();
                proofs.tainted |= taints;
                let Some((_, op, sent)) = sent else { return };
                match header.err {
                    ErrorCode::SESSION_EXPIRED
                    | ErrorCode::UNKNOWN_SESSION
                    | ErrorCode::SESSION_MOVED => proofs.disowned = Some(seen.at),
                    // A ping that is refused is no sign of life. What is said of credentials need not count.
                    err if op == OpCode::PING && !err.is_ok() => {}
                    _ if op == OpCode::AUTH => {}
                    err => self.proved(seen, id, sent, err.is_ok() && asks_the_leader(op)),
                }
            }
            _ => {}
        }
    }

    /// A message of a session that was sent then has been answered.
    fn proved(&mut self, seen: &Seen, id: SessionId, sent: u64, by_leader: bool) {
        self.look_whether_sure(seen.client, id);
        let still = self.leases.still.get(&seen.client);
        let is_read = still.is_none_or(|still| seen.at > still + LOOK);
        let drift = self.options.drifts[seen.client as usize];
        let proofs = self.leases.proofs.entry(id).or_default();
        proofs.answered.raise((sent, sent), seen.at, is_read);
        let Some(lane) = self.leases.lanes.get_mut(&seen.link) else { return };
        if self.options.lease == Lease::Connection {
            proofs.confirmed.raise((sent, sent), seen.at, is_read);
        } else if by_leader {
            let half = margin(self.options.lease, proofs.timeout) / 2;
            if seen.at > sent + half / 4 {
                lane.slow = seen.at + 8 * (seen.at - sent + half);
            }
            let told = lane.told(seen.at, sent, half, drift);
            proofs.confirmed.raise(told, seen.at, is_read);
        }
        lane.answered(seen.at, sent, is_read);
    }

    /// A client is seen to stand still, perhaps since the last look.
    pub(super) fn reads_nothing(&mut self, client: u32) {
        self.leases.still.insert(client, self.now);
        let session = self.promises.sessions.get(&client).map(Session::id);
        let since = self.now.saturating_sub(LOOK);
        if let Some(proofs) = session.and_then(|id| self.leases.proofs.get_mut(&id)) {
            proofs.answered.forget_unread(since);
            proofs.confirmed.forget_unread(since);
        }
        for lane in self.leases.lanes.values_mut().filter(|lane| lane.session == session) {
            lane.read.truncate(lane.read.partition_point(|(came, _)| *came < since));
        }
    }

    /// A client lets go of a connection.
    pub(super) fn leaves_lane(&mut self, link: LinkId) {
        let lane = self.leases.lanes.remove(&link);
        let session = lane.and_then(|lane| lane.session);
        if let Some(proofs) = session.and_then(|id| self.leases.proofs.get_mut(&id)) {
            proofs.answered.forget_unread(self.now);
            proofs.confirmed.forget_unread(self.now);
        }
    }

    /// How long something that was proved by a message sent then lasts from now on, by its client's clock.
    fn lasts(&self, client: u32, sent: u64, long: u64) -> u64 {
        let since = self.now.saturating_sub(sent) as i64;
        let drift = i64::from(self.options.drifts[client as usize]);
        long.saturating_sub((since + since * drift / 1_000_000).unsigned_abs())
    }

    /// How long the leader is sure to keep a session from now on, by what its client has certainly read.
    fn surely_kept(&self, client: u32, id: SessionId) -> u64 {
        let Some(proofs) = self.leases.proofs.get(&id) else { return 0 };
        match proofs.confirmed.read(self.now) {
            0 => 0,
            sent => {
                let margin = margin(self.options.lease, proofs.timeout);
                self.lasts(client, sent, proofs.timeout.saturating_sub(margin))
            }
        }
    }

    fn look_whether_sure(&mut self, client: u32, id: SessionId) {
        if self.surely_kept(client, id) <= ROUNDING {
            let now = self.now;
            self.leases.proofs.entry(id).or_default().unsure = now;
        }
    }

    /// What a client that does not stand still says of its lease.
    pub(super) fn check_lease(&mut self, client: u32, session: &Session) {
        let id = session.id();
        let is_over = matches!(session.state(), SessionState::Closing | SessionState::Ended(_));
        self.look_whether_sure(client, id);
        let left = session.lease_left().as_millis() as u64;
        let Some(proofs) = self.leases.proofs.get(&id) else { return };
        // Members without a leader give sessions names of their own.
        if is_over || proofs.tainted || self.is_doubtful(id) || self.options.reads_alone(client) {
            return;
        }
        let disowned = proofs.disowned.is_some();
        let most = match self.claims_of(id) {
            true => {
                let margin = margin(self.options.lease, proofs.timeout);
                let long = proofs.timeout.saturating_sub(margin);
                self.lasts(client, proofs.confirmed.most, long)
            }
            false => self.lasts(client, proofs.answered.most, proofs.timeout),
        };
        let least = if disowned { 0 } else { self.surely_kept(client, id) };
        self.count("leases compared with the wire");
        if left > most + ROUNDING {
            let text = format!("c{client} counts on {id} for {left} ms, {most} ms are proved");
            self.violated("S4", text);
        }
        if left + ROUNDING < least {
            let text = format!("c{client} counts on {id} for {left} ms only, {least} are proved");
            self.violated("L4", text);
        }
    }

    /// Whether a lease can have run out since then, or have been refused.
    pub(super) fn may_have_run_out(&mut self, client: u32, session: &Session, since: u64) -> bool {
        let id = session.id();
        self.look_whether_sure(client, id);
        let Some(proofs) = self.leases.proofs.get(&id) else { return true };
        proofs.tainted
            || proofs.unsure >= since
            || proofs.disowned.is_some()
            || self.options.reads_alone(client)
            || self.is_doubtful(id)
    }
}
