//! What `zk lock` and `zk elect` need besides the lock: signals, and a command to send them to.
//!
//! | module | concern |
//! |---|---|
//! | `hold` | the command, under the lock and no longer |
//! | `signals` | those that we are sent |
//! | `guardian` | the end of the command if this process is killed |
//! | `launcher` | the command's first moment, in which the guardian is told of it |
//! | `job` | the command: started, signalled, ended |
//! | `processes` | which process group the command is in |

pub(crate) mod guardian;
pub(crate) mod hold;
pub(crate) mod job;
#[cfg(target_os = "linux")]
pub(crate) mod launcher;
pub(crate) mod processes;
pub(crate) mod signals;
