//! `zk watch`: what happens to a node, as it happens.

use std::time::SystemTime;

use serde::Serialize;
use zk_client::{EventType, ReadError, Rejection, Resync, WatchItem};

use crate::{
    args::WatchArgs,
    exit::{Exit, Failure},
    lock::signals::{FOR_THE_COMMAND, Signals},
    render::{self, printable},
};

/// One line of output.
#[derive(Debug, Serialize)]
struct Line {
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
    let exit = tokio::select! {
        biased;
        signal = signals.next() => Ok(Exit::Signal(signal.as_raw())),
        failed = follow(&args, &client) => failed,
    };
    // Its end changes nothing that was said.
    let _ = client.close().await;
    exit
}

async fn follow(args: &WatchArgs, client: &zk_client::Client) -> Result<Exit, Failure> {
    let path = &*args.path;
    let mut watch = client.watch(path);
    if args.recursive {
        watch = watch.recursive();
    }
    let mut stream = watch.await.map_err(|error| match error {
        ReadError::Rejected(Rejection::Unimplemented) => {
            Failure::new(Exit::No, format_args!("{path}: servers before 3.6 cannot be watched"))
        }
        error => Failure::read(path)(error),
    })?;
    say(
        args,
        &Line { at: now(), what: "watching".to_owned(), path: Some(path.to_owned()), zxid: None },
    )?;
    while let Some(item) = stream.next().await {
        say(args, &line(item))?;
    }
    let why = stream.end().map_or_else(String::new, |end| end.to_string());
    Err(Failure::new(Exit::Unavailable, format_args!("{path}: {why}")))
}

fn say(args: &WatchArgs, line: &Line) -> Result<(), Failure> {
    if args.json {
        return render::json(line);
    }
    let Line { at, what, path, zxid } = line;
    let path = path.as_deref().map_or_else(String::new, |path| format!(" {}", printable(path)));
    let zxid = zxid.map_or_else(String::new, |zxid| format!(" 0x{zxid:x}"));
    render::bytes(format!("{at} {what:<8}{path}{zxid}\n").as_bytes())
}

fn line(item: WatchItem) -> Line {
    let (what, event) = match item {
        WatchItem::Event(event) => (word(event.kind), Some(event)),
        WatchItem::Resync(Resync::Reconnected) => {
            ("reconnected, events may be missing".to_owned(), None)
        }
        _ => ("too much at once, events are missing".to_owned(), None),
    };
    let zxid = event.as_ref().and_then(|event| event.zxid).map(|zxid| zxid.0);
    Line { at: now(), what, path: event.map(|event| event.path), zxid }
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

fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
