//! The `zk` command, run as its users run it, on real servers.

mod demo;
mod durations;
mod elect;
mod help;
mod holders;
mod lock;
mod mistakes;
mod nodes;
mod queue;
mod security;
mod serve;
mod servers;
mod signals;
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod trees;
mod watch;
