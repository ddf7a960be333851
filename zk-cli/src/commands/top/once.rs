//! One frame as text, for scripts and reports.

use std::{
    env,
    time::{Duration, Instant},
};

use ratatui::{buffer::Buffer, crossterm::terminal, layout::Rect};
use tokio::{task::JoinSet, time::sleep};
use zk_client::{Client, SessionState};

use super::{
    draw, members,
    search::Follower,
    state::{Link, Now, State, Update},
};
use crate::{
    args::TopArgs,
    ask::Asker,
    commands::health,
    connection,
    exit::{Exit, Failure},
    render,
};

/// Between the two rounds that rates are of, however rarely a screen would ask.
const BETWEEN_MAX: Duration = Duration::from_secs(2);

/// Without a terminal, and without `COLUMNS`: no line of a report is cut.
const WIDTH: u16 = 250;

pub(crate) async fn run(args: TopArgs) -> Result<Exit, Failure> {
    let servers: Vec<String> = args.connect.options()?.servers().map(str::to_owned).collect();
    let mut state = State::new(&servers, &args.path, args.interval);
    let asker = Asker::new(&args.connect, args.ask)?;
    let client = args.connect.connect().await;
    let mut follower = Follower::default();
    for round in 0..2 {
        if round > 0 {
            sleep(args.interval.min(BETWEEN_MAX)).await;
        }
        ask(&mut state, &servers, &asker).await;
        state.now = Now::read();
        if let Ok(client) = &client {
            look(&mut state, &mut follower, client).await;
        }
    }
    let (link, exit) = match &client {
        Ok(client) => link(client),
        Err(failure) => {
            let why = failure.to_string();
            // What to do next stands behind it.
            let why = why.lines().next().unwrap_or_default().to_owned();
            (Link::Refused { why }, Exit::Unavailable)
        }
    };
    state.hear(Update::Link(link));
    render::bytes(frame(&state, width()).as_bytes())?;
    if let Ok(client) = &client {
        connection::close(client).await;
    }
    let is_well = members::report(&state.members).is_some_and(|report| report.healthy);
    Ok(if exit == Exit::Done && !is_well { Exit::No } else { exit })
}

/// What has become of the session meanwhile.
fn link(client: &Client) -> (Link, Exit) {
    let view = client.session();
    let session = view.id();
    match view.state() {
        SessionState::Connected { read_only } => {
            (Link::Connected { session, read_only }, Exit::Done)
        }
        SessionState::Ended(end) => (Link::Lost { why: end.to_string() }, Exit::Unavailable),
        _ => (Link::Disconnected { session }, Exit::Done),
    }
}

async fn ask(state: &mut State, servers: &[String], asker: &Asker) {
    let mut asking = JoinSet::new();
    for (member, server) in servers.iter().cloned().enumerate() {
        let asker = asker.clone();
        asking.spawn(async move {
            let asked = Instant::now();
            let answer = health::ask(&asker, &server).await;
            Update::Said { member, answer, took: asked.elapsed() }
        });
    }
    let said = asking.join_all().await;
    state.now = Now::read();
    said.into_iter().for_each(|update| state.hear(update));
}

async fn look(state: &mut State, follower: &mut Follower, client: &Client) {
    let path = state.path.clone();
    state.hear(match follower.round(client, &path, Instant::now()).await {
        Ok((readings, searched)) => Update::Board { readings, searched },
        Err(error) => Update::BoardFailed(error.to_string()),
    });
    // A screen may wait for it.
    if let Ok(None) = client.exists(&path).await {
        state.hear(Update::BoardFailed(format!("{path}: no such node")));
    }
}

fn width() -> u16 {
    let columns = || env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    let terminal =
        || terminal::size().ok().filter(|_| render::to_terminal()).map(|(width, _)| width);
    terminal().or_else(columns).unwrap_or(WIDTH)
}

/// The whole of it, however high, as lines.
fn frame(state: &State, width: u16) -> String {
    let area = Rect::new(0, 0, width, draw::height(state));
    let mut buffer = Buffer::empty(area);
    draw::report(state, area, &mut buffer);
    draw::lines(&buffer)
}
