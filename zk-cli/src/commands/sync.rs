//! `zk sync`: waits until the server has caught up with the leader.

use serde::Serialize;

use crate::{
    args::{CommonArgs, SyncArgs},
    exit::{Exit, Failure},
    render,
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    synced: &'a str,
}

pub(crate) async fn run(args: SyncArgs) -> Result<Exit, Failure> {
    let SyncArgs { common: CommonArgs { connect, output }, path } = &args;
    connect
        .with_session(|client| async move { client.sync(path).await.map_err(Failure::read(path)) })
        .await?;
    if output.json {
        render::json(&Report { synced: path })?;
    }
    Ok(Exit::Done)
}
