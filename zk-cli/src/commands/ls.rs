//! `zk ls`: a node's children.

use serde::Serialize;
use zk_client::{Client, ReadError, Rejection, Stat, join};

use crate::{
    args::{CommonArgs, LsArgs},
    exit::{Exit, Failure},
    render::{self, Lean, NodeReport, Table, printable},
};

/// How many children are asked about in one go: well below what a client lets wait at once.
const BATCH: usize = 1_000;

#[derive(Debug, Serialize)]
struct Names<'a> {
    path: &'a str,
    children: &'a [String],
}

#[derive(Debug, Serialize)]
struct Nodes<'a> {
    path: &'a str,
    children: Vec<NodeReport<'a>>,
}

pub(crate) async fn run(args: LsArgs) -> Result<Exit, Failure> {
    let LsArgs { common: CommonArgs { connect, output }, long, path } = &args;
    let (names, stats) = connect
        .with_session(|client| async move {
            let (mut names, _) = client.children(path).await.map_err(Failure::read(path))?;
            names.sort();
            if *long {
                stats(&client, path, names).await.map(|listed| listed.into_iter().unzip())
            } else {
                Ok((names, Vec::new()))
            }
        })
        .await?;
    match (output.json, long) {
        (false, false) => render::bytes(lines(&names).as_bytes())?,
        (false, true) => render::bytes(table(&names, &stats).as_bytes())?,
        (true, false) => render::json(&Names { path, children: &names })?,
        (true, true) => {
            let children = names.iter().zip(&stats).map(|(name, stat)| NodeReport::new(name, stat));
            render::json(&Nodes { path, children: children.collect() })?;
        }
    }
    Ok(Exit::Done)
}

/// What servers know of the children; those that have gone meanwhile are left out.
async fn stats(
    client: &Client,
    path: &str,
    names: Vec<String>,
) -> Result<Vec<(String, Stat)>, Failure> {
    let mut stats = Vec::with_capacity(names.len());
    for batch in names.chunks(BATCH) {
        let cork = client.cork();
        let asked: Vec<_> =
            batch.iter().map(|name| (name, cork.exists(&join(path, name)).submit())).collect();
        drop(cork);
        for (name, answer) in asked {
            match answer.await {
                Ok(Some(stat)) => stats.push((name.clone(), stat)),
                Ok(None) | Err(ReadError::Rejected(Rejection::NoNode)) => {}
                Err(error) => return Err(Failure::read(&join(path, name))(error)),
            }
        }
    }
    Ok(stats)
}

fn lines(names: &[String]) -> String {
    names.iter().map(|name| printable(name) + "\n").collect()
}

fn table(names: &[String], stats: &[Stat]) -> String {
    let mut table = Table::new([
        ("VERSION", Lean::Right),
        ("CHILDREN", Lean::Right),
        ("BYTES", Lean::Right),
        ("WRITTEN", Lean::Left),
        ("SESSION", Lean::Left),
        ("NAME", Lean::Left),
    ]);
    for (name, stat) in names.iter().zip(stats) {
        table.row([
            stat.version.to_string(),
            stat.num_children.to_string(),
            stat.data_length.to_string(),
            render::moment(stat.mtime),
            render::session(stat).unwrap_or_else(|| "-".to_owned()),
            printable(name),
        ]);
    }
    table.text()
}
