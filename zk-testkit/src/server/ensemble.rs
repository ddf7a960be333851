//! The ensemble as its surroundings see it: connections in, outputs out.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use zk_proto::{SessionId, Time, Zxid};

use super::{
    Config, Conn, Member,
    connection::Connection,
    member::Replica,
    membership::{FIRST_EPOCH, Membership, number},
    quirks,
    sessions::{Session, Sessions},
    tree::Tree,
    txn::{Committed, Stamp},
};

/// How long a connection may stay without a session: `zookeeper.nio.sessionlessCnxnTimeout`.
const NAMELESS_MAX: Duration = Duration::from_secs(10);

/// What the ensemble wants done, in this order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send these bytes to a client.
    Write {
        /// The target.
        conn: Conn,
        /// What.
        bytes: Bytes,
    },
    /// Close this connection once everything before is sent. It is forgotten already.
    Close {
        /// Which.
        conn: Conn,
    },
}

/// An ensemble of servers, or a standalone one.
///
/// It has no clock, no sockets and no chance of its own: the same calls give the same outputs.
///
/// # How faithful it is
///
/// There is one history, and each member has applied some part of it. What a member shows its clients
/// is what a real one shows: its own state, in order, at its own pace. How the members agree is not
/// modelled: the leader decides alone as long as it reaches a majority, and a new leader has every
/// transaction that was ever answered.
#[derive(Debug)]
pub struct Ensemble {
    pub(super) config: Config,
    pub(super) members: Vec<Replica>,
    pub(super) membership: Membership,
    /// Whether it is a server that has never heard of others.
    pub(super) standalone: bool,
    pub(super) conns: BTreeMap<Conn, Connection>,
    pub(super) sessions: Sessions,
    /// The member that decides, and the time from which it does.
    pub(super) leader: Option<usize>,
    /// The leader that is not to be elected again, if others know as much.
    pub(super) deposed: Option<usize>,
    /// When the members that see each other will have found a leader.
    pub(super) election: Option<Time>,
    /// The last transaction's number.
    pub(super) zxid: Zxid,
    pub(super) history: Vec<Committed>,
    /// When the leader asks next of which sessions members have heard, if one has.
    pub(super) reports: Option<Time>,
    /// When containers are looked at next.
    pub(super) reaping: Time,
    /// Whether the leader has just been removed from the ensemble.
    pub(super) steps_down: bool,
    /// Connections that have no session yet, by the time at which they must.
    pub(super) nameless: BTreeSet<(Time, Conn)>,
    /// Connections that may have something to be served.
    pub(super) ready: BTreeSet<Conn>,
    /// The connection whose request is being decided.
    pub(super) serving: Option<Conn>,
    next_conn: u64,
    /// What the nonces of SASL are made of.
    pub(super) nonces: u64,
    /// What decides which requests are throttled.
    pub(super) throttling: u64,
    /// Connections that have something to say, in the order in which they began to.
    talking: VecDeque<Conn>,
}

impl Ensemble {
    /// An ensemble whose members are up and have found a leader: the last one.
    #[must_use]
    pub fn new(mut config: Config) -> Self {
        // Time would stand still otherwise.
        let interval = &mut config.container_check_interval;
        *interval = (*interval).max(Duration::from_millis(1));
        config.enforce_quota &= quirks::enforces_quotas(config.release);
        let count = config.members.max(1);
        let membership = Membership::new(&config.servers, count);
        let standalone = count == 1 && config.servers.is_empty();
        // A server on its own has the node, but nothing to say in it.
        let listed = if standalone { Vec::new() } else { membership.text().into_bytes() };
        let began = Stamp { zxid: FIRST_EPOCH, millis: config.epoch_millis, session: SessionId(0) };
        let tree = Tree::new(quirks::has_config(config.release).then(|| listed.into()), began);
        let mixed = quirks::watches_mix(config.release);
        let replica = |member| Replica::new(number(member), tree.clone(), mixed, config.lag);
        let members = (0..count).map(replica).collect();
        let mut ensemble = Self {
            sessions: Sessions::new(
                config.tick,
                quirks::sessions_shorten(config.release),
                config.seed,
            ),
            members,
            membership,
            standalone,
            conns: BTreeMap::new(),
            leader: None,
            deposed: None,
            election: None,
            zxid: Zxid(0),
            history: Vec::new(),
            reports: None,
            reaping: Time::ZERO.after(config.container_check_interval),
            steps_down: false,
            nameless: BTreeSet::new(),
            ready: BTreeSet::new(),
            serving: None,
            next_conn: 0,
            nonces: !config.seed,
            throttling: config.seed,
            talking: VecDeque::new(),
            config,
        };
        ensemble.elect(Time::ZERO);
        ensemble
    }

