//! `zk watch`: what happens to a node, as it happens.

use std::{fmt, process::Stdio, time::SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::process::Command;
use zk_client::{
    Cache, CacheEvent, CachedNode, Client, EventType, ReadError, Rejection, Resync, WatchItem,
};

use crate::{
    args::WatchArgs,
    connection,
    exit::{Exit, Failure},
    lock::{
        processes::failed,
        signals::{FOR_THE_COMMAND, Signals},
    },
    render::{self, complain, printable},
};

const RECONNECTED: &str = "reconnected, events may be missing";
const LAGGED: &str = "too much at once, events are missing";

/// One line of output.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// By this machine's clock, when it was heard of.
    at: String,
    what: String,
    /// Of what tells of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Of servers that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    zxid: Option<i64>,
}

pub(crate) async fn run(args: WatchArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::default();
    signals.catch(FOR_THE_COMMAND)?;
    let client = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
        client = args.connect.connect() => client?,
    };
    let exit = follow(&args, &client, &mut signals).await;
    connection::close(&client).await;
    exit
}

async fn follow(args: &WatchArgs, client: &Client, signals: &mut Signals) -> Result<Exit, Failure> {
    let path = &*args.path;
    let mut source = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
        source = Source::start(args, client) => source?,
    };
    let mut next = Some(Line::watching(path));
    loop {
        if let Some(line) = next.take() {
            // The lines are all that there is, unless there is a command.
            if !say(args, &line)? && args.command.is_empty() {
                return Ok(Exit::Done);
            }
            if let Some(signal) = react(args, &line, signals).await? {
                return Ok(Exit::Signal(signal.as_raw()));
            }
        }
        next = tokio::select! {
            biased;
            signal = signals.next() => return Ok(Exit::Signal(signal.as_raw())),
            line = source.next(args) => line.map_err(|why| {
                Failure::new(Exit::Unavailable, format_args!("{path}: {why}"))
            })?,
        };
    }
}

/// Where changes are heard of.
enum Source {
    /// A persistent watch.
    Watch(zk_client::WatchStream),
    /// Servers before 3.6 have none: a copy is kept, and its differences are what changes.
    Copy(zk_client::CacheEvents),
}

impl Source {
    async fn start(args: &WatchArgs, client: &Client) -> Result<Self, Failure> {
        let path = &*args.path;
        let mut watch = client.watch(path);
        if args.recursive {
            watch = watch.recursive();
        }
        match watch.await {
            Ok(stream) => return Ok(Self::Watch(stream)),
            Err(ReadError::Rejected(Rejection::Unimplemented)) => {}
            Err(error) => return Err(Failure::read(path)(error)),
        }
        let copy = match args.recursive {
            true => Cache::subtree(client, path),
            false => Cache::children(client, path),
        };
        let copy = copy.without_data().start();
        let copy = copy.map_err(|error| Failure::new(Exit::Usage, error))?;
        match copy.ready().await {
            // Persistent watches tell of all nodes that are there. A copy lacks what is below some.
            Err(ReadError::Rejected(Rejection::NoAuth)) if args.recursive => {
                complain(&format_args!(
                    "{path}: some children may not be listed: what happens below is not seen"
                ));
            }
            ready => ready.map_err(Failure::read(path))?,
        }
        Ok(Self::Copy(copy.events()))
    }

    /// What happens next, if it is to be reported; or why nothing can be heard of any more.
    async fn next(&mut self, args: &WatchArgs) -> Result<Option<Line>, String> {
        match self {
            Self::Watch(stream) => match stream.next().await {
                Some(item) => Ok(Some(Line::of(item))),
                None => Err(stream.end().map_or_else(String::new, |end| end.to_string())),
            },
            Self::Copy(events) => match events.next().await {
                Some(CacheEvent::Ended(end)) => Err(end.to_string()),
                Some(event) => Ok(difference(args, event)),
                None => Err("no session".to_owned()),
            },
        }
    }
}

