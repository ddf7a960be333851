//! What `zk lock` needs besides the lock: signals, and a command to send them to.
//!
//! | module | concern |
//! |---|---|
//! | `signals` | those that we are sent |
//! | `job` | the command, its process group, its end |

pub(crate) mod job;
pub(crate) mod signals;
