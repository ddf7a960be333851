//! The command's first moment: it tells the guardian its number before it becomes what it is.
//!
//! `zk lock` knows that number only once the command runs. Killed before it could pass the number on, it would leave a command
//! behind that nothing ends. So the new process passes it on, while it still is this program.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    os::unix::process::{CommandExt as _, parent_id},
    path::Path,
    process::id,
};

use rustix::fs::{Mode, OFlags, open};
use tokio::process::Command;

use super::processes::{Group, failed};
use crate::{
    args::LaunchArgs,
    exit::{Exit, Failure},
};

/// What starts as this program and becomes the other one, whose arguments are to be added.
pub(super) fn command(guardian: &Path, group: Group, program: &OsStr) -> Command {
    let mut launcher = Command::new("/proc/self/exe");
    launcher.arg0("lock-launcher").args(["launch", &group.to_string(), &id().to_string()]);
    launcher.arg(guardian).arg("--").arg(program);
    launcher
}

/// Tells the guardian which process this is, and becomes the command.
pub(crate) fn run(args: &LaunchArgs) -> Result<Exit, Failure> {
    let [program, arguments @ ..] = &*args.command else {
        return Err(Failure::new(Exit::Usage, "no command to run"));
    };
    // If it cannot, `zk lock` tells the guardian as well, unless that is what was killed.
    if introduce(args).is_err() && parent_id() != args.parent {
        return Err(Failure::new(Exit::LockLost, "killed before its command ran"));
    }
    Err(failed(program)(std::process::Command::new(program).args(arguments).exec()))
}

/// Writes to the guardian's input, of which this process then has an end too: the guardian sees no end of it before it has
/// read this.
fn introduce(args: &LaunchArgs) -> io::Result<()> {
    // Opening would wait for a guardian that is gone, without `NONBLOCK`.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut guardian = File::from(open(&args.guardian, flags, Mode::empty())?);
    writeln!(guardian, "{} {}", args.group, id())
}
