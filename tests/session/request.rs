//! Requests as scripts write them: `get /a as=g1 resend watch=w1`.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    Acl, AclList, AddWatchMode, CreateFlags, ErrorCode, OpCode, Str,
    frame::RequestFrame,
    jute::Encode as _,
    request::{
        AddWatchRequest, CheckVersionRequest, Create2Request, CreateRequest, DeleteRequest,
        ExistsRequest, GetChildren2Request, GetDataRequest, MultiHeader, Request, SetDataRequest,
        SyncRequest,
    },
    session::{OnLoss, Outgoing, Patience, WatchBy, WatchIntent},
};

use crate::session::command::{Args, Error, int};

fn frame<R: Request>(request: &R) -> RequestFrame {
    RequestFrame::of(request)
}

/// `OPERATION PATH [watch=WATCHER] [as=TOKEN] [mismatched] [resend] [fail-fast] [patient] [data=TEXT] [size=BYTES] [version=N] [FLAGS]`
///
/// The token is the operation with its path unless it is given.
pub(crate) fn outgoing(args: &mut Args<'_>) -> Result<Outgoing<String, String>, Error> {
    let on_loss = if args.flag("resend") { OnLoss::Resend } else { OnLoss::Report };
    let patience = match (args.flag("fail-fast"), args.flag("patient")) {
        (true, false) => Patience::FailFast,
        (false, true) => Patience::Throttling,
        (false, false) => Patience::Connections,
        (true, true) => return Err("either fail-fast or patient".into()),
    };
    let op = args.word("the operation")?;
    let path = args.word("the path")?;
    let token = args.option("as").map_or_else(|| format!("{op} {path}"), String::from);
    let watcher = args.option("watch");
    let asks = watcher.is_some() != args.flag("mismatched");
    let (frame, by) = encode(op, path, asks, args)?;
    let watch = match (watcher, by) {
        (None, _) => None,
        (Some(_), None) => return Err(format!("{op} arms no watch")),
        (Some(watcher), Some(by)) => {
            Some(Box::new(WatchIntent { path: Arc::from(path), by, watcher: watcher.into() }))
        }
    };
    Ok(Outgoing { frame, token, watch, on_loss, patience })
}

fn encode(
    op: &str,
    path: &str,
    watch: bool,
    args: &mut Args<'_>,
) -> Result<(RequestFrame, Option<WatchBy>), Error> {
    let size = usize::try_from(args.number("size")?.unwrap_or_default());
    let size = size.map_err(|error| error.to_string())?;
    let data = args.option("data").map_or_else(|| vec![b'x'; size], Vec::from);
    let version = int(args.number("version")?.unwrap_or(-1))?;
    let path = Str::from(path);
    Ok(match op {
        "get" => (frame(&GetDataRequest { path, watch }), Some(WatchBy::Data)),
        "exists" => (frame(&ExistsRequest { path, watch }), Some(WatchBy::Exists)),
        "children" => (frame(&GetChildren2Request { path, watch }), Some(WatchBy::Children)),
        "add-watch" if args.flag("recursive") => {
            let mode = AddWatchMode::PERSISTENT_RECURSIVE;
            (frame(&AddWatchRequest { path, mode }), Some(WatchBy::Recursive))
        }
        "add-watch" => {
            let mode = AddWatchMode::PERSISTENT;
            (frame(&AddWatchRequest { path, mode }), Some(WatchBy::Persistent))
        }
        "create" | "create2" => {
            let flags = CreateFlags::KNOWN.iter().find(|flags| args.flag(&flags.to_string()));
            let flags = flags.copied().unwrap_or(CreateFlags::PERSISTENT);
            let acl = AclList::from_iter([Acl::open_unsafe()]);
            let create = CreateRequest { path, data: Some(&data), acl, flags };
            let create =
                if op == "create" { frame(&create) } else { frame(&Create2Request(create)) };
            (create, None)
        }
        "set" => (frame(&SetDataRequest { path, data: Some(&data), version }), None),
        "delete" => (frame(&DeleteRequest { path, version }), None),
        "sync" => (frame(&SyncRequest { path }), None),
        "multi" => {
            let mut body = BytesMut::new();
            MultiHeader { op: OpCode::CHECK, done: false, err: ErrorCode(-1) }.encode(&mut body);
            CheckVersionRequest { path, version }.encode(&mut body);
            MultiHeader::END.encode(&mut body);
            (RequestFrame::from_body(OpCode::MULTI, body.freeze()), None)
        }
        "number" => {
            let number = int(args.number("op")?.ok_or("which one?")?)?;
            (RequestFrame::from_body(OpCode(number), Bytes::new()), None)
        }
        // A number that no server knows.
        "unheard-of" => (RequestFrame::from_body(OpCode(4711), Bytes::new()), None),
        _ => return Err(format!("no operation {op}")),
    })
}

/// The request that arms a watch of a kind as [`WatchBy`] has them, by its script name.
pub(crate) fn watch_by(kind: &str) -> Result<WatchBy, Error> {
    match kind {
        "data" => Ok(WatchBy::Data),
        "exists" => Ok(WatchBy::Exists),
        "children" => Ok(WatchBy::Children),
        "persistent" => Ok(WatchBy::Persistent),
        "recursive" => Ok(WatchBy::Recursive),
        _ => Err(format!("no watch {kind}")),
    }
}
