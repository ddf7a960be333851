//! `zk delete`: deletes a node.

use serde::Serialize;

use crate::{
    args::{CommonArgs, DeleteArgs},
    exit::{Exit, Failure},
    render,
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    deleted: &'a str,
}

pub(crate) async fn run(args: DeleteArgs) -> Result<Exit, Failure> {
    let DeleteArgs { common: CommonArgs { connect, output }, version, path } = &args;
    connect
        .with_session(|client| async move {
            let delete = client.delete(path);
            let delete = match *version {
                Some(version) => delete.version(version),
                None => delete,
            };
            delete.await.map_err(Failure::write(path))
        })
        .await?;
    if output.json {
        render::json(&Report { deleted: path })?;
    }
    Ok(Exit::Done)
}
