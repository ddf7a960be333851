//! A client from its first connection to its last.

use std::time::Duration;

use zk_client::{Client, ConnectOptions, Credentials, SessionEnd, Xid};
use zk_testkit::sim::{Actor, Doing, Fault, Rng, SimClock, SimConnect, State, servers};

use super::{
    pass,
    workload::{self, Phase, Seat, Stop, Workers},
};

/// How long a close may take, in milliseconds: the client's own limit.
const CLOSE_MAX: u64 = 2_000;

/// Lives until the world ends, or until it is killed.
pub(super) async fn live(mut seat: Seat, mut rng: Rng) {
    if seat.options.is_keeper(seat.number) {
        return workload::keep(seat, rng).await;
    }
    let mut resume = None;
    while *seat.phase.borrow() < Phase::Drain {
        let Some(client) = connect(&seat, &mut rng, resume.take()).await else {
            pass(rng.scaled(10, 1_000)).await;
            continue;
        };
        resume = spend(&mut seat, &mut rng, client).await;
        let pause = rng.scaled(1, 1_000);
        pass(if resume.is_some() { pause / 4 } else { pause }).await;
    }
    seat.judge.bench().promises.drained.insert(seat.number);
}

/// How a client connects, within so many milliseconds.
pub(super) fn options(seat: &Seat, rng: &mut Rng, deadline: u64) -> ConnectOptions {
    let timeout = seat.options.wished_timeout(seat.number);
    let (tasks, process) = (seat.tasks.clone(), State::process(seat.number));
    let mut options = ConnectOptions::new(&servers(seat.options.members))
        .expect("the names are sound")
        .session_timeout(Duration::from_millis(timeout))
        .connect_deadline(Some(Duration::from_millis(deadline)))
        .request_len_max(seat.options.request_len_max)
        .read_only(seat.options.read_only_mode && seat.number % 3 == 0)
        .lease(seat.options.lease)
        .connector(SimConnect::new(&seat.cluster, seat.number))
        .clock(SimClock::new(seat.options.drifts[seat.number as usize]))
        .seed(rng.next())
        .spawn_with(move |task| tasks.spawn(process, task));
    if let Some(identity) = workload::identity(seat.number) {
        options = options.auth("digest", identity);
    }
    options
}

async fn connect(seat: &Seat, rng: &mut Rng, resume: Option<Credentials>) -> Option<Client> {
    let deadline = if rng.one_in(5) { 600_000 } else { rng.scaled(1_000, 60_000) };
    let mut options = options(seat, rng, deadline);
    let timeout = seat.options.wished_timeout(seat.number);
    let time_for_it = seat.now() + deadline + 4 * timeout < seat.options.duration;
    let refused = resume.is_none() && time_for_it && rng.one_in(20);
    if refused {
        options = options.auth("nonsense", "nonsense");
    }
    if let Some(credentials) = resume {
        options = options.resume(credentials);
    }
    let (began, stalled) = (seat.now(), seat.stalled());
    // Some give up early.
    let patience = if rng.one_in(10) { rng.scaled(1, 2_000) } else { u64::MAX / 2 };
    let client = tokio::select! {
        biased;
        client = options.connect() => client.ok(),
        () = pass(patience) => {
            seat.count("connects dropped");
            seat.cluster.state().hit(Fault::Close, seat.number);
            return None;
        }
    };
    let (took, stalled) = (seat.now() - began, seat.stalled() - stalled);
    seat.judge.at(seat.now()).took("connecting", seat.number, took, stalled, deadline);
    seat.count(if client.is_some() { "sessions" } else { "connects failed" });
    if refused {
        if let Some(client) = client {
            refuse(seat, &client).await;
        }
        return None;
    }
    client
}

