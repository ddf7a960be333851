//! Names of nodes, and which of them count: sharing locks with other implementations.
//!
//! | module | concern |
//! |---|---|
//! | `role` | the purpose of a node |
//! | `id` | ids in names |
//! | `names` | custom names |
//! | `known` | names of known implementations |
//! | `filter` | which children of a path have a place in a queue |
//! | `implementations` | names of every implementation, and what they count as: tests |

mod filter;
mod id;
#[cfg(test)]
mod implementations;
mod known;
mod names;
mod role;

pub use self::{filter::ForeignNodes, known::Layout, names::Names};
pub(crate) use self::{
    filter::{Filter, NAME_END, without_id},
    role::Role,
};
