//! `zk set`: replaces a node's data.

use zk_client::{Rejection, WriteError};

use crate::{
    args::{CommonArgs, SetArgs},
    commands::data,
    exit::{Exit, Failure},
    render::{self, NodeReport},
};

pub(crate) async fn run(args: SetArgs) -> Result<Exit, Failure> {
    let SetArgs { common: CommonArgs { connect, output }, version, path, data: argument, file } =
        args;
    // Before there is a session: standard input may take its time.
    let data = data(argument, file.as_deref())?.unwrap_or_default();
    let (path, data) = (&*path, &*data);
    let stat = connect
        .with_session(|client| async move {
            let set = client.set(path, data);
            let set = match version {
                Some(version) => set.version(version),
                None => set,
            };
            set.await.map_err(|error| match error {
                WriteError::Rejected(Rejection::NoNode) if path != "/" => {
                    Failure::rejected(path, Rejection::NoNode)
                        .next(format_args!("zk create -p {path} DATA creates it"))
                }
                error => Failure::write(path)(error),
            })
        })
        .await?;
    if output.json {
        render::json(&NodeReport::new(path, &stat))?;
    }
    Ok(Exit::Done)
}