/// The servers do not take a client's credentials: that ends its session.
async fn refuse(seat: &Seat, client: &Client) {
    seat.count("credentials refused");
    let (session, stalled) = (client.session(), seat.stalled());
    let allowed = 4 * seat.options.session_timeouts[seat.number as usize];
    tokio::select! {
        biased;
        _ = session.ended() => {}
        () = pass(allowed) => {
            if seat.stalled() == stalled {
                let text = format!("c{} goes on with credentials that are refused", seat.number);
                seat.judge.at(seat.now()).violated("L4", text);
            }
        }
    }
}

/// Uses a session until it ends, or is ended in one of the ways in which that is possible.
async fn spend(seat: &mut Seat, rng: &mut Rng, client: Client) -> Option<Credentials> {
    let (session, stalled) = (client.session(), seat.stalled());
    seat.judge.bench().promises.sessions.insert(seat.number, session.clone());
    seat.cluster.note(Actor::Client(seat.number), "session", session.id().0 as u64);
    let mut workers = workload::start(seat, &client, rng);
    let lifetime = rng.scaled(2_000, 400_000);
    let mut phase = seat.phase.clone();
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
        seat.cluster.note(Actor::Client(seat.number), "session over", end as u64);
        seat.count("sessions lost");
        if ended == Some(SessionEnd::Expired) && seat.stalled() == stalled {
            let id = session.id();
            let lives = seat.cluster.state().ensemble.sessions().any(|(other, _)| other == id);
            seat.judge.at(seat.now()).given_up(seat.number, id, lives);
        }
        workers.stop(Stop::Finish);
        workers.done().await;
        return None;
    }
    if *seat.phase.borrow() >= Phase::Drain {
        workers.stop(Stop::Finish);
        workers.done().await;
        seat.judge.bench().promises.drained.insert(seat.number);
        let _ = seat.phase.wait_for(|phase| *phase >= Phase::Close).await;
    }
    let _closing = seat.cluster.doing(seat.number, Doing::Closing);
    end(seat, rng, client, workers).await
}

/// The ways to leave a session.
async fn end(
    seat: &Seat,
    rng: &mut Rng,
    client: Client,
    mut workers: Workers,
) -> Option<Credentials> {
    let how = rng.below(6);
    seat.cluster.note(Actor::Client(seat.number), "ends its session", how);
    match how {
        // Everything is let go where it is; the session closes by itself.
        0 => {
            workers.stop(Stop::Drop);
            workers.done().await;
            seat.cluster.state().hit(Fault::DropHandles, seat.number);
            return None;
        }
        1 => {
            close(seat, &client).await;
            seat.cluster.state().hit(Fault::Close, seat.number);
        }
        2 => {
            let (one, other) = (client.clone(), client.clone());
            tokio::join!(biased; close(seat, &one), close(seat, &other));
            close(seat, &client).await;
            seat.cluster.state().hit(Fault::Close, seat.number);
        }
        3 if *seat.phase.borrow() < Phase::Converge => {
            workers.stop(Stop::Finish);
            workers.done().await;
            let mut credentials = client.detach().await?;
            seat.count("sessions handed over");
            if rng.one_in(3) && credentials.next_xid.0 < 1 << 30 {
                // Behind the largest number comes the first.
                credentials.next_xid = Xid(i32::MAX - rng.within(0, 300) as i32);
                seat.cluster.state().hit(Fault::XidWrap, seat.number);
            }
            return Some(credentials);
        }
        _ => {
            workers.stop(Stop::Finish);
            workers.done().await;
            close(seat, &client).await;
        }
    }
    workers.stop(Stop::Finish);
    workers.done().await;
    None
}

async fn close(seat: &Seat, client: &Client) {
    let (began, stalled) = (seat.now(), seat.stalled());
    let closed = client.close().await;
    let (took, stalled) = (seat.now() - began, seat.stalled() - stalled);
    seat.judge.at(seat.now()).took("closing", seat.number, took, stalled, CLOSE_MAX);
    seat.count(if closed.is_ok() { "closes" } else { "closes not confirmed" });
}
