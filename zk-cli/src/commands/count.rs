//! `zk count`: how many nodes there are below a node.

use serde::Serialize;
use zk_client::{Client, ReadError, Rejection};

use crate::{
    args::{CommonArgs, CountArgs},
    exit::{Exit, Failure},
    render, tree,
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    path: &'a str,
    descendants: usize,
}

pub(crate) async fn run(args: CountArgs) -> Result<Exit, Failure> {
    let CountArgs { common: CommonArgs { connect, output }, path } = &args;
    let descendants =
        connect.with_session(|client| async move { count(&client, path).await }).await?;
    if output.json {
        render::json(&Report { path, descendants })?;
    } else {
        render::bytes(format!("{descendants}\n").as_bytes())?;
    }
    Ok(Exit::Done)
}

async fn count(client: &Client, path: &str) -> Result<usize, Failure> {
    match client.descendant_count(path).await {
        // Servers before 3.6.
        Err(ReadError::Rejected(Rejection::Unimplemented)) => {
            tree::below(client, path).await?.whole().map(|nodes| nodes.len())
        }
        counted => counted.map(|count| count as usize).map_err(Failure::read(path)),
    }
}
