//! `zk ephemerals`: ephemeral nodes, and whose they are.

use serde::Serialize;
use zk_client::SessionId;

use crate::{
    args::{CommonArgs, EphemeralsArgs},
    exit::{Exit, Failure},
    render::{self, Lean, Table, printable},
    tree::{self, Below},
};

#[derive(Debug, Serialize)]
struct Report<'a> {
    path: &'a str,
    ephemerals: Vec<Ephemeral>,
}

#[derive(Debug, Serialize)]
struct Ephemeral {
    /// Hexadecimal, as servers print it.
    session: String,
    created_ms: i64,
    path: String,
}

pub(crate) async fn run(args: EphemeralsArgs) -> Result<Exit, Failure> {
    let EphemeralsArgs { common: CommonArgs { connect, output }, session, path } = &args;
    let (nodes, hidden) = connect
        .with_session(|client| async move {
            let Below { paths, mut hidden } = tree::below(&client, path).await?;
            let (nodes, unknown) = tree::stats(&client, None, paths).await?;
            tree::hide(&mut hidden, unknown);
            Ok((nodes, hidden))
        })
        .await?;
    let asked_for = |owner: SessionId| match *session {
        Some(session) => owner == session,
        None => owner != SessionId(0),
    };
    let ephemerals: Vec<_> = nodes
        .into_iter()
        .filter(|(_, stat)| asked_for(stat.ephemeral_owner))
        .map(|(path, stat)| Ephemeral {
            session: stat.ephemeral_owner.to_string(),
            created_ms: stat.ctime,
            path,
        })
        .collect();
    if output.json {
        render::json(&Report { path, ephemerals })?;
    } else {
        render::bytes(table(&ephemerals).as_bytes())?;
    }
    Ok(tree::report_hidden(&hidden))
}

fn table(ephemerals: &[Ephemeral]) -> String {
    let mut table =
        Table::new([("SESSION", Lean::Left), ("CREATED", Lean::Left), ("PATH", Lean::Left)]);
    for Ephemeral { session, created_ms, path } in ephemerals {
        table.row([session.clone(), render::moment(*created_ms), printable(path)]);
    }
    table.text()
}
