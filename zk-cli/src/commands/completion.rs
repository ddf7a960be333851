//! `zk completion`: what makes a shell complete the arguments of this command.

use crate::{
    args::{CompletionArgs, help},
    exit::{Exit, Failure},
    render,
};

pub(crate) fn run(args: &CompletionArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::public(), "zk", &mut script);
    render::bytes(&script)?;
    Ok(Exit::Done)
}