/// Prints a line; returns whether it has a reader.
fn say(args: &WatchArgs, line: &Line) -> Result<bool, Failure> {
    match args.json {
        true => render::is_read(&render::json_line(line)?),
        false => render::is_read(format!("{line}\n").as_bytes()),
    }
}

/// Runs the command that a change is to run, to its end. A signal ends it, and is what is returned.
async fn react(
    args: &WatchArgs,
    line: &Line,
    signals: &mut Signals,
) -> Result<Option<Signal>, Failure> {
    let Some((program, arguments)) = args.command.split_first() else { return Ok(None) };
    let what = if line.path.is_some() { &line.what } else { "resync" };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env("ZK_WATCH_EVENT", what);
    command.env("ZK_WATCH_PATH", line.path.as_deref().unwrap_or(&args.path));
    command.env("ZK_WATCH_ZXID", line.zxid.map_or_else(String::new, |zxid| format!("0x{zxid:x}")));
    let mut child = command.spawn().map_err(failed(program))?;
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let mut told = None;
    let status = loop {
        tokio::select! {
            biased;
            signal = signals.next() => {
                // It has ended if it cannot be signalled, which is seen below.
                let _ = pid.map(|pid| kill_process(pid, signal));
                told = Some(signal);
            }
            status = child.wait() => {
                break status.map_err(Failure::local("cannot wait for the command"))?;
            }
        }
    };
    if told.is_none() && !status.success() {
        complain(&format_args!("{}: the command has failed: {status}", args.path));
    }
    Ok(told)
}

impl Line {
    /// From now on.
    pub(crate) fn watching(path: &str) -> Self {
        Self::at("watching", path, None)
    }

    /// What a watch tells.
    pub(crate) fn of(item: WatchItem) -> Self {
        match item {
            WatchItem::Event(event) => {
                Self::at(&word(event.kind), &event.path, event.zxid.map(|zxid| zxid.0))
            }
            WatchItem::Resync(Resync::Reconnected) => Self::remark(RECONNECTED),
            _ => Self::remark(LAGGED),
        }
    }

    /// At a node.
    fn at(what: &str, path: &str, zxid: Option<i64>) -> Self {
        Self { at: now(), what: what.to_owned(), path: Some(path.to_owned()), zxid }
    }

    /// At no node in particular.
    fn remark(what: &str) -> Self {
        Self { at: now(), what: what.to_owned(), path: None, zxid: None }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, what, path, zxid } = self;
        let path = path.as_deref().map_or_else(String::new, |path| format!(" {}", printable(path)));
        let zxid = zxid.map_or_else(String::new, |zxid| format!(" 0x{zxid:x}"));
        write!(f, "{at} {what:<8}{path}{zxid}")
    }
}

fn word(kind: EventType) -> String {
    match kind {
        EventType::NODE_CREATED => "created".to_owned(),
        EventType::NODE_DELETED => "deleted".to_owned(),
        EventType::NODE_DATA_CHANGED => "written".to_owned(),
        EventType::NODE_CHILDREN_CHANGED => "children".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A difference in a copy, in the words of a watch: of one node alone, its children are told of as such.
fn difference(args: &WatchArgs, event: CacheEvent) -> Option<Line> {
    let is_told = |node: &CachedNode| args.recursive || *node.path == *args.path;
    let of = |what, node: &CachedNode, zxid| match is_told(node) {
        true => Line::at(what, &node.path, zxid),
        false => Line::at("children", &args.path, zxid),
    };
    match event {
        CacheEvent::Created(node) => Some(of("created", &node, Some(node.stat.czxid.0))),
        CacheEvent::Changed { new, .. } if is_told(&new) => {
            Some(of("written", &new, Some(new.stat.mzxid.0)))
        }
        CacheEvent::Changed { .. } => None,
        CacheEvent::Deleted(node) => Some(of("deleted", &node, None)),
        CacheEvent::Loaded => Some(Line::remark(RECONNECTED)),
        _ => Some(Line::remark(LAGGED)),
    }
}

fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
