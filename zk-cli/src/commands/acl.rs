//! `zk acl`: who may do what with a node.

use serde::Serialize;
use zk_client::{AclList, Client, Rejection, WriteError};

use crate::{
    acl::{list, texts},
    args::{AclArgs, CommonArgs},
    exit::{Exit, Failure},
    render::{self, NodeReport, printable},
    tree,
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    node: NodeReport<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acl: Option<Vec<String>>,
}

pub(crate) async fn run(args: AclArgs) -> Result<Exit, Failure> {
    let AclArgs { common: CommonArgs { connect, output }, version, recursive, path, entries } =
        &args;
    let (stat, acl) = connect
        .with_session(|client| async move {
            if entries.is_empty() {
                let (acl, stat) = client.acl(path).await.map_err(Failure::read(path))?;
                return Ok((stat, Some(texts(&acl))));
            }
            // Before the list is another, which may keep us out.
            let below = match *recursive {
                true => tree::below(&client, path).await?.of_users(&client, path).whole()?,
                false => Vec::new(),
            };
            let set = client.set_acl(path, &list(entries));
            let set = match *version {
                Some(version) => set.version(version),
                None => set,
            };
            let stat = set.await.map_err(Failure::write(path))?;
            set_all(&client, &below, &list(entries)).await?;
            Ok((stat, None))
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

/// Sets the list of several nodes; what is gone meanwhile needs none.
async fn set_all(client: &Client, paths: &[String], acl: &AclList) -> Result<(), Failure> {
    for batch in paths.chunks(tree::BATCH) {
        let cork = client.cork();
        let asked: Vec<_> =
            batch.iter().map(|path| (path, cork.set_acl(path, acl).submit())).collect();
        drop(cork);
        for (path, answer) in asked {
            match answer.await {
                Ok(_) | Err(WriteError::Rejected(Rejection::NoNode)) => {}
                Err(error) => return Err(Failure::write(path)(error)),
            }
        }
    }
    Ok(())
}
