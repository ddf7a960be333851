//! `zk completion`: what makes a shell complete the arguments of this command.

use clap::CommandFactory as _;

use crate::{
    args::{Args, CompletionArgs},
    exit::{Exit, Failure},
    render,
};

pub(crate) fn run(args: &CompletionArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "zk", &mut script);
    render::bytes(&script)?;
    Ok(Exit::Done)
}
