//! A client from its first connection to its last.

use std::time::Duration;

use zk_client::{Client, ConnectOptions, Credentials, SessionEnd, SessionId, SessionState, Xid};
use zk_testkit::sim::{Actor, Fault, Rng, SimConnect, State, servers, sim_clock};

use super::{
    check::Room,
    pass, rest,
    workload::{self, ClientContext, Phase, Stop, Workers},
};

/// How long a close may take, in milliseconds: the client's own limit.
const CLOSE_MAX: u64 = 2_000;

/// Lives until the world ends, or until it is killed.
pub(super) async fn live(mut ctx: ClientContext, mut rng: Rng) {
    if ctx.options.is_keeper(ctx.number) {
        return workload::keep(ctx, rng).await;
    }
    let mut resume = None;
    while *ctx.phase.borrow() < Phase::Drain {
        let Some(client) = connect(&ctx, &mut rng, resume.take()).await else {
            pass(rng.scaled(10, 1_000)).await;
            continue;
        };
        resume = spend(&mut ctx, &mut rng, client).await;
        let pause = rng.scaled(1, 1_000);
        pass(if resume.is_some() { pause / 4 } else { pause }).await;
    }
    ctx.check().promises.drained.insert(ctx.number);
}

/// The fewest requests that a session has at once.
pub(super) const REQUESTS_MIN: u64 = 1;

/// The fewest bytes of them: three reads.
const BYTES_MIN: u64 = 200;

/// More of either than is ever asked for.
const ROOM: usize = 64 << 20;

/// How a client connects, within so many milliseconds.
pub(super) fn options(ctx: &ClientContext, rng: &mut Rng, deadline: u64) -> ConnectOptions {
    let timeout = ctx.options.wished_timeout(ctx.number);
    let (tasks, process) = (ctx.tasks.clone(), State::process(ctx.number));
    let connect = SimConnect::new(&ctx.cluster, ctx.number);
    let connector = connect.id();
    let mut options = ConnectOptions::new(&servers(ctx.options.members))
        .expect("the names are sound")
        .session_timeout(Duration::from_millis(timeout))
        .connect_deadline(Some(Duration::from_millis(deadline)))
        .request_len_max(ctx.options.sends_at_most(ctx.number))
        .read_only(ctx.options.reads_alone(ctx.number))
        .lease(ctx.options.lease)
        .connector(connect)
        .clock(sim_clock(ctx.options.drifts[ctx.number as usize]))
        .seed(rng.next())
        .spawn_with(move |task| tasks.spawn(process, task));
    let room = room(ctx, rng);
    ctx.check().has_room(ctx.number, connector, room);
    options = options.requests_max(room.requests).request_bytes_max(room.bytes);
    if let Some(events) = room.events {
        options = options.watch_items_max(events);
    }
    let mut limit = None;
    if ctx.options.draws_settings {
        (options, limit) = settings(options, rng);
    }
    ctx.check().has_limit(ctx.number, limit);
    if let Some(identity) = workload::identity(ctx.number) {
        options = options.auth("digest", identity);
    }
    options
}

/// How much a session may ask for and hear at once, drawn for each.
fn room(ctx: &ClientContext, rng: &mut Rng) -> Room {
    let mut room = Room { requests: ROOM, bytes: ROOM, events: None };
    if ctx.options.draws_settings {
        if rng.one_in(5) {
            room.requests = rng.scaled(REQUESTS_MIN, 256) as usize;
        }
        if rng.one_in(5) {
            room.bytes = rng.scaled(BYTES_MIN, 100_000) as usize;
        }
        room.events = rng.one_in(4).then(|| rng.scaled(1, 64) as usize);
    }
    room
}

/// Settings that change what is waited for, and how long, drawn for each session. Returns how long requests may take, too.
fn settings(mut options: ConnectOptions, rng: &mut Rng) -> (ConnectOptions, Option<u64>) {
    let limit = rng.one_in(3).then(|| rng.scaled(20, 30_000));
    if let Some(limit) = limit {
        options = options.request_timeout(Duration::from_millis(limit));
    }
    if rng.one_in(5) {
        options = options.connect_timeout(Duration::from_millis(rng.scaled(200, 5_000)));
    }
    (options, limit)
}

