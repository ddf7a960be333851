//! Creating nodes.
//!
//! | module | concern |
//! |---|---|
//! | `mode` | kinds of nodes, and the operations that create them |
//! | `wish` | a requested node and the created node |
//! | `parents` | creating missing parents |
//! | `started` | creates that are carried through a lost reply |
//! | `builder`, `all` | the builders: one node, several together |

mod all;
mod builder;
mod mode;
mod parents;
mod started;
mod wish;

pub(crate) use self::mode::CreateOperation;
pub use self::{all::CreateAllProtected, builder::Create, mode::CreateMode, wish::Created};
