//! Fifty contenders for one lock: what `zk demo` is made of.
//!
//! | module | concern |
//! |---|---|
//! | `stage` | a server, a proxy in front of it that counts, and a referee beside it |
//! | `contenders` | the contenders for the lock |
//! | `resource` | what the lock protects; it trusts no visitor |
//! | `progress` | what is seen while it runs |
//! | `timeline` | who held the lock when, as text |
//! | `verdict` | what the evidence amounts to |

pub(crate) mod contenders;
pub(crate) mod progress;
pub(crate) mod resource;
pub(crate) mod stage;
pub(crate) mod timeline;
pub(crate) mod verdict;
