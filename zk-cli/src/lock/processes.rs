//! The processes of a command: which group they are in, and why there are none.

use std::{ffi::OsStr, fmt, fs::File, io, path::Path, time::Duration};

use clap::{ValueEnum as _, builder::PossibleValue};
use rustix::{process::getpgrp, termios::tcgetpgrp};

use crate::exit::{Exit, Failure};

/// How often the processes of an ending command are looked for, once its first one has ended.
pub(super) const GONE_POLL: Duration = Duration::from_millis(10);

/// Which process group the command is in.
///
/// A group of its own is the rule: so all of it can be signalled, and nothing but it. But a process in the
/// background of a terminal cannot read from that, and does not hear its Ctrl-C. So if we are in a
/// terminal's foreground ourselves, the command stays in our group. Making its own group the terminal's
/// foreground one, as shells do, would keep Ctrl-C from all others: from the script that runs us, say.
///
/// In the words of those that are to end it: all of the group, or that process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Group {
    #[value(name = "group")]
    Own,
    #[value(name = "process")]
    Ours,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", PossibleValue::get_name))
    }
}

impl Group {
    /// Which one, as things are now.
    pub(crate) fn choose() -> Self {
        if in_foreground() { Self::Ours } else { Self::Own }
    }
}

/// Why a program does not run.
pub(crate) fn failed(program: &OsStr) -> impl Fn(io::Error) -> Failure {
    move |error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::NotExecutable,
        };
        Failure::new(exit, format_args!("{}: {error}", Path::new(program).display()))
    }
}

/// Whether we are in the foreground of our terminal, wherever standard input comes from.
pub(super) fn in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}
