//! The default description of a contender, for people who inspect a queue.

/// Host and process.
pub(crate) fn describe() -> String {
    format!("{} pid {}", host(), std::process::id())
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown host".to_owned())
}
