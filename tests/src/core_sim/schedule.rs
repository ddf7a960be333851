//! What will happen, in order: by time, and at the same time in the order in which it was planned.

use std::collections::BTreeMap;

use bytes::Bytes;
use zk_proto::Time;

/// Something that happens. Links and clients are named by their numbers.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A connection attempt reaches its server.
    Dialed { link: usize },
    /// A client's bytes reach the server.
    Up { link: usize, bytes: Bytes },
    /// A client's end of a connection reaches the server.
    UpEnd { link: usize },
    /// A server's bytes reach the client.
    Down { link: usize, bytes: Bytes },
    /// A server's end of a connection reaches the client.
    DownEnd { link: usize },
    /// A client's socket takes bytes again.
    Writable { link: usize },
    /// A client's deadline may have come.
    Wake { client: usize },
    /// The ensemble's deadline may have come.
    Tick,
    /// A client's user asks for something.
    Ask { client: usize },
    /// A client whose session is over begins another one.
    Reborn { client: usize },
    /// A fault of the plan begins.
    Fault { number: usize },
    /// It ends.
    Mend { number: usize },
    /// A phase of the run ends.
    Phase,
}

impl Happening {
    /// Whether something arrives that was sent over a connection.
    pub(crate) const fn is_delivery(&self) -> bool {
        matches!(self, Self::Up { .. } | Self::Down { .. })
    }

    /// For the trace: a name and a number.
    pub(crate) const fn gist(&self) -> (&'static str, usize) {
        match self {
            Self::Dialed { link } => ("dialed", *link),
            Self::Up { link, .. } => ("up", *link),
            Self::UpEnd { link } => ("up end", *link),
            Self::Down { link, .. } => ("down", *link),
            Self::DownEnd { link } => ("down end", *link),
            Self::Writable { link } => ("writable", *link),
            Self::Wake { client } => ("wake", *client),
            Self::Tick => ("tick", 0),
            Self::Ask { client } => ("ask", *client),
            Self::Reborn { client } => ("reborn", *client),
            Self::Fault { number } => ("fault", *number),
            Self::Mend { number } => ("mend", *number),
            Self::Phase => ("phase", 0),
        }
    }
}

/// Everything to come.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    by_time: BTreeMap<(Time, u64), Happening>,
    planned: u64,
}

impl Schedule {
    pub(crate) fn plan(&mut self, at: Time, happening: Happening) {
        self.planned += 1;
        self.by_time.insert((at, self.planned), happening);
    }

    pub(crate) fn next(&mut self) -> Option<(Time, Happening)> {
        self.by_time.pop_first().map(|((at, _), happening)| (at, happening))
    }

    pub(crate) fn next_is_delivery(&self) -> bool {
        self.by_time.first_key_value().is_some_and(|(_, happening)| happening.is_delivery())
    }
}
