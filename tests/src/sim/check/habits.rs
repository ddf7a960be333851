//! L1, S7, L3, L4: how a session behaves on each connection: what it begins with, how often it gives a sign of life, how long it
//! waits for one, and how often it dials.

use std::collections::{BTreeMap, VecDeque};

use zk_client::{Session, SessionState};
use zk_proto::{
    ErrorCode, OpCode, SessionId, Zxid,
    request::{AnyRequest, ConnectRequest},
    traffic::{Received, Reply, SentRequest},
};
use zk_testkit::sim::{LinkId, Seen};

use super::{Checker, ROUNDING};
use crate::sim::workload::identity;

/// Dials of a session within a second, at most, besides three for each member; and within each second of the nine behind it.
const DIALS_MAX: usize = 10;
const DIALS_MAX_THEN: usize = 8;

/// One session may be about to be closed when its client begins another.
const SESSIONS_MAX: usize = 2;

/// What is known of connections, and of those who make them.
#[derive(Default)]
pub(super) struct Habits {
    lanes: BTreeMap<LinkId, Lane>,
    /// The newest transaction that each session was told of.
    told: BTreeMap<SessionId, Zxid>,
    dials: BTreeMap<u32, VecDeque<u64>>,
    /// How often in a row each client had a connection and said otherwise.
    doubters: BTreeMap<u32, u32>,
}

/// A connection that has not been left.
struct Lane {
    client: u32,
    /// What its client said there that it had seen.
    shown: Zxid,
    /// The session and its timeout, if a server has taken it in.
    serves: Option<(SessionId, u64)>,
    /// How many requests were sent, and whether one of a user is among them.
    requests: u64,
    by_user: bool,
    pinged: Option<u64>,
    /// How many pings came sooner than they were due.
    hasty: u32,
    sent: u64,
    /// Whether nothing has been sent behind the greeting: it may not have been read.
    is_fresh: bool,
    heard: u64,
    /// Whether something has happened to it of which nothing can be concluded any more.
    odd: bool,
    ends: bool,
}

/// Pings on a connection that come sooner: it may be tried whether it lasts.
const HASTY_MAX: u32 = 3;

/// Longest time without a request, as documented: a third of the timeout less a second, 10 s at most.
fn interval(timeout: u64) -> u64 {
    let third = timeout / 3;
    let interval = if third <= 1_000 { third } else { (third - 1_000).max(1_000) };
    interval.min(10_000)
}

impl Checker {
    pub(super) fn dials(&mut self, client: u32) {
        let now = self.now;
        let dials = self.habits.dials.entry(client).or_default();
        dials.push_back(now);
        while dials.front().is_some_and(|at| at + 10_000 <= now) {
            dials.pop_front();
        }
        let of_late = dials.iter().filter(|at| **at + 1_000 > now).count();
        let most = SESSIONS_MAX * (DIALS_MAX + 3 * self.options.members);
        if of_late == most + 1 || dials.len() == most + SESSIONS_MAX * 9 * DIALS_MAX_THEN + 1 {
            let dials = dials.len();
            let text =
                format!("c{client} dials {of_late} times within a second, {dials} within ten");
            self.violated("L3", text);
        }
    }

    /// A connection begins with what its session is.
    pub(super) fn begins(&mut self, seen: &Seen, connect: &ConnectRequest<'_>) {
        let (client, shown) = (seen.client, connect.last_zxid_seen);
        let wished = self.options.wished_timeout(client);
        let reads_alone = self.options.reads_alone(client);
        let is_so = i64::from(connect.time_out) == wished as i64
            && connect.read_only.0.is_none_or(|it| it == reads_alone);
        if !is_so {
            let text =
                format!("c{client} asks for {} ms, {:?}", connect.time_out, connect.read_only);
            self.violated("L1", text);
        }
        let told = self.habits.told.get(&connect.session_id).copied();
        if told.is_some_and(|told| shown > told) && !self.was_damaged(connect.session_id) {
            self.violated("S7", format!("c{client} says it has seen {shown}, and has {told:?}"));
        }
        let lane = Lane {
            client,
            shown,
            serves: None,
            requests: 0,
            by_user: false,
            pinged: None,
            hasty: 0,
            sent: seen.at,
            is_fresh: false,
            heard: seen.at,
            odd: seen.forged,
            ends: false,
        };
        self.habits.lanes.insert(seen.link, lane);
    }