async fn connect(
    ctx: &ClientContext,
    rng: &mut Rng,
    resume: Option<Credentials>,
) -> Option<Client> {
    let deadline = if rng.one_in(5) { 600_000 } else { rng.scaled(1_000, 60_000) };
    let mut options = options(ctx, rng, deadline);
    let timeout = ctx.options.wished_timeout(ctx.number);
    let time_for_it = ctx.now() + deadline + 4 * timeout < ctx.options.duration;
    let refused = resume.is_none() && time_for_it && rng.one_in(20);
    if refused {
        options = options.auth("nonsense", "nonsense");
    }
    if let Some(credentials) = resume {
        options = options.resume(credentials);
    }
    let (began, stalled) = (ctx.now(), ctx.stalled());
    // Some give up early.
    let patience = if rng.one_in(10) { rng.scaled(1, 2_000) } else { u64::MAX / 2 };
    let client = tokio::select! {
        biased;
        client = options.connect() => client.ok(),
        () = pass(patience) => {
            ctx.count("connects dropped");
            ctx.cluster.state().hit(Fault::Close);
            return None;
        }
    };
    let (took, stalled) = (ctx.now() - began, ctx.stalled() - stalled);
    ctx.check().took("connecting", ctx.number, took, stalled, deadline);
    ctx.count(if client.is_some() { "sessions" } else { "connects failed" });
    if refused {
        if let Some(client) = client {
            refuse(ctx, &client).await;
        }
        return None;
    }
    client
}

/// The servers do not take a client's credentials: that ends its session.
async fn refuse(ctx: &ClientContext, client: &Client) {
    ctx.count("credentials refused");
    let (session, stalled) = (client.session(), ctx.stalled());
    let allowed = 4 * ctx.options.session_timeouts[ctx.number as usize];
    tokio::select! {
        biased;
        _ = session.ended() => {}
        () = pass(allowed) => {
            if ctx.stalled() == stalled {
                let text = format!("c{} goes on with credentials that are refused", ctx.number);
                ctx.check().violated("L4", text);
            }
        }
    }
}

/// Uses a session until it ends, or is ended in one of the ways in which that is possible.
async fn spend(ctx: &mut ClientContext, rng: &mut Rng, client: Client) -> Option<Credentials> {
    let (session, stalled) = (client.session(), ctx.stalled());
    ctx.check().has_session(ctx.number, session.clone());
    ctx.cluster.note(Actor::Client(ctx.number), "session", session.id().0 as u64);
    let mut workers = workload::start(ctx, &client, rng);
    let lifetime = rng.scaled(2_000, 400_000);
    let mut phase = ctx.phase.clone();
    let leaves = async {
        let is_over = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase >= Phase::Drain) => true,
            () = pass(lifetime) => false,
        };
        if !is_over {
            // A client that comes back does not leave while it is watched.
            let _ = phase.wait_for(|phase| *phase != Phase::Converge).await;
        }
    };
    let ended = tokio::select! {
        biased;
        end = session.ended() => Some(end),
        () = leaves => None,
    };
    if let Some(end) = ended {
        ctx.cluster.note(Actor::Client(ctx.number), "session over", end as u64);
        ctx.count("sessions lost");
        if ended == Some(SessionEnd::Expired) && ctx.stalled() == stalled {
            let id = session.id();
            if lives(ctx, id) {
                ctx.check().given_up(ctx.number, id);
            }
        }
        workers.stop(Stop::Finish);
        workers.done().await;
        tells_its_end(ctx, &client, end).await;
        return None;
    }
    if *ctx.phase.borrow() >= Phase::Drain {
        workers.stop(Stop::Finish);
        workers.done().await;
        rest::check(ctx, &client).await;
        ctx.check().promises.drained.insert(ctx.number);
        let _ = ctx.phase.wait_for(|phase| *phase >= Phase::Close).await;
    }
    end(ctx, rng, client, workers).await
}

