//! `zk get`: a node's data.

use serde::Serialize;

use crate::{
    args::{CommonArgs, GetArgs},
    exit::{Exit, Failure},
    render::{self, Data, NodeReport},
    shared::Shared,
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    node: NodeReport<'a>,
    #[serde(flatten)]
    data: Data,
}

pub(crate) async fn run(args: GetArgs) -> Result<Exit, Failure> {
    let GetArgs { common: CommonArgs { connect, output }, path } = &args;
    let (data, stat) = connect
        .with_session(|client| async move { client.get(path).await.map_err(Failure::read(path)) })
        .await?;
    if output.json {
        let report = Report { node: NodeReport::new(path, &stat), data: Data::from(&*data) };
        render::json(&report)?;
    } else {
        let mut data = data.to_vec();
        // Behind it comes a prompt, or the answer to the next line of a script.
        let is_followed = render::to_terminal() || Shared::current().is_some();
        if is_followed && !data.is_empty() && !data.ends_with(b"\n") {
            data.push(b'\n');
        }
        render::bytes(&data)?;
    }
    Ok(Exit::Done)
}
