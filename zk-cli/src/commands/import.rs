//! `zk import`: nodes from a file.

use zk_client::{
    AclList, Client, Create, Rejection, WriteError,
    path::{PathError, ZkPath},
};

use crate::{
    acl,
    args::ImportArgs,
    commands::{create_with_parents, text, with_acl},
    dump::{BATCH, Node, absolute},
    exit::{Exit, Failure, above},
    render,
};

/// A node, ready to be created.
#[derive(Debug)]
struct Wanted {
    path: ZkPath,
    data: Vec<u8>,
    acl: Option<AclList>,
}

#[derive(Debug, Default)]
struct Done {
    created: usize,
    written: usize,
}

pub(crate) async fn run(args: ImportArgs) -> Result<Exit, Failure> {
    let name = args.file.to_string_lossy().into_owned();
    let text = text(&args.file).map_err(Failure::local(&name))?;
    let wanted = parse(&args.path, &name, &text)?;
    let (args, wanted) = (&args, &wanted);
    let Done { created, written } = args
        .connect
        .with_session(|client| async move { import(args, &client, wanted).await })
        .await?;
    render::complain(&format_args!("{created} nodes created, {written} written"));
    Ok(Exit::Done)
}

/// All of it, before anything is written.
fn parse(top: &str, name: &str, text: &str) -> Result<Vec<Wanted>, Failure> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let wrong = |why: &dyn std::fmt::Display| {
                Failure::new(Exit::Usage, format_args!("{name}:{}: {why}", index + 1))
            };
            let node: Node = serde_json::from_str(line).map_err(|error| wrong(&error))?;
            let entries = node.acl.as_ref().map(|acl| {
                acl.iter().map(|entry| acl::stored(entry)).collect::<Result<Vec<_>, _>>()
            });
            let entries = entries.transpose().map_err(|error| wrong(&error))?;
            let path: ZkPath =
                absolute(top, &node.path).parse().map_err(|error: PathError| wrong(&error))?;
            Ok(Wanted {
                path,
                data: node.data.bytes().map_err(|error| wrong(&error))?,
                acl: entries.map(|entries| acl::list(&entries)),
            })
        })
        .collect()
}

async fn import(args: &ImportArgs, client: &Client, wanted: &[Wanted]) -> Result<Done, Failure> {
    let top = &*args.path;
    let bar = render::progress(wanted.len());
    let mut done = Done::default();
    for batch in wanted.chunks(BATCH) {
        let cork = client.cork();
        let asked: Vec<_> = batch.iter().map(|node| (node, create(&cork, node).submit())).collect();
        drop(cork);
        for (node, created) in asked {
            let created = match created.await {
                // The node above may have been asked for again, and so behind this one.
                Err(WriteError::Rejected(Rejection::NoNode)) => {
                    if *node.path == *top {
                        let again = client.create(&node.path, &node.data);
                        create_with_parents(client, (top, above(top)), again, node.acl.as_ref())
                            .await?
                    } else {
                        create(client, node).await
                    }
                }
                created => created,
            };
            match created {
                Ok(_) => done.created += 1,
                // The root of all is always there, and what is exported begins with it.
                Err(WriteError::Rejected(Rejection::NodeExists))
                    if args.overwrite || *client.absolute(&node.path) == *"/" =>
                {
                    overwrite(client, node).await?;
                    done.written += 1;
                }
                Err(error @ WriteError::Rejected(Rejection::NodeExists)) => {
                    let next = "--overwrite replaces the data of what is there";
                    return Err(Failure::write(&node.path)(error).next(next));
                }
                Err(WriteError::Rejected(Rejection::NoNode)) => {
                    return Err(Failure::no_parent(&node.path));
                }
                Err(error) => return Err(Failure::write(&node.path)(error)),
            }
        }
        if let Some(bar) = &bar {
            bar.inc(batch.len() as u64);
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(done)
}

fn create<'a>(client: &'a Client, node: &'a Wanted) -> Create<'a> {
    with_acl(client.create(&node.path, &node.data), node.acl.as_ref())
}

async fn overwrite(client: &Client, node: &Wanted) -> Result<(), Failure> {
    client.set(&node.path, &node.data).await.map_err(Failure::write(&node.path))?;
    if let Some(acl) = &node.acl {
        client.set_acl(&node.path, acl).await.map_err(Failure::write(&node.path))?;
    }
    Ok(())
}
