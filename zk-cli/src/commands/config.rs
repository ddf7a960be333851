//! `zk config`: the ensemble's members.

use serde::Serialize;
use zk_client::{EnsembleConfig, ReadError, Rejection};

use crate::{
    args::{CommonArgs, OutputArgs},
    exit::{Exit, Failure},
    render::{self, Lean, Table, printable},
};

/// Where servers keep it.
pub(crate) const NODE: &str = "/zookeeper/config";

#[derive(Debug, Serialize)]
struct Report {
    /// Of a standalone server `None`.
    version: Option<i64>,
    members: Vec<EnsembleMember>,
}

#[derive(Debug, Serialize)]
struct EnsembleMember {
    id: i64,
    votes: bool,
    client_addr: Option<String>,
    spec: String,
}

pub(crate) async fn run(args: CommonArgs) -> Result<Exit, Failure> {
    let CommonArgs { connect, output } = &args;
    let (config, _) = connect
        .with_session(|client| async move {
            client.config().await.map_err(|error| match error {
                ReadError::Rejected(Rejection::NoNode) => {
                    let why = "the servers keep no configuration: they are older than 3.5";
                    Failure::new(Exit::No, why).next("zk health prints the servers' releases")
                }
                error => Failure::read(NODE)(error),
            })
        })
        .await?;
    print(&config, *output)?;
    Ok(Exit::Done)
}

/// Prints a configuration.
pub(crate) fn print(config: &EnsembleConfig, output: OutputArgs) -> Result<(), Failure> {
    let member = |it: &zk_client::EnsembleMember| EnsembleMember {
        id: it.id,
        votes: it.votes,
        client_addr: it.client_addr.clone(),
        spec: it.spec.clone(),
    };
    let report = Report {
        version: config.version.map(|version| version.0),
        members: config.members.iter().map(member).collect(),
    };
    if output.json {
        return render::json(&report);
    }
    let version = report.version.map_or_else(
        || "a standalone server: no members\n".to_owned(),
        |version| format!("version 0x{version:x}\n"),
    );
    render::bytes((table(&report) + &version).as_bytes())
}

fn table(report: &Report) -> String {
    let mut table = Table::new([
        ("ID", Lean::Right),
        ("ROLE", Lean::Left),
        ("CLIENTS", Lean::Left),
        ("ADDRESSES", Lean::Left),
    ]);
    for EnsembleMember { id, votes, client_addr, spec } in &report.members {
        table.row([
            id.to_string(),
            if *votes { "votes" } else { "observes" }.to_owned(),
            client_addr.as_deref().map_or_else(|| "-".to_owned(), printable),
            printable(spec),
        ]);
    }
    table.text()
}
