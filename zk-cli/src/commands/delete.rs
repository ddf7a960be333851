//! `zk delete`: deletes a node.

use serde::Serialize;
use zk_client::{Client, Error, Rejection};

use crate::{
    args::{CommonArgs, DeleteArgs},
    exit::{Exit, Failure},
    render,
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    deleted: &'a str,
    /// How many nodes, of more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<usize>,
}

pub(crate) async fn run(args: DeleteArgs) -> Result<Exit, Failure> {
    let DeleteArgs { common: CommonArgs { connect, output }, recursive, version, path } = &args;
    let nodes = connect
        .with_session(|client| async move {
            if *recursive {
                return delete_all(&client, path).await.map(Some);
            }
            let delete = client.delete(path);
            let delete = match *version {
                Some(version) => delete.version(version),
                None => delete,
            };
            delete.await.map_err(Failure::write(path)).map(|()| None)
        })
        .await?;
    if output.json {
        render::json(&Report { deleted: path, nodes })?;
    }
    Ok(Exit::Done)
}

async fn delete_all(client: &Client, path: &str) -> Result<usize, Failure> {
    match client.delete_recursive(path).await {
        Ok(0) => Err(Failure::rejected(path, Rejection::NoNode)),
        Ok(nodes) => Ok(nodes),
        Err(Error::DeleteRecursive { deleted, path, error }) => {
            let reason = match *error {
                Error::Read(error) => Failure::read(&path)(error),
                Error::Write(error) => Failure::write(&path)(error),
                other => Failure::new(Exit::Unavailable, other),
            };
            let before = "nodes have been deleted before";
            Err(reason.retold(|reason| format!("{reason} ({deleted} {before})")))
        }
        Err(other) => Err(Failure::new(Exit::Unavailable, other)),
    }
}
