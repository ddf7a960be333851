//! `zk quota`: limits on the nodes and bytes below a node.
//!
//! Servers have no operation for it: limits are nodes beside which servers keep what is used. So they are written here as
//! `zkCli.sh` writes them.

use serde::Serialize;
use zk_client::{
    Client, CreateMode, MultiError, ReadError, Rejection, WriteError,
    path::{ancestors, join, parent},
};

use crate::{
    args::{CommonArgs, Limit, QuotaArgs},
    exit::{Exit, Failure},
    quota::{LIMITS, Numbers, ROOT, STATS},
    render::{self, Lean, Table, printable},
    tree,
};

#[derive(Debug, Serialize)]
struct Report {
    quotas: Vec<Quota>,
}

#[derive(Debug, Serialize)]
struct Quota {
    path: String,
    limits: Numbers,
    /// What servers have counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Numbers>,
}

pub(crate) async fn run(args: QuotaArgs) -> Result<Exit, Failure> {
    let CommonArgs { connect, output } = &args.common;
    if let Some(chroot) = connect.chroot()? {
        let why = format!("quota: servers keep limits outside of the chroot {chroot}");
        let next = format!("leave {chroot} out of --server, and put it in front of PATH");
        return Err(Failure::new(Exit::Usage, why).next(next));
    }
    let wanted = Numbers {
        nodes: args.nodes,
        bytes: args.bytes,
        hard_nodes: args.hard_nodes,
        hard_bytes: args.hard_bytes,
    };
    if args.path.as_deref() == Some("/") && wanted != Numbers::default() {
        // An exception ends the one that applies them.
        let why = Failure::new(Exit::Usage, "quota: servers do not survive limits of the root");
        return Err(why.next("limit the nodes below it: zk quota PATH --nodes N"));
    }
    let args = &args;
    let quotas = connect
        .with_session(|client| async move {
            let Some(path) = args.path.as_deref() else { return all(&client).await };
            if let Some(which) = args.delete {
                delete(&client, path, which).await?;
                return Ok(Vec::new());
            }
            if wanted != Numbers::default() {
                set(&client, path, wanted).await?;
            }
            let quota = quota(&client, path).await?;
            let none = || {
                let why = Failure::new(Exit::No, format_args!("{path}: it has no limits"));
                why.next(format_args!(
                    "zk quota {path} --nodes N --bytes N sets them; zk quota lists all"
                ))
            };
            Ok(vec![quota.ok_or_else(none)?])
        })
        .await?;
    if output.json {
        render::json(&Report { quotas })?;
    } else if args.delete.is_none() {
        render::bytes(table(&quotas).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// The node that limits of a path are below.
fn place(path: &str) -> String {
    format!("{ROOT}{}", path.trim_end_matches('/'))
}

/// The numbers of a node, and its version.
async fn numbers(client: &Client, node: &str) -> Result<Option<(Numbers, i32)>, Failure> {
    match client.get(node).await {
        Ok((data, stat)) => Ok(Some((Numbers::parse(&data), stat.version))),
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
        Err(error) => Err(Failure::read(node)(error)),
    }
}

async fn quota(client: &Client, path: &str) -> Result<Option<Quota>, Failure> {
    let place = place(path);
    let Some((limits, _)) = numbers(client, &join(&place, LIMITS)).await? else { return Ok(None) };
    let used = numbers(client, &join(&place, STATS)).await?.map(|(used, _)| used);
    Ok(Some(Quota { path: path.to_owned(), limits, used }))
}

async fn all(client: &Client) -> Result<Vec<Quota>, Failure> {
    let mut quotas = Vec::new();
    for path in limited(client, ROOT).await? {
        quotas.extend(quota(client, &path).await?);
    }
    Ok(quotas)
}

/// The paths with limits at or below a node of the servers' own tree.
async fn limited(client: &Client, top: &str) -> Result<Vec<String>, Failure> {
    if client.exists(top).await.map_err(Failure::read(top))?.is_none() {
        return Ok(Vec::new());
    }
    let below = tree::below(client, top).await?.whole()?;
    let limited = below.iter().filter_map(|node| {
        let path = node.strip_suffix(LIMITS)?.strip_suffix('/')?.strip_prefix(ROOT)?;
        Some(if path.is_empty() { "/".to_owned() } else { path.to_owned() })
    });
    Ok(limited.collect())
}

/// Sets limits, and leaves those that are not given as they are.
async fn set(client: &Client, path: &str, wanted: Numbers) -> Result<(), Failure> {
    let limits = join(&place(path), LIMITS);
    loop {
        // Each time that it is not written another client has, so that this comes to an end.
        let is_written = match numbers(client, &limits).await? {
            Some((old, version)) => write_over(client, &limits, old.with(wanted), version).await?,
            None => begin(client, path, wanted).await?,
        };
        if is_written {
            return Ok(());
        }
    }
}

/// Writes limits in place of those of this version. Returns whether they were the last ones.
async fn write_over(
    client: &Client,
    limits: &str,
    new: Numbers,
    version: i32,
) -> Result<bool, Failure> {
    match client.set(limits, new.text().as_bytes()).version(version).await {
        Ok(_) => Ok(true),
        Err(WriteError::Rejected(Rejection::BadVersion | Rejection::NoNode)) => Ok(false),
        Err(error) => Err(Failure::write(limits)(error)),
    }
}

/// Sets limits where there are none. Returns whether there still were none.
async fn begin(client: &Client, path: &str, wanted: Numbers) -> Result<bool, Failure> {
    let place = place(path);
    let (limits, stats) = (join(&place, LIMITS), join(&place, STATS));
    if client.exists(path).await.map_err(Failure::read(path))?.is_none() {
        return Err(Failure::rejected(path, Rejection::NoNode));
    }
    refuse_nested(client, path).await?;
    match client.create(&place, b"").parents().await {
        Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => {}
        Err(error) => return Err(Failure::write(&place)(error)),
    }
    // Servers count when they see the second one.
    let nothing = Numbers { nodes: Some(0), bytes: Some(0), ..Numbers::default() };
    let (wanted, nothing) = (wanted.text(), nothing.text());
    let created = client.multi().create(&limits, wanted.as_bytes(), CreateMode::Persistent).create(
        &stats,
        nothing.as_bytes(),
        CreateMode::Persistent,
    );
    let created = created.await.map_err(Failure::write(&limits))?;
    match created {
        Ok(_) => Ok(true),
        Err(MultiError { rejection: Rejection::NodeExists, index: 0, .. }) => Ok(false),
        // Counts without limits are what a deletion has left that did not come to its end.
        Err(MultiError { rejection: Rejection::NodeExists, .. }) => {
            deleted(client, &stats).await.map(|()| false)
        }
        Err(MultiError { rejection, .. }) => Err(Failure::rejected(&limits, rejection)),
    }
}

/// Servers count a node for the nearest limits above it only.
async fn refuse_nested(client: &Client, path: &str) -> Result<(), Failure> {
    let mut others = limited(client, &place(path)).await?;
    for above in ancestors(path).skip(1) {
        let limits = join(&place(above), LIMITS);
        if client.exists(&limits).await.map_err(Failure::read(&limits))?.is_some() {
            others.push(above.to_owned());
        }
    }
    match others.first() {
        None => Ok(()),
        Some(other) => {
            let why = format!("{path}: {other} has limits, and neither may be above the other");
            let next = format!("zk quota {other} shows them, with --delete it deletes them");
            Err(Failure::new(Exit::No, why).next(next))
        }
    }
}

async fn delete(client: &Client, path: &str, which: Limit) -> Result<(), Failure> {
    let place = place(path);
    let (limits, stats) = (join(&place, LIMITS), join(&place, STATS));
    loop {
        let Some((old, version)) = numbers(client, &limits).await? else {
            let why = Failure::new(Exit::No, format_args!("{path}: it has no limits"));
            return Err(why.next("zk quota lists all"));
        };
        let left = old.without(which);
        if left == Numbers::default() {
            break;
        }
        if write_over(client, &limits, left, version).await? {
            return Ok(());
        }
    }
    for node in [&limits, &stats] {
        deleted(client, node).await?;
    }
    // What was only there for them. It does not matter if it stays.
    let mut level = Some(&*place);
    while let Some(node) = level.filter(|node| *node != ROOT) {
        if client.delete(node).await.is_err() {
            break;
        }
        level = parent(node);
    }
    Ok(())
}

async fn deleted(client: &Client, node: &str) -> Result<(), Failure> {
    match client.delete(node).await {
        Ok(()) | Err(WriteError::Rejected(Rejection::NoNode)) => Ok(()),
        Err(error) => Err(Failure::write(node)(error)),
    }
}

fn table(quotas: &[Quota]) -> String {
    let mut table = Table::new([
        ("NODES", Lean::Right),
        ("LIMIT", Lean::Right),
        ("HARD", Lean::Right),
        ("BYTES", Lean::Right),
        ("LIMIT", Lean::Right),
        ("HARD", Lean::Right),
        ("PATH", Lean::Left),
    ]);
    let cell = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
    for Quota { path, limits, used } in quotas {
        let used = used.unwrap_or_default();
        table.row([
            cell(used.nodes),
            cell(limits.nodes),
            cell(limits.hard_nodes),
            cell(used.bytes),
            cell(limits.bytes),
            cell(limits.hard_bytes),
            printable(path),
        ]);
    }
    table.text()
}
