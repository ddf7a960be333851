//! What contenders say to the resource, a line for each request and each answer.

use std::{fmt, str::FromStr};

use clap::ValueEnum;

use super::claim::{Mode, Party, prints_its_name};

/// What a contender says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The contender's identity: the first thing on a connection.
    Hello {
        /// Whose program.
        party: Party,
        /// Which of its contenders.
        name: String,
    },
    /// It has the lock and begins to use what that protects.
    Enter {
        /// To do what.
        mode: Mode,
        /// The lock node's `czxid`.
        token: i64,
        /// The lock's node.
        node: String,
    },
    /// From now on it only reads; next it turns its write lock into a read lock.
    Downgrade {
        /// That of its visit.
        token: i64,
    },
    /// It has done so.
    Moved {
        /// That of its visit.
        token: i64,
        /// The read lock's node.
        node: String,
    },
    /// It stops; next it releases the lock.
    Leave {
        /// That of its visit.
        token: i64,
    },
    /// Something worth counting has happened to it.
    Note {
        /// What.
        word: String,
    },
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello { party, name } => write!(f, "hello {party} {name}"),
            Self::Enter { mode, token, node } => write!(f, "enter {mode} {token} {node}"),
            Self::Downgrade { token } => write!(f, "downgrade {token}"),
            Self::Moved { token, node } => write!(f, "moved {token} {node}"),
            Self::Leave { token } => write!(f, "leave {token}"),
            Self::Note { word } => write!(f, "note {word}"),
        }
    }
}

impl FromStr for Request {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let token = |text: &str| text.parse().map_err(|_| format!("no token in {line:?}"));
        Ok(match words[..] {
            ["hello", party, name] => {
                let party = <Party as ValueEnum>::from_str(party, false)?;
                Self::Hello { party, name: name.to_owned() }
            }
            ["enter", mode, number, node] => {
                let entering = [Mode::Alone, Mode::Read, Mode::Lease];
                let mode = entering.into_iter().find(|known| known.to_string() == mode);
                let mode = mode.ok_or_else(|| format!("no mode in {line:?}"))?;
                Self::Enter { mode, token: token(number)?, node: node.to_owned() }
            }
            ["downgrade", number] => Self::Downgrade { token: token(number)? },
            ["moved", number, node] => Self::Moved { token: token(number)?, node: node.to_owned() },
            ["leave", number] => Self::Leave { token: token(number)? },
            ["note", word] => Self::Note { word: word.to_owned() },
            _ => return Err(format!("not a request: {line:?}")),
        })
    }
}

/// What the resource answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Answer {
    /// So be it.
    Ok,
    /// This contender has lost its lock already, and another one has been there since.
    Refused,
    /// The run is over: release the lock, and end.
    End,
}

prints_its_name!(Answer);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        let node = || "/a/_c_1-lock-0000000001".to_owned();
        for request in [
            Request::Hello { party: Party::KazooAsIs, name: "kazoo-0.1".into() },
            Request::Enter { mode: Mode::Lease, token: 7, node: node() },
            Request::Downgrade { token: 7 },
            Request::Moved { token: 7, node: node() },
            Request::Leave { token: 7 },
            Request::Note { word: "lost-before-use".into() },
        ] {
            assert_eq!(request.to_string().parse(), Ok(request));
        }
        for line in ["", "enter", "enter downgraded 1 /a", "leave x", "hello nobody n"] {
            assert!(line.parse::<Request>().is_err(), "{line}");
        }
    }
}
