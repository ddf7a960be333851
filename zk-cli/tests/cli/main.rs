//! The `zk` command, run as its users run it, on real servers.

mod copies;
mod demo;
mod durations;
mod elect;
mod help;
mod holders;
mod lock;
mod mistakes;
mod nodes;
#[cfg(target_os = "linux")]
mod pictures;
mod pool;
mod queue;
mod quotas;
#[cfg(target_os = "linux")]
mod screen;
mod security;
mod serve;
mod servers;
#[cfg(target_os = "linux")]
mod shell;
mod signals;
mod support;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod tmux;
#[cfg(target_os = "linux")]
mod top;
mod trees;
mod watch;
