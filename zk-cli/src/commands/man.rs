//! `zk man`: manual pages, for packages.

use std::fs;

use crate::{
    args::{ManArgs, help},
    exit::{Exit, Failure},
};

pub(crate) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let written = fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(help::public(), &args.dir));
    written.map_err(Failure::local(&args.dir.to_string_lossy()))?;
    Ok(Exit::Done)
}
