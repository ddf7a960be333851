//! What `zk lock` and `zk elect` need besides the lock: signals, and a command to send them to.
//!
//! | module | concern |
//! |---|---|
//! | `hold` | the command, under the lock and no longer |
//! | `signals` | those that we are sent |
//! | `guardian` | the end of the command if this process is killed |
//! | `job` | the command, its process group, its end |

pub(crate) mod guardian;
pub(crate) mod hold;
pub(crate) mod job;
pub(crate) mod signals;