    /// How it was set up.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Does something to the ensemble, after everything that was due before, and with everything that comes of
    /// it: between two calls nothing waits that could be served.
    pub(super) fn act<T>(&mut self, now: Time, act: impl FnOnce(&mut Self) -> T) -> T {
        self.catch_up(now);
        self.settle(now);
        let outcome = act(self);
        self.settle(now);
        if std::mem::take(&mut self.steps_down) {
            self.step_down(now);
            self.settle(now);
        }
        outcome
    }

    /// A client wants to connect. `None`: nothing listens there.
    pub fn accept(&mut self, now: Time, member: Member, peer: IpAddr) -> Option<Conn> {
        self.accept_as(now, member, SocketAddr::new(peer, 0), None)
    }

    /// A client wants to connect over TLS, and has shown a certificate of this subject (`CN=client`), if any.
    pub fn accept_as(
        &mut self,
        now: Time,
        member: Member,
        peer: SocketAddr,
        subject: Option<&str>,
    ) -> Option<Conn> {
        self.act(now, |this| {
            let replica = this.members.get(member.0)?;
            if !replica.up {
                return None;
            }
            let conn = Conn(this.next_conn);
            this.next_conn = this.next_conn.saturating_add(1);
            let mut connection = Connection::new(member.0, peer);
            if let Some(subject) = subject {
                connection.identities.certify(subject);
            }
            this.conns.insert(conn, connection);
            this.nameless.insert((now.after(NAMELESS_MAX), conn));
            Some(conn)
        })
    }

    /// A client has sent these bytes; any split is fine.
    pub fn received(&mut self, now: Time, conn: Conn, bytes: &[u8]) {
        self.act(now, |this| {
            let Some(connection) = this.conns.get_mut(&conn).filter(|it| !it.closing) else {
                return;
            };
            connection.inbound.extend_from_slice(bytes);
            this.take_frames(now, conn);
        })
    }

    /// A client's side of a connection is gone.
    pub fn hung_up(&mut self, now: Time, conn: Conn) {
        self.act(now, |this| {
            this.forget(conn);
        })
    }

    /// What to do next; ask until `None` after every other call.
    pub fn poll(&mut self) -> Option<Output> {
        loop {
            let conn = *self.talking.front()?;
            let Some(connection) = self.conns.get_mut(&conn) else {
                self.talking.pop_front();
                continue;
            };
            if !connection.outbound.is_empty() {
                return Some(Output::Write { conn, bytes: connection.outbound.split().freeze() });
            }
            connection.listed = false;
            self.talking.pop_front();
            if connection.closing {
                self.forget(conn);
                return Some(Output::Close { conn });
            }
        }
    }

