//! Soak tests of the locks and of the client on real servers, at full strength or in seconds: see docs/soak.md.
//!
//! | module | concern |
//! |---|---|
//! | `rolling` | every recipe, while the members of an ensemble are killed one after the other |
//! | `severed` | holders on a member that is cut off from its leader, and who gets their locks |
//! | `partitions` | every recipe and a client's reads and writes, while the network between members breaks |
//! | `client` | reads, writes and watches, while the members of an ensemble are killed and stopped |
//! | `judges` | whether our judge of histories agrees with another one |
//! | `report` | what a soak test has found, as a table or as JSON |

pub mod client;
pub mod judges;
pub mod partitions;
mod report;
pub mod rolling;
pub mod severed;

use std::{num::ParseIntError, time::Duration};

use clap::builder::RangedU64ValueParser;

pub use report::Report;

/// How long after a fault each recipe may take to be granted again: see docs/soak.md.
const RECOVERY_LIMIT: Duration = Duration::from_secs(40);

/// An option in milliseconds.
fn in_millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

/// An option in seconds.
fn in_seconds(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_secs)
}

/// An option that is so many at least.
fn at_least(least: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(least..)
}
