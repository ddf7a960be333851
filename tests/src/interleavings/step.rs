//! What may happen next.

use std::fmt;

use super::names::Label;

/// What may happen next. Clients, contenders and nodes are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The server takes the next request of this client, and everybody hears what it has to say.
    Serve(u8),
    /// This contender, which holds, releases.
    Release(u8),
    /// Nobody has anything to say: time passes until a client does, such as one that waits before it tries again.
    Wait,
    /// A fault: this client's connection is lost, with all requests under way.
    Cut(u8),
    /// A fault: the server takes so many requests of this client more; their answers are lost with the
    /// connection.
    Lose(u8, u8),
    /// A fault: this client's session ends while it cannot be reached.
    Expire(u8),
    /// A fault: this client's session ends, and it hears of what becomes of its nodes before it hears of that.
    ExpireHeard(u8),
    /// A fault: somebody else deletes this node.
    Delete(Label),
    /// A fault: this contender does not want to wait any more.
    GiveUp(u8),
}

impl Step {
    /// Whether it counts as a fault.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::Serve(_) | Self::Release(_) | Self::Wait)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serve(client) => write!(f, "the server serves client {client}"),
            Self::Release(contender) => write!(f, "contender {contender} releases"),
            Self::Wait => write!(f, "time passes"),
            Self::Cut(client) => write!(f, "client {client} loses its connection"),
            Self::Lose(client, requests) => write!(
                f,
                "client {client} loses its connection and the answers to {requests} requests"
            ),
            Self::Expire(client) => write!(f, "the session of client {client} ends unheard"),
            Self::ExpireHeard(client) => write!(f, "the session of client {client} ends"),
            Self::Delete(label) => write!(f, "an outsider deletes {label}"),
            Self::GiveUp(contender) => write!(f, "contender {contender} gives up"),
        }
    }
}
