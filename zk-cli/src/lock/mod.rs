//! What `zk lock` and `zk elect` need besides the lock: signals, and a command to send them to.
//!
//! | module | concern |
//! |---|---|
//! | `hold` | the command, under the lock and no longer |
//! | `signals` | those that we are sent |
//! | `job` | the command, its process group, its end |

pub(crate) mod hold;
pub(crate) mod job;
pub(crate) mod signals;
