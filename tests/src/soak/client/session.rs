//! One session after the other, and the tasks that use them.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use tokio::task::JoinSet;
use zk_client::{
    Client, ConnectError, ConnectOptions, CreateMode, SessionEnd, SessionState, WriteError, Zxid,
};

use super::{
    connect,
    copy::Copy,
    layout,
    one_shot::OneShots,
    shared::{Shared, Stop, count},
    stream::Follower,
    tap::Tap,
    writer::Writer,
};

/// How many tasks use one session.
pub(super) const TASKS: usize = 4;

/// What the tasks of one session have of it.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) shared: Arc<Shared>,
    pub(super) zk: Client,
    /// The newest transaction that the session has seen of each register.
    pub(super) registers: Vec<AtomicI64>,
}

impl Seat {
    pub(super) fn newest_of(&self, register: usize) -> Zxid {
        Zxid(self.registers[register].load(Ordering::Relaxed))
    }

    pub(super) fn has_seen(&self, register: usize, zxid: Zxid) {
        self.registers[register].fetch_max(zxid.0, Ordering::Relaxed);
    }
}

/// What a task is there for.
#[derive(Debug)]
pub(super) enum Role {
    Writer(usize, Option<Box<Writer>>),
    OneShots(OneShots),
    Stream(Follower),
    Copy(Copy),
}

impl Role {
    /// Those of the tasks of one session.
    pub(super) fn of_session(session: usize) -> Vec<Self> {
        let mut roles = vec![
            Self::Writer(2 * session, None),
            Self::Writer(2 * session + 1, None),
            Self::OneShots(OneShots::new(session)),
        ];
        roles.push(match session % 2 {
            0 => Self::Stream(Follower::default()),
            _ => Self::Copy(Copy::default()),
        });
        debug_assert_eq!(roles.len(), TASKS);
        roles
    }

    async fn run(&mut self, seat: &Seat) -> Result<(), Stop> {
        match self {
            Self::Writer(number, writer) => {
                let writer =
                    writer.get_or_insert_with(|| Box::new(Writer::new(*number, &seat.shared)));
                writer.run(seat).await
            }
            Self::OneShots(one_shot) => one_shot.run(seat).await,
            Self::Stream(follower) => follower.run(seat).await,
            Self::Copy(copy) => copy.run(seat).await,
        }
    }

    fn finish(self, shared: &Shared) {
        match self {
            Self::Writer(_, Some(writer)) => writer.finish(shared),
            Self::Stream(follower) => shared.followed(follower.into_spans()),
            Self::Writer(_, None) | Self::OneShots(_) | Self::Copy(_) => {}
        }
    }
}

/// Serves these tasks, with one session after the other, until all have come to their end.
pub(super) async fn run(shared: Arc<Shared>, number: usize, mut roles: Vec<Role>) {
    for life in 0.. {
        let (tap, options) = match ConnectOptions::new(&shared.servers) {
            Ok(options) => {
                let tap = Tap::default();
                (tap.clone(), options.connector(tap))
            }
            Err(error) => return shared.violation(error.to_string()),
        };
        let zk = match connect(options).await {
            Ok(zk) => zk,
            // Between the handshake and the first answer.
            Err(ConnectError::SessionEnded(SessionEnd::Expired)) => continue,
            Err(error) => return shared.violation(format!("connect: {error}")),
        };
        match open(&zk, number, life).await {
            Ok(()) => roles = serve(&shared, &zk, roles).await,
            Err(Stop::SessionOver) => {}
            Err(Stop::Broken(what)) => shared.violation(what),
        }
        match zk.close().await {
            // The servers are there, but may be about to choose a leader.
            Ok(()) | Err(WriteError::InDoubt { .. }) => {}
            Err(error) => shared.violation(format!("close: {error}")),
        }
        if zk.session().state() == SessionState::Ended(SessionEnd::Expired) {
            shared.count(count::EXPIRED);
        }
        shared.session_over(&zk.stats());
        shared.add(count::REPLIES, tap.compared());
        if tap.went_back() > 0 {
            let what = format!("{} replies of session {number} went back", tap.went_back());
            shared.violation(what);
        }
        if roles.is_empty() {
            return;
        }
    }
}

/// Begins a session: what its predecessor has written is there for it to see, and nothing more will come of it.
async fn open(zk: &Client, number: usize, life: usize) -> Result<(), Stop> {
    zk.sync("/").await?;
    for life in 0..life {
        let marker = layout::marker(number, life);
        while let (Some(_), gone) = zk.exists(&marker).watch().await? {
            gone.await.map_err(|end| Stop::by(Some(end), "watch", &marker))?;
        }
    }
    let marker = layout::marker(number, life);
    let made = zk.create(&marker, b"").mode(CreateMode::Ephemeral).or_exists().await;
    made.map(drop).map_err(|error| Stop::by(error.session_end(), "marker", &error))
}

/// Lets the tasks work as long as the session lasts. Returns those that have not come to their end.
async fn serve(shared: &Arc<Shared>, zk: &Client, roles: Vec<Role>) -> Vec<Role> {
    let registers = shared.first.registers.iter().map(|zxid| AtomicI64::new(zxid.0)).collect();
    let seat = Arc::new(Seat { shared: shared.clone(), zk: zk.clone(), registers });
    let mut running = JoinSet::new();
    for mut role in roles {
        let seat = seat.clone();
        running.spawn(async move {
            let ended = role.run(&seat).await;
            if ended.is_ok() || matches!(ended, Err(Stop::Broken(_))) {
                role.finish(&seat.shared);
                return (ended, None);
            }
            (ended, Some(role))
        });
    }
    let mut left = Vec::new();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((Err(Stop::Broken(what)), _)) => shared.violation(what),
            Ok((_, role)) => left.extend(role),
            Err(panic) => shared.violation(panic.to_string()),
        }
    }
    left
}
