//! `zk man`: manual pages, for packages.

use std::fs;

use clap::CommandFactory as _;

use crate::{
    args::{Args, ManArgs},
    exit::{Exit, Failure},
};

pub(crate) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let written = fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Args::command(), &args.dir));
    written.map_err(Failure::local(&args.dir.to_string_lossy()))?;
    Ok(Exit::Done)
}
