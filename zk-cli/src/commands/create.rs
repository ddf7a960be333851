//! `zk create`: creates a node, and what is missing above it if wished.

use std::{iter::successors, time::Duration};

use zk_client::{Client, CreateMode, Created, Rejection, WriteError, parent};

use crate::{
    args::CreateArgs,
    commands::data,
    exit::{Exit, Failure},
    render::{self, NodeReport},
};

pub(crate) async fn run(args: CreateArgs) -> Result<Exit, Failure> {
    let mode = mode(&args);
    let CreateArgs { connect, output, parents, path, data: argument, .. } = args;
    // Before there is a session: standard input may take its time.
    let data = data(argument)?;
    let (path, data) = (&*path, &*data);
    let Created { path, stat, .. } = connect
        .with_session(|client| async move {
            if parents {
                create_parents(&client, path).await?;
            }
            match client.create(path, data).mode(mode).await {
                Err(WriteError::Rejected(Rejection::NoNode)) => Err(Failure::new(
                    Exit::No,
                    format_args!("{path}: its parent does not exist (--parents creates it)"),
                )),
                created => created.map_err(Failure::write(path)),
            }
        })
        .await?;
    if output.json {
        render::json(&NodeReport::new(&path, &stat))?;
    } else {
        render::bytes(format!("{path}\n").as_bytes())?;
    }
    Ok(Exit::Done)
}

fn mode(args: &CreateArgs) -> CreateMode {
    const NEVER: Option<Duration> = None;
    match (args.container, args.ttl, args.sequential) {
        (true, ..) => CreateMode::Container,
        (false, NEVER, false) => CreateMode::Persistent,
        (false, NEVER, true) => CreateMode::PersistentSequential,
        (false, Some(ttl), false) => CreateMode::PersistentTtl(ttl),
        (false, Some(ttl), true) => CreateMode::PersistentSequentialTtl(ttl),
    }
}

/// Creates the levels above a node, from the top, in one round trip. They are persistent, whatever the node
/// is to be: a node with time to live is no reason for its parents to vanish.
async fn create_parents(client: &Client, path: &str) -> Result<(), Failure> {
    let mut levels: Vec<&str> = successors(parent(path), |path| parent(path)).collect();
    levels.retain(|level| *level != "/");
    let cork = client.cork();
    let creating: Vec<_> =
        levels.into_iter().rev().map(|level| (level, cork.create(level, b"").submit())).collect();
    drop(cork);
    for (level, created) in creating {
        match created.await {
            Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => {}
            Err(error) => return Err(Failure::write(level)(error)),
        }
    }
    Ok(())
}
