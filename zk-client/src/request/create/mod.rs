//! Creating nodes.
//!
//! | module | concern |
//! |---|---|
//! | `mode` | kinds of nodes, and what servers are asked for to make them |
//! | `wish` | what is to be created, and what comes of it |
//! | `parents` | creating what is missing above |
//! | `started` | creates that are carried through a lost reply |
//! | `builder`, `all` | the builders: one node, several together |

mod all;
mod builder;
mod mode;
mod parents;
mod started;
mod wish;

pub(crate) use self::mode::CreateOperation;
pub use self::{
    all::{CreateAllProtected, PendingNodes},
    builder::{Create, CreateOrExists, CreateProtected, PendingCreate},
    mode::CreateMode,
    wish::Created,
};
