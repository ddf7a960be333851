//! Carrying through: what outlives a connection, a refusal, and whoever asked for it.
//!
//! All of this is told what has happened and says what to submit; it sends nothing itself.
//!
//! | module | concern |
//! |---|---|
//! | `attempt` | creates that are carried through a lost reply |
//! | `sweep`, `unconfirmed` | deletes that happen whether or not anybody waits; how many are left |
//! | `node` | nodes that go with their owner |
//! | `level` | what the servers have turned out not to know |
//! | `published`, `lease`, `session` | where the session stands, until when it is sure, and views of both |
//! | `version` | versions of data, as operations insist on them |

pub(crate) mod attempt;
pub(crate) mod lease;
pub(crate) mod level;
pub(crate) mod node;
pub(crate) mod published;
pub(crate) mod session;
pub(crate) mod sweep;
pub(crate) mod unconfirmed;
pub(crate) mod version;
