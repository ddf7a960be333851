//! What goes wrong, and when it is looked at.

/// What happens to a handle, or to what it relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing.
    Calm,
    /// Another client deletes all nodes of the session, and changes what was read.
    Meddled,
    /// Another client deletes everything at the place, and the place too.
    Cleared,
    /// Nobody but others may do anything at the place.
    Forbidden,
    /// Three requests in a row are refused because of load.
    Throttled,
    /// The first request of each kind is refused because of load.
    FirstsThrottled,
    /// The next answer goes down with the connection.
    AnswerLost,
    /// The first answer to each kind of request does.
    FirstAnswersLost,
    /// No server can be reached, until later.
    CutOff,
    /// The connection is lost, and the servers can be reached again after half of the lease.
    CutShort,
    /// No server can be reached for longer than the session lives.
    CutOffForLong,
    /// Bytes stay where they are.
    Silent,
    /// The servers end the session, and say so.
    Expired,
    /// The servers end the session while none of them can be reached.
    ExpiredMeanwhile,
    /// The client closes it.
    Closed,
}

impl Fate {
    pub(crate) const ALL: [Self; 15] = [
        Self::Calm,
        Self::Meddled,
        Self::Cleared,
        Self::Forbidden,
        Self::Throttled,
        Self::FirstsThrottled,
        Self::AnswerLost,
        Self::FirstAnswersLost,
        Self::CutOff,
        Self::CutShort,
        Self::CutOffForLong,
        Self::Silent,
        Self::Expired,
        Self::ExpiredMeanwhile,
        Self::Closed,
    ];

    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::Calm => "nothing happens",
            Self::Meddled => "another client deletes the session's nodes, and changes the others",
            Self::Cleared => "another client deletes everything",
            Self::Forbidden => "another client takes all permissions away",
            Self::Throttled => "the server refuses three requests because of load",
            Self::FirstsThrottled => {
                "the server refuses the first request of each kind because of load"
            }
            Self::AnswerLost => "the next answer is lost with the connection",
            Self::FirstAnswersLost => "the first answer of each kind is lost with the connection",
            Self::CutOff => "no server can be reached",
            Self::CutShort => "a connection is lost, and things change before the next one",
            Self::CutOffForLong => "no server can be reached for 13 s",
            Self::Silent => "the connection is silent",
            Self::Expired => "the servers end the session",
            Self::ExpiredMeanwhile => "the servers end the session while they cannot be reached",
            Self::Closed => "the client is closed",
        }
    }
}

/// When operations are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    Then,
    Again,
    Afterwards,
}

impl Moment {
    pub(crate) const ALL: [Self; 4] = [Self::Before, Self::Then, Self::Again, Self::Afterwards];
}
