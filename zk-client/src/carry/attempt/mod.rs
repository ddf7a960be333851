//! Creates that the session, not the caller, carries through a lost reply.
//!
//! The node's name begins with a unique id. If the reply is lost, the session, once connected again, sends a `sync` and
//! then lists the siblings: a node with that id is the one that was created; if there is none, none will ever appear,
//! and the session creates the node again. The `sync` is not optional: a create that the leader has accepted but not
//! committed is invisible to a client that reconnects, and without the `sync` a second node would be created.
//!
//! `sync`, listing and second create go over one connection, or all of it begins anew: a leader that was replaced and has
//! not noticed answers a `sync` too (ZOOKEEPER-1675), but what is created there will never be.
//!
//! Several nodes can be created in one transaction: then either all are found, or none.
//!
//! | module | concern |
//! |---|---|
//! | `node_spec` | a node to create, and how it is recognised |
//! | `search` | interpreting the replies of a search |
//! | `protected` | a protected create and its result |
//! | `one`, `all` | one create in progress; all of them |

mod all;
mod node_spec;
mod one;
mod protected;
mod search;

pub(crate) use self::{
    all::Attempts,
    node_spec::{KnownBy, NodeSpec},
    one::{AttemptId, Next},
    protected::{CLOSED, Concluded, CreatedNodes, ProtectedCreate, Started},
};
