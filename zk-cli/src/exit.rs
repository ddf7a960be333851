//! Exit codes: the one list of them, and the errors that end in them.

use std::{fmt, io, process::ExitCode};

use zk_client::{Cause, ConnectError, ReadError, Rejection, SessionEnd, WriteError, path::parent};
use zk_locks::AcquireError;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for has been done.
    Done,
    /// The servers, or the facts, say no.
    No,
    /// The command line makes no sense. (Clap has the same number for it.)
    Usage,
    /// No server, no session, or not any more.
    Unavailable,
    /// Input or output on this side has failed.
    LocalIo,
    /// `zk lock --try`: the lock is taken.
    Taken,
    /// It is unknown whether a write was carried out.
    InDoubt,
    /// `zk lock`, `zk elect`: the lock was lost, and the command ended for it.
    LockLost,
    /// `zk lock --timeout`: the time is over.
    TimedOut,
    /// `zk lock`, `zk elect`, `zk watch`: the command is there but cannot be run.
    NotExecutable,
    /// The same: there is no such command.
    NotFound,
    /// `zk lock`, `zk elect`: what the command exited with.
    Command(u8),
    /// Of the command, or of this one while it waited.
    Signal(i32),
}

/// What the help says about exit codes, in the order of their numbers. Those that tell only of a lock, or of a command under
/// one, keep clear of what commands commonly exit with: they are of the ranges of `sysexits.h`, `xargs`, `timeout` and `env`.
/// What any command may end in, `zk lock` may as well.
const TABLE: [(&str, Exit, &str); 12] = [
    ("0", Exit::Done, "done (lock, elect: the command's own code, whatever it is)"),
    (
        "1",
        Exit::No,
        "the answer is no: no such node, exists already, other version, not\nempty, no permission; health, sessions, top: a server does not answer;\ndemo: the lock was violated",
    ),
    ("2", Exit::Usage, "the command line makes no sense"),
    ("69", Exit::Unavailable, "no server or no session, or lost; demo: no ZooKeeper to start"),
    ("74", Exit::LocalIo, "input or output has failed on this side"),
    ("75", Exit::Taken, "lock --try: the lock is held or waited for"),
    (
        "76",
        Exit::InDoubt,
        "the connection was lost in the middle of a write, which may or may\nnot have been carried out",
    ),
    ("123", Exit::LockLost, "lock, elect: the lock was lost, and the command has been ended"),
    ("124", Exit::TimedOut, "lock --timeout: not acquired in time"),
    ("126", Exit::NotExecutable, "lock, elect, watch: the command cannot be run"),
    ("127", Exit::NotFound, "lock, elect, watch: there is no such command"),
    (
        "128+n",
        Exit::Signal(0),
        "signal n has ended what lasts: the command of lock or elect, the wait\nfor either, watch, holders --watch, create --ephemeral, export, shell,\ntop",
    ),
];

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Unavailable => 69,
            Self::LocalIo => 74,
            Self::Taken => 75,
            Self::InDoubt => 76,
            Self::LockLost => 123,
            Self::TimedOut => 124,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Command(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }

    /// What to do next where nothing else is known than that.
    fn next(self) -> &'static str {
        match self {
            Self::Usage => "zk help lists subcommands and topics; zk COMMAND -h its options",
            Self::Unavailable => {
                "--server or $ZK_SERVER names the servers; zk health asks each; -v logs attempts"
            }
            Self::LocalIo => "check that it exists, can be written or read, and has room",
            Self::Taken => "zk holders PATH lists who has it; without --try it waits",
            Self::InDoubt => "look at what is there (zk get, zk stat) before you do it again",
            Self::LockLost => "zk holders PATH lists who has it now; zk health asks each server",
            Self::TimedOut => "zk holders PATH lists who has it",
            Self::NotExecutable | Self::NotFound => "check the command behind --",
            Self::Done | Self::No | Self::Command(_) | Self::Signal(_) => {
                "zk help exit-codes explains the exit code"
            }
        }
    }

    /// The table for the help text.
    pub(crate) fn table() -> String {
        let mut table = String::from("Exit codes:");
        for (code, _, meaning) in TABLE {
            let meaning = meaning.replace('\n', &format!("\n{:9}", ""));
            table.push_str(&format!("\n  {code:<5}  {meaning}"));
        }
        table
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why the program ends otherwise than it was asked to: a line for people with another one for what they can do, and a
/// code for scripts.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    /// What to do next, if there is better advice than what the exit code has.
    next: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), next: None }
    }

    /// With advice on what to do next.
    pub(crate) fn next(self, next: impl fmt::Display) -> Self {
        Self { next: Some(next.to_string()), ..self }
    }

    /// With other words for what has happened, which may be made of these.
    pub(crate) fn retold(self, retell: impl FnOnce(&str) -> String) -> Self {
        Self { message: retell(&self.message), ..self }
    }

    /// A refusal, with the path that it is about.
    pub(crate) fn rejected(path: &str, rejection: Rejection) -> Self {
        let above = || parent(path).unwrap_or("/");
        let (reason, next) = match rejection {
            Rejection::NoNode if path == "/" => (
                "the chroot in --server does not exist",
                "zk create -p creates it, with a --server without the chroot".to_owned(),
            ),
            Rejection::NoNode => ("no such node", format!("zk ls {} lists what exists", above())),
            Rejection::NodeExists => ("exists already", format!("zk set {path} replaces its data")),
            Rejection::BadVersion => (
                "its version is not the one named",
                format!("zk stat {path} prints the current one"),
            ),
            Rejection::BadArguments => (
                "the server refuses the request as senseless",
                "/ and /zookeeper can be neither created nor deleted: zk ls / lists other nodes"
                    .to_owned(),
            ),
            Rejection::NotEmpty => {
                ("has children", format!("zk delete -r {path} deletes them, too"))
            }
            Rejection::NoAuth => (
                "no permission",
                format!("zk whoami prints who you are, zk acl {path} who may; see --auth-file"),
            ),
            Rejection::InvalidAcl => (
                "no valid access control list",
                "zk help acl explains entries; auth: needs an identity (--auth-file)".to_owned(),
            ),
            Rejection::NoChildrenForEphemerals => {
                ("ephemeral nodes have no children", format!("zk stat {} shows it", above()))
            }
            Rejection::QuotaExceeded => {
                ("the quota would be exceeded", "zk quota lists limits and use".to_owned())
            }
            Rejection::ReadOnly => {
                ("the server is cut off from the quorum", "zk health asks each server".to_owned())
            }
            Rejection::Unimplemented => (
                "the server does not know the operation, or does not allow it",
                "zk health prints the servers' releases".to_owned(),
            ),
            other => {
                let next = "zk health asks each server; -v logs what is sent";
                return Self::new(Exit::No, format_args!("{path}: {other}")).next(next);
            }
        };
        Self::new(Exit::No, format_args!("{path}: {reason}")).next(next)
    }

    /// A node that cannot be created, as the one above it does not exist.
    pub(crate) fn no_parent(path: &str) -> Self {
        match above(path) {
            Some(above) => Self::new(Exit::No, format_args!("{path}: its parent does not exist"))
                .next(format_args!("zk create -p {above} creates it")),
            None => Self::rejected(path, Rejection::NoNode),
        }
    }

    /// An operation on `path` that was not answered.
    fn unanswered(path: &str, cause: &Cause) -> Self {
        match cause {
            Cause::InvalidPath(error) => Self::no_path(path, error),
            Cause::InvalidArgument(_) | Cause::TooLarge { .. } => {
                Self::new(Exit::Usage, format_args!("{path}: {cause}"))
            }
            cause => Self::new(Exit::Unavailable, format_args!("{path}: {cause}")),
        }
    }

    /// What is no path, and why.
    pub(crate) fn no_path(path: &str, error: impl fmt::Display) -> Self {
        let failure = Self::new(Exit::Usage, error);
        match with_slashes(path) {
            Some(next) => failure.next(next),
            None => failure,
        }
    }

    /// A read of `path`.
    pub(crate) fn read(path: &str) -> impl Fn(ReadError) -> Self + '_ {
        move |error| match error {
            ReadError::Rejected(rejection) => Self::rejected(path, rejection),
            ReadError::Unavailable(cause) => Self::unanswered(path, &cause),
            other => Self::new(Exit::Unavailable, format_args!("{path}: {other}")),
        }
    }

    /// A write to `path`.
    pub(crate) fn write(path: &str) -> impl Fn(WriteError) -> Self + '_ {
        move |error| match error {
            WriteError::Rejected(rejection) => Self::rejected(path, rejection),
            WriteError::NotApplied(cause) => Self::unanswered(path, &cause),
            WriteError::InDoubt { .. } => Self::new(Exit::InDoubt, format_args!("{path}: {error}")),
            other => Self::new(Exit::Unavailable, format_args!("{path}: {other}")),
        }
    }

    /// A lock on `path`.
    pub(crate) fn acquire(path: &str) -> impl Fn(AcquireError) -> Self + '_ {
        move |error| match error {
            AcquireError::TimedOut => {
                Self::new(Exit::TimedOut, format_args!("{path}: not acquired in time"))
                    .next(format_args!("zk holders {path} lists who has it"))
            }
            AcquireError::Rejected(rejection) => Self::rejected(path, rejection),
            AcquireError::InvalidPath(error) => Self::no_path(path, &error),
            AcquireError::NodeDeleted
            | AcquireError::HeldTooLong
            | AcquireError::SequenceExhausted { .. } => {
                Self::new(Exit::No, format_args!("{path}: {error}"))
            }
            AcquireError::NoSuchName { .. } => {
                Self::new(Exit::Usage, format_args!("{path}: there are no names for such a lock"))
                    .next("zk help names lists whose names there are, and for what")
            }
            AcquireError::Unavailable(cause) => Self::unanswered(path, &cause),
            error => Self::new(Exit::Unavailable, format_args!("{path}: {error}")),
        }
    }

    /// A file or a stream on this side.
    pub(crate) fn local(what: &str) -> impl Fn(io::Error) -> Self + '_ {
        move |error| Self::new(Exit::LocalIo, format_args!("{what}: {error}"))
    }
}

