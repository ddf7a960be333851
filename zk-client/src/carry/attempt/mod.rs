//! Creates that are carried through a lost reply, by the session and not by their caller.
//!
//! The node's name begins with an id that nobody else has. If the reply is lost, the session, once it is
//! back, asks for a `sync` and then for the siblings: if a node with that id is among them, that is the
//! one; if none is, none will ever appear, and the node is created again. The `sync` is not optional: a
//! create that the leader has accepted but not committed is invisible to a client that reconnects, and
//! without waiting for it a second node would be made.
//!
//! Several nodes can be created together, in one transaction: then all are found, or none.
//!
//! | module | concern |
//! |---|---|
//! | `wanted` | a node to create, and what it is known by |
//! | `search` | what the answers to a search mean |
//! | `protected` | creates that are to be carried through, and what comes of them |
//! | `one`, `all` | one create under way; all of them |

mod all;
mod one;
mod protected;
mod search;
mod wanted;

pub(crate) use self::{
    all::Attempts,
    one::{AttemptId, Next},
    protected::{Concluded, CreatedNodes, ProtectedCreate},
    wanted::{KnownBy, Wanted},
};
