//! One module for each command; the list of them, for the command line and for carrying them out.

mod acl;
mod completion;
mod config;
mod contender;
mod count;
mod create;
mod delete;
#[cfg(unix)]
mod demo;
#[cfg(unix)]
mod elect;
mod ephemerals;
mod export;
mod get;
pub(crate) mod health;
mod help;
pub(crate) mod holders;
mod import;
#[cfg(unix)]
mod lock;
mod ls;
mod man;
mod multi;
mod quota;
mod reconfig;
#[cfg(unix)]
mod serve;
mod sessions;
mod set;
#[cfg(unix)]
mod shell;
mod stat;
mod sync;
#[cfg(unix)]
mod top;
#[cfg(unix)]
pub(crate) mod watch;
mod whoami;

use std::{
    ffi::OsString,
    fs,
    io::{self, Read as _},
    path::Path,
};

use clap::Subcommand;
use zk_client::{AclList, Client, Create, Created, Rejection, WriteError};

#[cfg(target_os = "linux")]
use crate::{args::LaunchArgs, lock::launcher};
use crate::{
    args::{
        AclArgs, CommonArgs, CompletionArgs, ContenderArgs, CountArgs, CreateArgs, DeleteArgs,
        EphemeralsArgs, ExportArgs, GetArgs, HealthArgs, HelpArgs, HoldersArgs, ImportArgs, LsArgs,
        ManArgs, MultiArgs, QuotaArgs, ReconfigArgs, SessionsArgs, SetArgs, StatArgs, SyncArgs,
    },
    exit::{Exit, Failure},
};
#[cfg(unix)]
use crate::{
    args::{DemoArgs, ElectArgs, GuardArgs, LockArgs, ServeArgs, ShellArgs, TopArgs, WatchArgs},
    lock::guardian,
};

/// What the command line asks for, in the order of the help text.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(unix)]
    Lock(LockArgs),
    #[cfg(unix)]
    Elect(ElectArgs),
    Holders(HoldersArgs),
    /// Request a lock from its holder
    ///
    /// The holder decides whether it gives the lock back: `zk lock --revocable` does, and so do Curator's revocable
    /// locks and programs that wait for `Guard::revoked`. The request replaces what the holder has said of itself:
    /// `zk holders` shows it as `holds, asked`.
    Revoke(ContenderArgs),
    /// Remove a holder or waiter from a lock
    ///
    /// For holders that do not give the lock back. They may go on for a while without knowing: what the lock protects
    /// is safe from them only if it checks tokens. The token makes sure that no other contender is removed.
    Evict(ContenderArgs),
    Ls(LsArgs),
    Get(GetArgs),
    Set(SetArgs),
    Create(CreateArgs),
    Delete(DeleteArgs),
    Stat(StatArgs),
    Acl(AclArgs),
    #[cfg(unix)]
    Watch(WatchArgs),
    Count(CountArgs),
    Ephemerals(EphemeralsArgs),
    Quota(QuotaArgs),
    Multi(MultiArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Health(HealthArgs),
    Sessions(SessionsArgs),
    /// Show the members of the ensemble
    Config(CommonArgs),
    Reconfig(ReconfigArgs),
    Sync(SyncArgs),
    /// Show the identities that servers know this client by
    Whoami(CommonArgs),
    #[cfg(unix)]
    Top(TopArgs),
    #[cfg(unix)]
    Shell(ShellArgs),
    #[cfg(unix)]
    Demo(DemoArgs),
    #[cfg(unix)]
    Serve(ServeArgs),
    Completion(CompletionArgs),
    // Packages call it; `zk help` has the same text.
    #[command(hide = true)]
    Man(ManArgs),
    // `zk lock` starts them.
    #[cfg(unix)]
    #[command(hide = true)]
    Guard(GuardArgs),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Launch(LaunchArgs),
    Help(HelpArgs),
}