    /// When to call [`elapsed`](Self::elapsed) next, if nothing else happens before.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let leads = self.leads().is_some();
        let sessions = self.sessions.deadline().filter(|_| leads);
        let epoch = leads.then(|| self.epoch());
        let members = self.members.iter().filter_map(|member| member.deadline(epoch));
        let mortal = leads.then_some(self.reaping);
        let reports = self.reports.filter(|_| leads);
        let nameless = self.nameless.first().map(|(at, _)| *at);
        let ours = sessions.into_iter().chain(self.election).chain(mortal).chain(nameless);
        ours.chain(reports).chain(members).min()
    }

    /// Time has passed.
    pub fn elapsed(&mut self, now: Time) {
        self.act(now, |_| {});
    }

    /// Ends a session as if its time were over. Without a leader nothing happens.
    pub fn expire(&mut self, now: Time, session: SessionId) {
        self.act(now, |this| {
            this.close_session(now, session);
        })
    }

    /// Closes all connections of clients, or those of one member. No session ends of it.
    pub fn drop_connections(&mut self, now: Time, member: Option<Member>) {
        self.act(now, |this| {
            let of = |it: &&Connection| member.is_none_or(|member| it.member == member.0);
            let conns: Vec<_> =
                this.conns.iter().filter(|(_, it)| of(it)).map(|(conn, _)| *conn).collect();
            conns.into_iter().for_each(|conn| this.close(conn));
        })
    }

    /// Sets how far a member lags behind what is committed, from now on.
    pub fn set_lag(&mut self, now: Time, member: Member, lag: Duration) {
        self.act(now, |this| {
            if let Some(replica) = this.members.get_mut(member.0) {
                replica.lag = lag;
            }
        })
    }

    /// Has a member throttle so many requests in a thousand from now on, as overloaded servers since 3.7 do: they answer
    /// without carrying anything out. Those before 3.7 do not know how.
    pub fn throttle(&mut self, now: Time, member: Member, in_a_thousand: u64) {
        self.act(now, |this| {
            if let Some(replica) = this.members.get_mut(member.0) {
                replica.throttled = in_a_thousand;
            }
        })
    }

    /// Sets the number that the next sequential child of a node gets, on every member. Tells whether
    /// there is such a node.
    pub fn set_sequence(&mut self, path: &str, next: i32) -> bool {
        let mut everywhere = true;
        for replica in &mut self.members {
            everywhere &= replica.tree.set_sequence(path, next);
        }
        everywhere
    }

    /// The leader.
    #[must_use]
    pub fn leader(&self) -> Option<Member> {
        self.leader.map(Member)
    }

    /// Whether a member follows without a vote because the configuration says so.
    pub(super) fn observes(&self, member: usize) -> bool {
        self.members.get(member).is_some_and(|it| self.membership.observes(it.number))
    }

    /// Whether what a member hears of sessions comes to a leader that can decide on them.
    #[must_use]
    pub fn is_in_touch(&self, member: Member) -> bool {
        self.leader_of(member.0).is_some()
    }

    /// The last transaction that a member has applied.
    #[must_use]
    pub fn applied(&self, member: Member) -> Zxid {
        self.members.get(member.0).map_or(Zxid(0), |replica| replica.applied)
    }

    /// The last transaction that a member has applied and that others can know of, too: one that only serves readers counts
    /// on by itself.
    #[must_use]
    pub fn agreed(&self, member: Member) -> Zxid {
        let replica = self.members.get(member.0);
        let agreed = |it: &Replica| it.reader.as_ref().map_or(it.applied, |reader| reader.applied);
        replica.map_or(Zxid(0), agreed)
    }

    /// The member that has applied most.
    #[must_use]
    pub fn newest(&self) -> Member {
        let agreed = |member: &usize| self.agreed(Member(*member));
        Member((0..self.members.len()).max_by_key(agreed).unwrap_or_default())
    }

    /// The nodes as a member shows them.
    #[must_use]
    pub fn tree(&self, member: Member) -> Option<&Tree> {
        self.members.get(member.0).map(|replica| &replica.tree)
    }

    /// All sessions that have not ended.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter()
    }

    /// The connections of a member, each with its session once it has one.
    pub fn connections(&self, member: Member) -> impl Iterator<Item = (Conn, Option<SessionId>)> {
        let of = move |it: &(&Conn, &Connection)| it.1.member == member.0;
        self.conns.iter().filter(of).map(|(conn, it)| (*conn, it.session()))
    }

    /// What a connection watches: paths for data and existence, and paths for children.
    #[must_use]
    pub fn watches(&self, conn: Conn) -> (Vec<&str>, Vec<&str>) {
        let member = self.conns.get(&conn).and_then(|it| self.members.get(it.member));
        member.map(|replica| replica.watches.of(conn)).unwrap_or_default()
    }

    /// How many watches all connections have together.
    #[must_use]
    pub fn watch_count(&self) -> usize {
        self.members.iter().map(|replica| replica.watches.len()).sum()
    }

    /// Everything that was committed, if [`Config::keep_history`] says so.
    #[must_use]
    pub fn history(&self) -> &[Committed] {
        &self.history
    }

    /// Appends to what a client is sent.
    pub(super) fn say(&mut self, conn: Conn, bytes: &[u8]) {
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.outbound.extend_from_slice(bytes);
            if let Some(replica) = self.members.get_mut(connection.member) {
                replica.sent += u64::from(!bytes.is_empty());
            }
            if !std::mem::replace(&mut connection.listed, true) {
                self.talking.push_back(conn);
            }
        }
    }

    /// Ends a connection once what was said is sent.
    pub(super) fn close(&mut self, conn: Conn) {
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.closing = true;
            connection.queue.clear();
            self.unbind(conn);
            self.say(conn, &[]);
        }
    }

    fn forget(&mut self, conn: Conn) {
        self.unbind(conn);
        self.conns.remove(&conn);
    }

    /// Whatever hangs on a connection goes with it, but for its session.
    fn unbind(&mut self, conn: Conn) {
        let Some(connection) = self.conns.get(&conn) else { return };
        let Some(replica) = self.members.get_mut(connection.member) else { return };
        replica.watches.remove_conn(conn);
        if let Some(session) = connection.session() {
            replica.unbind(session, conn);
            self.sessions.detach(session, conn);
        }
    }
}
