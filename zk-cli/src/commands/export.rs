//! `zk export`: everything below a node, in a file.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use zk_client::{AclList, Client, ReadError, Rejection, SessionId};

use crate::{
    acl::{is_masked, texts},
    args::ExportArgs,
    dump::{BATCH, Node, relative},
    exit::{Exit, Failure},
    render::{self, Data},
    tree,
};

/// What is not to be found in the file.
#[derive(Debug, Default)]
struct Left {
    ephemeral: usize,
    gone: usize,
}

pub(crate) async fn run(args: ExportArgs) -> Result<Exit, Failure> {
    let args = &args;
    let exported = if args.file == Path::new("-") {
        let out = BufWriter::new(io::stdout());
        args.connect
            .with_session(|client| async move { export(args, &client, out, "-").await })
            .await?
    } else {
        match to_file(args).await? {
            Ok(exported) => exported,
            Err(told) => return Ok(told),
        }
    };
    let Some((nodes, left)) = exported else { return Ok(Exit::Done) };
    let Left { ephemeral, gone } = left;
    render::complain(&format_args!(
        "{nodes} nodes exported, {ephemeral} ephemeral ones left out, {gone} gone meanwhile"
    ));
    Ok(Exit::Done)
}

/// Exports to a file, all or nothing.
async fn to_file(args: &ExportArgs) -> Result<Result<Option<(usize, Left)>, Exit>, Failure> {
    let name = &*args.file.to_string_lossy();
    let out = File::create_new(&args.file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::local(name)(error).next("it is not replaced: name another file, or delete it")
        }
        _ => Failure::local(name)(error),
    })?;
    let out = BufWriter::new(out);
    let mut unfinished = Unfinished(Some(&args.file));
    let exported = args
        .connect
        .until_told(|client| async move { export(args, &client, out, name).await })
        .await?;
    if exported.is_ok() {
        unfinished.0 = None;
    }
    Ok(exported)
}

/// A file that is being written, which goes with this: it could be taken for all of the tree, and would be in the way of
/// another try.
struct Unfinished<'a>(Option<&'a Path>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // What has failed is said already, and this would be for the same reason.
        let _ = self.0.map(fs::remove_file);
    }
}

/// `None`: the reader has seen enough and gone (`zk export / | head`).
async fn export(
    args: &ExportArgs,
    client: &Client,
    mut out: impl Write,
    name: &str,
) -> Result<Option<(usize, Left)>, Failure> {
    let top = &*args.path;
    let mut paths = vec![top.to_owned()];
    // What servers keep of themselves is not to be imported.
    paths.extend(tree::below(client, top).await?.of_users(client, top).whole()?);
    let bar = render::progress(paths.len());
    let (mut nodes, mut left) = (0, Left::default());
    for batch in paths.chunks(BATCH) {
        let cork = client.cork();
        let asked: Vec<_> = batch
            .iter()
            .map(|path| (path, cork.get(path).submit(), args.acl.then(|| cork.acl(path).submit())))
            .collect();
        drop(cork);
        for (path, data, acl) in asked {
            let (data, stat) = match data.await {
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    left.gone += 1;
                    continue;
                }
                data => data.map_err(Failure::read(path))?,
            };
            let acl = match acl {
                None => None,
                Some(acl) => match acl.await {
                    Err(ReadError::Rejected(Rejection::NoNode)) => {
                        left.gone += 1;
                        continue;
                    }
                    acl => Some(entries(path, &acl.map_err(Failure::read(path))?.0)?),
                },
            };
            if stat.ephemeral_owner != SessionId(0) {
                left.ephemeral += 1;
                continue;
            }
            let path = relative(top, path).to_owned();
            let node = Node { path, data: Data::from(&*data), acl };
            match write(&mut out, &node) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
                written => written.map_err(Failure::local(name))?,
            }
            nodes += 1;
        }
        if let Some(bar) = &bar {
            bar.inc(batch.len() as u64);
        }
    }
    match out.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
        flushed => flushed.map_err(Failure::local(name))?,
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(Some((nodes, left)))
}

/// The entries of a node's list, with the hashes that make them somebody's.
fn entries(path: &str, list: &AclList) -> Result<Vec<String>, Failure> {
    if is_masked(list) {
        let hidden = Failure::rejected(path, Rejection::NoAuth);
        return Err(hidden
            .retold(|_| format!("{path}: servers tell its digests only to its administrators")));
    }
    Ok(texts(list))
}

fn write(out: &mut impl Write, node: &Node) -> io::Result<()> {
    serde_json::to_writer(&mut *out, node)?;
    out.write_all(b"\n")
}
