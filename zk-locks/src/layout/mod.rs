//! What nodes are called and which of the others count: sharing locks with other implementations.
//!
//! | module | concern |
//! |---|---|
//! | `role` | what a node is created for |
//! | `names` | names of one's own |
//! | `known` | names of implementations that are known |
//! | `filter` | which children of a path have a place in a queue |
//! | `company` | names of every implementation, and what they count as: tests |

#[cfg(test)]
mod company;
mod filter;
mod known;
mod names;
mod role;

pub use self::{filter::Strangers, known::Layout, names::Names};
pub(crate) use self::{
    filter::{Filter, NAME_END},
    role::Role,
};
