//! The `zk` command: ZooKeeper and its locks from the shell.
//!
//! | module | concern |
//! |---|---|
//! | `args` | the command line |
//! | `exit` | exit codes, and what errors end in which |
//! | `naming` | whose names nodes have |
//! | `connection` | a session for one command |
//! | `profile` | settings of a connection that have a name |
//! | `tree` | everything below a node |
//! | `dump` | a node on a line of a file |
//! | `acl` | access control lists as people write them |
//! | `render` | standard output: text, JSON, tables |
//! | `commands` | one module for each command |
//! | `lock` | the command that `zk lock` or `zk elect` runs, and its signals |
//! | `demo` | fifty contenders for one lock: the parts of `zk demo` |

mod acl;
mod args;
mod commands;
mod connection;
#[cfg(unix)]
mod demo;
mod dump;
mod duration;
mod exit;
#[cfg(unix)]
mod lock;
mod naming;
mod profile;
mod render;
mod security;
mod tree;

use std::process::ExitCode;

use clap::Parser as _;

use self::{args::Args, exit::Failure};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // A session, and something that goes on beside it. Only the demo has more to do, and it is to
        // contend for the lock, not for processors.
        .worker_threads(2)
        .enable_all()
        .build();
    let ended = runtime
        .map_err(Failure::local("cannot start"))
        .and_then(|runtime| runtime.block_on(commands::run(args.command)));
    let exit = ended.unwrap_or_else(|failure| {
        render::complain(&failure);
        failure.exit
    });
    exit.into()
}