/// Does what the command line says.
pub(crate) async fn run(command: Command) -> Result<Exit, Failure> {
    // Boxed, because the largest of these futures would set the size of all.
    match command {
        #[cfg(unix)]
        Command::Lock(args) => Box::pin(lock::run(args)).await,
        #[cfg(unix)]
        Command::Elect(args) => Box::pin(elect::run(args)).await,
        Command::Holders(args) => Box::pin(holders::run(args)).await,
        Command::Revoke(args) => Box::pin(contender::revoke(args)).await,
        Command::Evict(args) => Box::pin(contender::evict(args)).await,
        Command::Ls(args) => Box::pin(ls::run(args)).await,
        Command::Get(args) => Box::pin(get::run(args)).await,
        Command::Set(args) => Box::pin(set::run(args)).await,
        Command::Create(args) => Box::pin(create::run(args)).await,
        Command::Delete(args) => Box::pin(delete::run(args)).await,
        Command::Stat(args) => Box::pin(stat::run(args)).await,
        Command::Acl(args) => Box::pin(acl::run(args)).await,
        #[cfg(unix)]
        Command::Watch(args) => Box::pin(watch::run(args)).await,
        Command::Count(args) => Box::pin(count::run(args)).await,
        Command::Ephemerals(args) => Box::pin(ephemerals::run(args)).await,
        Command::Quota(args) => Box::pin(quota::run(args)).await,
        Command::Export(args) => Box::pin(export::run(args)).await,
        Command::Import(args) => Box::pin(import::run(args)).await,
        Command::Whoami(args) => Box::pin(whoami::run(args)).await,
        Command::Config(args) => Box::pin(config::run(args)).await,
        Command::Multi(args) => Box::pin(multi::run(args)).await,
        Command::Health(args) => Box::pin(health::run(args)).await,
        Command::Sessions(args) => Box::pin(sessions::run(args)).await,
        Command::Reconfig(args) => Box::pin(reconfig::run(args)).await,
        Command::Sync(args) => Box::pin(sync::run(args)).await,
        #[cfg(unix)]
        Command::Shell(args) => Box::pin(shell::run(args)).await,
        #[cfg(unix)]
        Command::Top(args) => Box::pin(top::run(args)).await,
        #[cfg(unix)]
        Command::Demo(args) => Box::pin(demo::run(args)).await,
        #[cfg(unix)]
        Command::Serve(args) => Box::pin(serve::run(args)).await,
        Command::Completion(args) => completion::run(&args),
        Command::Man(args) => man::run(&args),
        #[cfg(unix)]
        Command::Guard(args) => guardian::run(&args),
        #[cfg(target_os = "linux")]
        Command::Launch(args) => launcher::run(&args),
        Command::Help(args) => help::run(&args),
    }
}

/// Data as it was given on the command line: itself, `-` for standard input, or a file. `None`: not at all.
fn data(argument: Option<OsString>, file: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    if let Some(file) = file {
        return fs::read(file).map(Some).map_err(Failure::local(&file.to_string_lossy()));
    }
    match argument {
        Some(argument) if argument == "-" => {
            let mut data = Vec::new();
            io::stdin().read_to_end(&mut data).map_err(Failure::local("standard input"))?;
            Ok(Some(data))
        }
        argument => Ok(argument.map(OsString::into_encoded_bytes)),
    }
}

/// The text of a file, or for `-` of standard input.
fn text(file: &Path) -> io::Result<String> {
    if file == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) }
}

/// Creates a node, with what is missing `above` it.
async fn create_with_parents(
    client: &Client,
    (path, above): (&str, Option<&str>),
    create: Create<'_>,
    acl: Option<&AclList>,
) -> Result<Result<Created, WriteError>, Failure> {
    if let Some(above) = above {
        create_above(client, above).await?;
        return Ok(with_acl(create, acl).await);
    }
    // Above the root of a chroot only the create of the root itself reaches, with one list for all.
    let created = create.parents().await;
    if let (Ok(_), Some(acl)) = (&created, acl) {
        client.set_acl(path, acl).await.map_err(Failure::write(path))?;
    }
    Ok(created)
}

fn with_acl<'a>(create: Create<'a>, acl: Option<&AclList>) -> Create<'a> {
    match acl {
        Some(acl) => create.acl(acl),
        None => create,
    }
}

/// Creates a node above another one, with all above it, the chroot included. Anybody may do everything with these levels,
/// and they are persistent, whatever the node is to be: one with a time to live is no reason for its parents to vanish.
async fn create_above(client: &Client, above: &str) -> Result<(), Failure> {
    // The root cannot be created; that of a chroot can.
    if client.exists(above).await.map_err(Failure::read(above))?.is_some() {
        return Ok(());
    }
    match client.create(above, b"").parents().await {
        Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => Ok(()),
        Err(error) => Err(Failure::write(above)(error)),
    }
}
