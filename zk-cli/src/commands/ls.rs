//! `zk ls`: a node's children.

use serde::Serialize;
use zk_client::Stat;

use crate::{
    args::{CommonArgs, LsArgs},
    exit::{Exit, Failure},
    render::{self, Lean, NodeReport, Table, printable},
    tree::{self, Below},
};

/// With `-R` the nodes are descendants, and their names are paths.
#[derive(Debug, Serialize)]
struct Report<'a, T> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    descendants: Option<T>,
}

impl<'a, T> Report<'a, T> {
    fn new(args: &'a LsArgs, nodes: T) -> Self {
        let (children, descendants) =
            if args.recursive { (None, Some(nodes)) } else { (Some(nodes), None) };
        Self { path: &args.path, children, descendants }
    }
}

pub(crate) async fn run(args: LsArgs) -> Result<Exit, Failure> {
    let LsArgs { common: CommonArgs { connect, output }, long, recursive, path } = &args;
    let (names, stats, hidden) = connect
        .with_session(|client| async move {
            let (names, mut hidden) = if *recursive {
                let Below { paths, hidden } = tree::below(&client, path).await?;
                (paths, hidden)
            } else {
                let (mut names, _) = client.children(path).await.map_err(Failure::read(path))?;
                names.sort();
                (names, Vec::new())
            };
            if *long {
                // Those that have a path are below no other.
                let above = if *recursive { None } else { Some(&**path) };
                let (listed, unknown) = tree::stats(&client, above, names).await?;
                let (names, stats) = listed.into_iter().unzip();
                tree::hide(&mut hidden, unknown);
                Ok((names, stats, hidden))
            } else {
                Ok((names, Vec::new(), hidden))
            }
        })
        .await?;
    match (output.json, long) {
        (false, false) => render::bytes(lines(&names).as_bytes())?,
        (false, true) => render::bytes(table(&names, &stats).as_bytes())?,
        (true, false) => render::json(&Report::new(&args, &names))?,
        (true, true) => {
            let children = names.iter().zip(&stats).map(|(name, stat)| NodeReport::new(name, stat));
            render::json(&Report::new(&args, children.collect::<Vec<_>>()))?;
        }
    }
    Ok(tree::report_hidden(&hidden))
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
