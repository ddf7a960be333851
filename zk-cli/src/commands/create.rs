//! `zk create`: creates a node, and what is missing above it if wished.

use zk_client::{
    Cause, Client, CreateMode, Created, ReadError, Rejection, SessionEnd, Stat, WriteError,
};

use crate::{
    acl,
    args::{CommonArgs, CreateArgs},
    commands::{create_with_parents, data, with_acl},
    exit::{Exit, Failure, above},
    render::{self, NodeReport},
    shared::Shared,
};

pub(crate) async fn run(args: CreateArgs) -> Result<Exit, Failure> {
    // Before there is a session: standard input may take its time.
    let data = data(args.data.clone(), args.file.as_deref())?.unwrap_or_default();
    let CreateArgs { common: CommonArgs { connect, .. }, ephemeral, .. } = &args;
    let (args, data) = (&args, &*data);
    // That of a shell lasts as long as the shell's session.
    if *ephemeral && Shared::current().is_none() {
        let kept = connect.until_told(|client| async move { keep(args, &client, data).await });
        return kept.await.map(|ended| ended.unwrap_or_else(|told| told));
    }
    let created =
        connect.with_session(|client| async move { create(args, &client, data).await }).await?;
    print(args, &created)?;
    Ok(Exit::Done)
}

fn print(args: &CreateArgs, created: &Created) -> Result<(), Failure> {
    let Created { path, stat, .. } = created;
    if args.common.output.json {
        render::json(&NodeReport::new(path, stat))
    } else {
        render::bytes(format!("{path}\n").as_bytes())
    }
}

async fn create(args: &CreateArgs, client: &Client, data: &[u8]) -> Result<Created, Failure> {
    let mut created = create_only(args, client, data).await?;
    // Servers before 3.5 answer without metadata.
    if args.common.output.json && created.stat.ctime == 0 {
        let asked = client.exists(&created.path).await;
        let is_it = |stat: &Stat| stat.czxid == created.stat.czxid;
        if let Some(stat) = asked.ok().flatten().filter(is_it) {
            created.stat = stat;
        }
    }
    Ok(created)
}

async fn create_only(args: &CreateArgs, client: &Client, data: &[u8]) -> Result<Created, Failure> {
    let path = &*args.path;
    let acl = (!args.acl.is_empty()).then(|| acl::list(&args.acl));
    let create = || client.create(path, data).mode(mode(args));
    let created = match with_acl(create(), acl.as_ref()).await {
        Err(WriteError::Rejected(Rejection::NoNode)) if args.parents => {
            // A number alone is below the root, also that of a chroot.
            let above = above(path).or_else(|| args.sequential.then_some(path));
            create_with_parents(client, (path, above), create(), acl.as_ref()).await?
        }
        created => created,
    };
    created.map_err(|error| match error {
        WriteError::Rejected(Rejection::NoNode) => {
            Failure::no_parent(path).next("--parents creates it")
        }
        WriteError::Rejected(Rejection::Unimplemented) if args.ttl.is_some() => {
            let why = format!("{path}: the servers do not allow nodes with a time to live");
            let next =
                "it needs servers of 3.5.3 or later with zookeeper.extendedTypesEnabled=true";
            Failure::new(Exit::No, why).next(next)
        }
        WriteError::Rejected(Rejection::Unimplemented) => {
            let why =
                format!("{path}: the servers do not know containers: they are older than 3.5");
            Failure::new(Exit::No, why).next("zk health prints the servers' releases")
        }
        error => Failure::write(path)(error),
    })
}

/// Creates it, and waits until it is gone.
async fn keep(args: &CreateArgs, client: &Client, data: &[u8]) -> Result<Exit, Failure> {
    let created = create(args, client, data).await?;
    print(args, &created)?;
    let path = &*created.path;
    loop {
        let asked = match client.exists(path).watch().await {
            // It is there, as far as that is to be known, until the session ends.
            Err(ReadError::Rejected(Rejection::NoAuth)) => {
                let end = client.session().ended().await;
                Err(ReadError::Unavailable(Cause::SessionEnded(end)))
            }
            asked => asked,
        };
        let (stat, changed) = asked.map_err(|error| match error {
            ReadError::Unavailable(Cause::SessionEnded(SessionEnd::Expired)) => {
                let why = format!("{path}: deleted with the session, which has expired");
                Failure::new(Exit::Unavailable, why)
            }
            error => Failure::read(path)(error),
        })?;
        if stat.is_none_or(|stat| stat.czxid != created.stat.czxid) {
            let why = format!("{path}: deleted by another client");
            return Err(Failure::new(Exit::No, why).next("create it again if it is to exist"));
        }
        // What has happened is seen in the next round, also if it was the end of the session.
        let _ = changed.await;
    }
}

fn mode(args: &CreateArgs) -> CreateMode {
    match (args.container, args.ephemeral, args.ttl, args.sequential) {
        (true, ..) => CreateMode::Container,
        (_, true, _, false) => CreateMode::Ephemeral,
        (_, true, _, true) => CreateMode::EphemeralSequential,
        (_, _, None, false) => CreateMode::Persistent,
        (_, _, None, true) => CreateMode::PersistentSequential,
        (_, _, Some(ttl), false) => CreateMode::PersistentTtl(ttl),
        (_, _, Some(ttl), true) => CreateMode::PersistentSequentialTtl(ttl),
    }
}
