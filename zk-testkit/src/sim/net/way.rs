//! What connections are called, and the ways along them.

/// A connection, or an attempt to make one. Never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// What connects on behalf of a client: a client that lets go of a session and makes the next has two of these for a
/// while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectorId(pub u32);

/// One of the two ways along a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}
