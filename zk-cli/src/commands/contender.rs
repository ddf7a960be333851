//! `zk revoke` and `zk evict`: asking a holder for a lock, and taking it away.

use serde::Serialize;
use zk_locks::{Contender, Queue};

use crate::{
    args::{CommonArgs, ContenderArgs},
    exit::{Exit, Failure},
    found::{self, Found},
    render::{self, printable},
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    path: &'a str,
    token: i64,
    /// What it says of itself.
    description: Option<&'a str>,
    /// Whether it was still there.
    done: bool,
}

pub(crate) async fn revoke(args: ContenderArgs) -> Result<Exit, Failure> {
    let done = act(&args, true, async |queue: &Queue, contender: &Contender| {
        queue.revoke(contender).await.map_err(Failure::write(&args.path))
    })
    .await?;
    let (path, token) = (&args.path, args.token);
    report(&args, done, |whom| {
        format!(
            "{whom} was asked for {path}\n    zk holders {path} shows whether it gives it back; zk evict {path} {token} takes it away\n"
        )
    })
}

pub(crate) async fn evict(args: ContenderArgs) -> Result<Exit, Failure> {
    let done = act(&args, false, async |queue: &Queue, contender: &Contender| {
        queue.evict(contender).await.map_err(Failure::write(&args.path))
    })
    .await?;
    report(&args, done, |whom| format!("{whom} was evicted from {}\n", args.path))
}

/// Does it to the contender with that token, which may have several nodes: permits that were taken together. Returns what
/// that said of itself; `None` if it is not there.
async fn act(
    args: &ContenderArgs,
    is_to_hear: bool,
    act: impl AsyncFn(&Queue, &Contender) -> Result<bool, Failure>,
) -> Result<Option<String>, Failure> {
    let ContenderArgs { path, token, common: CommonArgs { connect, .. } } = args;
    connect
        .with_session(|client| async move {
            let mut there = found::at(&client, path).await.map_err(Failure::read(path))?;
            there.retain(|found| found.contender.token.get() == *token);
            if is_to_hear && there.iter().any(|found| !found.hears) {
                let why = format_args!("{path}: a holder of this kind cannot be asked").to_string();
                let next = format!("zk evict {path} {token} takes the lock away");
                return Err(Failure::new(Exit::No, why).next(next));
            }
            let mut whom = None;
            for Found { queue, contender, description, .. } in there {
                if act(&Queue::new(&client, &queue), &contender).await? {
                    // That of one that was asked before is the request.
                    let said = if contender.is_revoked() { String::new() } else { description };
                    whom = whom.or(Some(said));
                }
            }
            Ok(whom)
        })
        .await
}

fn report(
    args: &ContenderArgs,
    done: Option<String>,
    text: impl FnOnce(&str) -> String,
) -> Result<Exit, Failure> {
    let ContenderArgs { path, token, common: CommonArgs { output, .. } } = args;
    if output.json {
        let (description, done) = (done.as_deref(), done.is_some());
        render::json(&Report { path, token: *token, description, done })?;
        return Ok(if done { Exit::Done } else { Exit::No });
    }
    match done.as_deref() {
        Some("") => render::bytes(text(&format!("the contender with token {token}")).as_bytes()),
        Some(whom) => render::bytes(text(&printable(whom)).as_bytes()),
        None => {
            Err(Failure::new(Exit::No, format_args!("{path}: no contender with token {token}"))
                .next(format_args!("zk holders {path} lists those that are there")))
        }
    }?;
    Ok(Exit::Done)
}
