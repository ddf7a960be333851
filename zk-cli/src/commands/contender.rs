//! `zk revoke` and `zk evict`: asking a holder for a lock, and taking it away.

use serde::Serialize;
use zk_locks::{Contender, Queue};

use crate::{
    args::{CommonArgs, ContenderArgs},
    exit::{Exit, Failure},
    render,
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    path: &'a str,
    token: i64,
    /// Whether it was still there.
    done: bool,
}

pub(crate) async fn revoke(args: ContenderArgs) -> Result<Exit, Failure> {
    act(&args, async |queue: &Queue, contender: &Contender| {
        queue.revoke(contender).await.map_err(Failure::write(&args.path))
    })
    .await
}

pub(crate) async fn evict(args: ContenderArgs) -> Result<Exit, Failure> {
    act(&args, async |queue: &Queue, contender: &Contender| {
        queue.evict(contender).await.map_err(|error| match error {
            zk_client::Error::Read(error) => Failure::read(&args.path)(error),
            zk_client::Error::Write(error) => Failure::write(&args.path)(error),
            other => Failure::new(Exit::Unavailable, other),
        })
    })
    .await
}

async fn act(
    args: &ContenderArgs,
    act: impl AsyncFn(&Queue, &Contender) -> Result<bool, Failure>,
) -> Result<Exit, Failure> {
    let ContenderArgs { path, token, common: CommonArgs { connect, output } } = args;
    let done = connect
        .with_session(|client| async move {
            let queue = Queue::new(&client, path);
            let contenders = queue.contenders().await.map_err(Failure::read(path))?;
            match contenders.iter().find(|contender| contender.token.get() == *token) {
                Some(contender) => act(&queue, contender).await,
                None => Ok(false),
            }
        })
        .await?;
    if output.json {
        render::json(&Report { path, token: *token, done })?;
        return Ok(if done { Exit::Done } else { Exit::No });
    }
    match done {
        true => Ok(Exit::Done),
        false => {
            Err(Failure::new(Exit::No, format_args!("{path}: no contender with token {token}"))
                .next(format_args!("zk holders {path} lists those that are there")))
        }
    }
}