/// What there is to say of a path with slashes at the wrong places.
pub(crate) fn with_slashes(path: &str) -> Option<String> {
    let meant = path
        .split('/')
        .filter(|name| !name.is_empty())
        .fold(String::new(), |path, name| path + "/" + name);
    let is_other = !meant.is_empty() && meant != path;
    is_other.then(|| format!("paths begin with a slash and do not end in one: {meant}"))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n    {}",
            self.message,
            self.next.as_deref().unwrap_or_else(|| self.exit.next())
        )
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let exit = match &error {
            ConnectError::NoServer
            | ConnectError::InvalidServer(_)
            | ConnectError::InvalidChroot(_) => Exit::Usage,
            ConnectError::SessionEnded(SessionEnd::AuthFailed) => Exit::No,
            _ => Exit::Unavailable,
        };
        Self::new(exit, error)
    }
}

/// What has to be there for a node to be created; nothing for the root. A node may have no name but its number.
pub(crate) fn above(path: &str) -> Option<&str> {
    path.strip_suffix('/').filter(|above| !above.is_empty()).or_else(|| parent(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_lists_every_exit_code_in_order() {
        let numbers: Vec<u8> = TABLE.iter().map(|(_, exit, _)| exit.code()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        for (code, exit, _) in TABLE {
            let shown = code.strip_suffix("+n").unwrap_or(code);
            assert_eq!(shown.parse(), Ok(exit.code()), "{exit:?}");
        }
    }

    #[test]
    fn every_refusal_says_what_to_do_next() {
        use Rejection as R;
        for rejection in [
            R::NoNode,
            R::NodeExists,
            R::BadVersion,
            R::NotEmpty,
            R::NoAuth,
            R::InvalidAcl,
            R::NoChildrenForEphemerals,
            R::QuotaExceeded,
            R::ReadOnly,
            R::Unimplemented,
            R::BadArguments,
            R::EphemeralOnLocalSession,
        ] {
            let text = Failure::rejected("/a/b", rejection).to_string();
            let (message, next) = text.split_once("\n    ").unwrap();
            assert!(message.starts_with("/a/b: ") && next.contains("zk "), "{text}");
        }
    }

    #[test]
    fn the_table_fits_80_columns() {
        for line in Exit::table().lines() {
            assert!(line.len() <= 80, "{line:?}");
        }
    }
}
