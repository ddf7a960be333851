//! `zk acl`: who may do what with a node.

use serde::Serialize;

use crate::{
    acl::{list, texts},
    args::{AclArgs, CommonArgs},
    exit::{Exit, Failure},
    render::{self, NodeReport, printable},
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    node: NodeReport<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acl: Option<Vec<String>>,
}

pub(crate) async fn run(args: AclArgs) -> Result<Exit, Failure> {
    let AclArgs { common: CommonArgs { connect, output }, version, path, entries } = &args;
    let (stat, acl) = connect
        .with_session(|client| async move {
            if entries.is_empty() {
                let (acl, stat) = client.acl(path).await.map_err(Failure::read(path))?;
                return Ok((stat, Some(texts(&acl))));
            }
            let set = client.set_acl(path, &list(entries));
            let set = match *version {
                Some(version) => set.version(version),
                None => set,
            };
            Ok((set.await.map_err(Failure::write(path))?, None))
        })
        .await?;
    if output.json {
        render::json(&Report { node: NodeReport::new(path, &stat), acl })?;
    } else {
        let lines = acl.into_iter().flatten().map(|entry| printable(&entry) + "\n");
        render::bytes(lines.collect::<String>().as_bytes())?;
    }
    Ok(Exit::Done)
}
