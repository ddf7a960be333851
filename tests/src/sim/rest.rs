//! A client that has finished all its work: it may ask for as much at once as ever, nothing is under way, and nothing is watched.

use zk_client::{Cause, Client, ReadError, SessionState, WatchKind};
use zk_testkit::real::Release;

use super::{
    pass,
    workload::{CACHED, ClientContext, ERRANDS},
};

/// How often it is looked whether something has come to rest.
const LOOKS: u64 = 10;

/// Milliseconds between two looks.
const PAUSE: u64 = 500;

/// Requests at once, at most.
const AT_ONCE_MAX: usize = 300;

/// All bytes of a read of the nodes above all errands.
const LEN_READ: usize = 32;

/// What a look has shown.
enum Look {
    AsItShould,
    Otherwise(String),
    /// The connection is another one, or there is none.
    Unclear,
}

/// What is looked at.
#[derive(Clone, Copy)]
enum At {
    Room,
    UnderWay,
    Watches,
}

/// Looks at a client whose work is done, with all faults over.
pub(super) async fn check(ctx: &ClientContext, client: &Client) {
    ctx.forget_cache();
    // Elsewhere each request is counted.
    if !ctx.options.calm {
        until_so("S8", ctx, client, At::Room).await;
    }
    until_so("X3", ctx, client, At::UnderWay).await;
    if ctx.options.release >= Release::V3_9 {
        until_so("X3", ctx, client, At::Watches).await;
    }
}

/// What is looked at is so in one of several looks, unless the connection does not last.
async fn until_so(rule: &'static str, ctx: &ClientContext, client: &Client, at: At) {
    let session = client.session();
    let connection = || (session.epoch(), session.state(), ctx.stalled());
    let before = connection();
    let mut wrong = String::new();
    for _ in 0..LOOKS {
        let look = match at {
            At::Room => room(ctx, client).await,
            At::UnderWay => is_quiet(client),
            At::Watches => is_unwatched(client).await,
        };
        match look {
            Look::AsItShould => return ctx.count("looks at clients at rest"),
            Look::Otherwise(text) => wrong = text,
            Look::Unclear => return,
        }
        pass(PAUSE).await;
        if connection() != before || before.1 != (SessionState::Connected { read_only: false }) {
            return;
        }
    }
    let number = ctx.number;
    ctx.check().shown_wrong(number, rule, format!("c{number} has nothing to do, and {wrong}"));
}

/// All places for requests are free.
async fn room(ctx: &ClientContext, client: &Client) -> Look {
    let Some(room) = ctx.check().room_of(ctx.number) else { return Look::Unclear };
    let most = room.requests.min(room.bytes / LEN_READ).clamp(1, AT_ONCE_MAX);
    ctx.check().begins_to_ask(ctx.number);
    let reads: Vec<_> = (0..most).map(|_| client.get(ERRANDS).submit()).collect();
    let mut refused = 0;
    for read in reads {
        match read.await {
            // What is submitted waits for no room.
            Err(ReadError::Unavailable(Cause::QueueFull)) => refused += 1,
            Err(ReadError::Unavailable(_)) => return Look::Unclear,
            _ => {}
        }
    }
    if refused > 0 {
        return Look::Otherwise(format!("is refused {refused} of {most} requests: {room:?}"));
    }
    match ctx.check().asked_at_once(ctx.number) {
        asked if asked >= most => Look::AsItShould,
        asked => Look::Otherwise(format!("asks {asked} times at once instead of {most}: {room:?}")),
    }
}

fn is_quiet(client: &Client) -> Look {
    let stats = client.stats();
    let orphans = client.session().orphans();
    if orphans > 0 {
        return Look::Otherwise(format!("has {orphans} nodes that it does not need"));
    }
    match (stats.in_flight, stats.in_flight_bytes) {
        (0, 0) => Look::AsItShould,
        (requests, bytes) => {
            Look::Otherwise(format!("has {requests} requests of {bytes} bytes under way"))
        }
    }
}

/// No server has a watch that goes on by itself: the session has them removed once nothing waits for anything there. Of
/// registers, watches that fire once are waited for up to the end.
async fn is_unwatched(client: &Client) -> Look {
    for path in CACHED.into_iter().filter(|path| !path.starts_with("/kv")) {
        for kind in [WatchKind::Node, WatchKind::Recursive] {
            match client.check_watches(path, kind).await {
                Ok(false) => {}
                Ok(true) => return Look::Otherwise(format!("{path} is watched ({kind:?})")),
                Err(_) => return Look::Unclear,
            }
        }
    }
    Look::AsItShould
}
