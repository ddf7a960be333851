//! What of a library's public interface takes a duration.

use std::{collections::BTreeSet, time::Duration};

/// The shortest ones and the longest ones there are.
pub const LENGTHS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_secs(3600),
    Duration::from_secs(i64::MAX as u64),
    Duration::MAX,
];

/// The functions that take one, by type and name, of all that is public in a package: a list as `tests/surface` keeps it.
pub fn taken(public: &str, package: &str) -> BTreeSet<String> {
    let takes = |line: &&str| line.contains("Duration") && line.contains('(');
    let name = |line: &str| {
        let (before, arguments) = line.split_once('(')?;
        let (arguments, _) = arguments.split_once(") ->").unwrap_or((arguments, ""));
        let (_, path) = before.split_once(&format!("{package}::"))?;
        let path = path.replace("<'_>", "");
        arguments.contains("Duration").then_some(path)
    };
    public.lines().filter(takes).filter_map(name).collect()
}
