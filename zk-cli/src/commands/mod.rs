//! One module for each command; the list of them, for the command line and for carrying them out.

mod acl;
mod completion;
mod config;
mod contender;
mod create;
mod delete;
#[cfg(unix)]
mod demo;
#[cfg(unix)]
mod elect;
mod export;
mod get;
mod health;
mod holders;
mod import;
#[cfg(unix)]
mod lock;
mod ls;
mod multi;
#[cfg(unix)]
mod serve;
mod set;
mod stat;
#[cfg(unix)]
mod watch;
mod whoami;

use std::{
    ffi::OsString,
    fs,
    io::{self, Read as _},
    path::Path,
};

use clap::Subcommand;

#[cfg(unix)]
use crate::args::{DemoArgs, ElectArgs, LockArgs, ServeArgs, WatchArgs};
use crate::{
    args::{
        AclArgs, CommonArgs, CompletionArgs, ContenderArgs, CreateArgs, DeleteArgs, ExportArgs,
        GetArgs, HealthArgs, HoldersArgs, ImportArgs, LsArgs, MultiArgs, SetArgs, StatArgs,
    },
    exit::{Exit, Failure},
};

/// What the command line asks for, in the order of the help text.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(unix)]
    Lock(LockArgs),
    #[cfg(unix)]
    Elect(ElectArgs),
    Holders(HoldersArgs),
    /// Ask a holder to give a lock back
    ///
    /// Whether it does is up to the holder: `zk lock --revocable` does, and so do Curator's revocable locks
    /// and programs that wait for `Guard::revoked`.
    Revoke(ContenderArgs),
    /// Take a contender's place in the queue of a lock away, or the lock
    ///
    /// For holders that cannot give it back. They may go on for a while without knowing: what the lock protects is
    /// safe from them only if it checks tokens. The token ensures that no other contender is met.
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
    Multi(MultiArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    /// Show who the servers take this client for
    Whoami(CommonArgs),
    /// Show the members of the ensemble, as it is configured
    Config(CommonArgs),
    Health(HealthArgs),
    #[cfg(unix)]
    Demo(DemoArgs),
    #[cfg(unix)]
    Serve(ServeArgs),
    Completion(CompletionArgs),
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
        Command::Export(args) => Box::pin(export::run(args)).await,
        Command::Import(args) => Box::pin(import::run(args)).await,
        Command::Whoami(args) => Box::pin(whoami::run(args)).await,
        Command::Config(args) => Box::pin(config::run(args)).await,
        Command::Multi(args) => Box::pin(multi::run(args)).await,
        Command::Health(args) => Box::pin(health::run(args)).await,
        #[cfg(unix)]
        Command::Demo(args) => Box::pin(demo::run(args)).await,
        #[cfg(unix)]
        Command::Serve(args) => Box::pin(serve::run(args)).await,
        Command::Completion(args) => completion::run(&args),
    }
}

/// Data as it was given on the command line: itself, or `-` for standard input.
fn data(argument: OsString) -> Result<Vec<u8>, Failure> {
    if argument != "-" {
        return Ok(argument.into_encoded_bytes());
    }
    let mut data = Vec::new();
    io::stdin().read_to_end(&mut data).map_err(Failure::local("standard input"))?;
    Ok(data)
}

/// The text of a file, or for `-` of standard input.
fn text(file: &Path) -> io::Result<String> {
    if file == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) }
}