/// The ways to leave a session.
async fn end(
    ctx: &ClientContext,
    rng: &mut Rng,
    client: Client,
    mut workers: Workers,
) -> Option<Credentials> {
    let how = rng.below(6);
    ctx.cluster.note(Actor::Client(ctx.number), "ends its session", how);
    match how {
        // Everything is let go where it is; the session closes by itself.
        0 => {
            ctx.check().sends_the_rest(ctx.number);
            workers.stop(Stop::Drop);
            workers.done().await;
            ctx.cluster.state().hit(Fault::DropHandles);
            return None;
        }
        1 => {
            close(ctx, &client).await;
            ctx.cluster.state().hit(Fault::Close);
        }
        2 => {
            let (one, other) = (client.clone(), client.clone());
            tokio::join!(biased; close(ctx, &one), close(ctx, &other));
            close(ctx, &client).await;
            ctx.cluster.state().hit(Fault::Close);
        }
        3 if *ctx.phase.borrow() < Phase::Converge => {
            // What is dropped in the middle of something is cleaned up before the session is left.
            workers.stop(if rng.one_in(2) { Stop::Drop } else { Stop::Finish });
            workers.done().await;
            let id = client.session().id();
            let mut credentials = leave(ctx, rng, client).await?;
            ctx.count("sessions handed over");
            ctx.check().check_left(ctx.number, id);
            if rng.one_in(3) && credentials.next_xid.0 < 1 << 30 {
                // Behind the largest number comes the first.
                credentials.next_xid = Xid(i32::MAX - rng.within(0, 300) as i32);
                ctx.cluster.state().hit(Fault::XidWrap);
            }
            return Some(credentials);
        }
        _ => {
            workers.stop(Stop::Finish);
            workers.done().await;
            close(ctx, &client).await;
        }
    }
    workers.stop(Stop::Finish);
    workers.done().await;
    None
}

/// Leaves a session, and looks for what comes of it at once or some time later; another task may close it meanwhile.
async fn leave(ctx: &ClientContext, rng: &mut Rng, client: Client) -> Option<Credentials> {
    let other = rng.one_in(4).then(|| client.clone());
    let left = client.detach();
    if rng.one_in(2) {
        ctx.count("sessions left and not looked for");
        // Every client has to be back then.
        let mut phase = ctx.phase.clone();
        tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase >= Phase::Converge) => {}
            () = pass(rng.scaled(1, 30_000)) => {}
        }
    }
    let Some(other) = other else { return left.await };
    ctx.count("sessions closed while they were left");
    let ((), left) = tokio::join!(biased; close(ctx, &other), left);
    if left.is_some() {
        ctx.check().violated("L4", format!("c{} has what it has closed", ctx.number));
    }
    None
}

/// What is asked of a session that is over is refused for that reason.
async fn tells_its_end(ctx: &ClientContext, client: &Client, end: SessionEnd) {
    let told = client.exists("/").await.map_err(|error| error.session_end());
    if told != Err(Some(end)) {
        let text = format!("c{} is told {told:?} of its session, and it is {end}", ctx.number);
        ctx.check().violated("E1", text);
    }
}

/// Whether the servers have a session.
pub(super) fn lives(ctx: &ClientContext, id: SessionId) -> bool {
    ctx.cluster.state().ensemble.sessions().any(|(other, _)| other == id)
}

async fn close(ctx: &ClientContext, client: &Client) {
    let (began, stalled) = (ctx.now(), ctx.stalled());
    ctx.check().closes(ctx.number, &client.session());
    let closed = client.close().await;
    let id = client.session().id();
    // What has expired by its own clock may be there for a moment yet.
    let is_told = matches!(client.session().state(), SessionState::Ended(SessionEnd::Closed));
    if closed.is_ok() && is_told && lives(ctx, id) {
        ctx.check().closed_in_vain(ctx.number, id);
    }
    let (took, stalled) = (ctx.now() - began, ctx.stalled() - stalled);
    ctx.check().took("closing", ctx.number, took, stalled, CLOSE_MAX);
    ctx.count(if closed.is_ok() { "closes" } else { "closes not confirmed" });
}