    pub(super) fn speaks(&mut self, seen: &Seen, request: &SentRequest) {
        let client = seen.client;
        let Some(lane) = self.habits.lanes.get_mut(&seen.link) else { return };
        let op = request.header.op;
        (lane.sent, lane.is_fresh) = (seen.at, false);
        lane.requests += 1;
        let is_first = lane.requests == 1;
        let before = lane.pinged;
        let is_due = before.zip(lane.serves).is_none_or(|(before, (_, timeout))| {
            seen.at + ROUNDING + timeout / 20 >= before + interval(timeout)
        });
        if op == OpCode::PING {
            lane.pinged = Some(seen.at);
        }
        let is_hasty = op == OpCode::PING && !is_due;
        lane.hasty += u32::from(is_hasty);
        let too_hasty = is_hasty && lane.hasty == HASTY_MAX + 1;
        let (odd, behind_the_end) =
            (lane.odd, std::mem::replace(&mut lane.ends, op == OpCode::CLOSE_SESSION));
        let restores = matches!(op, OpCode::SET_WATCHES | OpCode::SET_WATCHES2);
        let late = restores && lane.by_user;
        lane.by_user |= request.header.xid.0 > 0 && !restores;
        let shown = lane.shown;
        if is_first && op != OpCode::AUTH && identity(client).is_some() {
            self.violated("L1", format!("c{client} begins with {op:?}, and has not proved itself"));
        }
        if late {
            self.violated("W2", format!("c{client} asks first, and arms its watches then"));
        }
        if behind_the_end && op != OpCode::PING {
            self.violated("S8", format!("c{client} asks for {op:?} behind the end"));
        }
        if too_hasty && !odd {
            self.violated("L3", format!("c{client} pings again, last at {before:?}"));
        }
        let since = match request.decode() {
            Ok(AnyRequest::SetWatches(watches)) => watches.relative_zxid,
            Ok(AnyRequest::SetWatches2(watches)) => watches.relative_zxid,
            _ => return,
        };
        self.count("watches armed again");
        if since > shown {
            self.violated("W2", format!("c{client} asks for changes behind {since}, not {shown}"));
        }
    }

    pub(super) fn is_told(&mut self, seen: &Seen, frame: &Received) {
        let Some(lane) = self.habits.lanes.get_mut(&seen.link) else { return };
        lane.odd |= seen.forged;
        match frame {
            Received::Connect(greeting) if greeting.time_out > 0 => {
                let timeout = u64::from(greeting.time_out.unsigned_abs());
                lane.serves = Some((greeting.session_id, timeout));
                (lane.sent, lane.is_fresh) = (seen.at, true);
            }
            Received::Reply(Reply { header, .. }) => {
                // Its client makes sure that the server is well then.
                lane.odd |= header.err == ErrorCode::UNIMPLEMENTED;
                let told = lane.serves.map(|(id, _)| self.habits.told.entry(id).or_default());
                if let Some(told) = told.filter(|_| header.zxid.0 > 0) {
                    *told = header.zxid.max(*told);
                }
            }
            _ => {}
        }
    }

    /// Something has come, be it a part of a frame.
    pub(super) fn hears_on(&mut self, link: LinkId) {
        let Some(lane) = self.habits.lanes.get_mut(&link) else { return };
        lane.heard = self.now;
        let client = lane.client;
        self.hears_a_part(client);
    }

    /// A client stands still: it hears of nothing, however long that lasts.
    pub(super) fn hears_nothing(&mut self, client: u32) {
        let lanes = self.habits.lanes.values_mut().filter(|lane| lane.client == client);
        for lane in lanes {
            lane.heard = self.now;
            if lane.is_fresh {
                lane.sent = self.now;
            }
        }
    }

    pub(super) fn hangs_up(&mut self, link: LinkId) {
        self.habits.lanes.remove(&link);
    }

    /// What a client that does not stand still has done of late.
    pub(super) fn check_habits(&mut self, client: u32, session: &Session) {
        let now = self.now;
        let lane = self.habits.lanes.values().filter(|lane| lane.client == client && !lane.odd);
        let mut served = lane.filter_map(|lane| {
            let (id, timeout) = lane.serves.filter(|(id, _)| *id == session.id())?;
            Some((id, timeout, lane.sent, lane.heard))
        });
        let Some((id, timeout, sent, heard)) = served.next_back() else {
            self.habits.doubters.remove(&client);
            return;
        };
        if self.is_doubtful(id) || matches!(session.state(), SessionState::Ended(_)) {
            return;
        }
        let slow = self.slack(client) + ROUNDING + 100;
        // Who waits for the end says nothing more.
        if now > sent + interval(timeout) + slow && session.state() != SessionState::Closing {
            self.violated("L4", format!("c{client} has said nothing since {sent}"));
        }
        if now > heard + timeout * 2 / 3 + slow {
            self.violated("L4", format!("c{client} stays, and has heard nothing since {heard}"));
        }
        let denies =
            matches!(session.state(), SessionState::Disconnected | SessionState::Connecting);
        let looks = self.habits.doubters.entry(client).or_default();
        *looks = if denies { *looks + 1 } else { 0 };
        if *looks == 10 {
            self.violated("S4", format!("c{client} is told that it is not connected, and it is"));
        }
    }
}
