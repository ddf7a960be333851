//! Work that outlives a connection, a refusal, or its caller.
//!
//! These types are given events and return what to submit; they send nothing themselves.
//!
//! | module | concern |
//! |---|---|
//! | `attempt` | creates that are carried through a lost reply |
//! | `guaranteed_delete`, `unconfirmed` | deletes that happen whether or not a caller waits; how many are left |
//! | `node` | nodes that are deleted with their owner |
//! | `capabilities` | operations that the servers turned out not to support |
//! | `published`, `lease`, `session` | the session's state, its lease, and views of both |
//! | `lease_keeper` | who relies on the lease |
//! | `known` | all that the driver knows for others |
//! | `version` | versions of data that operations require |

pub(crate) mod attempt;
pub(crate) mod capabilities;
pub(crate) mod guaranteed_delete;
pub(crate) mod known;
pub(crate) mod lease;
pub(crate) mod lease_keeper;
pub(crate) mod node;
pub(crate) mod published;
pub(crate) mod session;
pub(crate) mod unconfirmed;
pub(crate) mod version;
