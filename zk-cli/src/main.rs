//! The `zk` command: ZooKeeper and its locks from the shell.
//!
//! | module | concern |
//! |---|---|
//! | `args` | the command line |
//! | `exit` | exit codes, and what errors end in which |
//! | `interrupt` | being told to end |
//! | `naming` | whose names nodes have |
//! | `connection` | a session for one command |
//! | `ask` | questions to single servers, without a session |
//! | `log` | what is logged, and where |
//! | `shared` | a session for several commands: those of a shell |
//! | `profile` | settings of a connection that have a name |
//! | `tree` | everything below a node |
//! | `changes` | hearing that something below a node has changed |
//! | `dump` | a node on a line of a file |
//! | `quota` | limits on nodes and bytes as servers keep them |
//! | `acl` | access control lists as people write them |
//! | `render` | standard output: text, JSON, tables |
//! | `commands` | one module for each command |
//! | `lock` | the command that `zk lock` or `zk elect` runs, and its signals |
//! | `demo` | fifty contenders for one lock: the parts of `zk demo` |

mod acl;
mod args;
mod ask;
mod changes;
mod commands;
mod connection;
#[cfg(unix)]
mod demo;
mod dump;
mod duration;
mod exit;
mod found;
mod interrupt;
#[cfg(unix)]
mod lock;
mod log;
mod naming;
mod profile;
mod quota;
mod render;
mod security;
mod shared;
mod tree;

use std::process::ExitCode;

use clap::Parser as _;

use self::{args::Args, exit::Failure};

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if let Err(failure) = args::unambiguous(&words) {
        render::complain(&failure);
        return failure.exit.into();
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(help) if args::is_help(&help) => help.exit(),
        Err(error) => {
            let failure = args::advised(args::mistake(error), &words);
            render::complain(&failure);
            return failure.exit.into();
        }
    };
    if let Err(failure) = log::start(args.verbose) {
        render::complain(&failure);
        return failure.exit.into();
    }
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
        let failure = args::advised(failure, &words);
        render::complain(&failure);
        failure.exit
    });
    exit.into()
}
