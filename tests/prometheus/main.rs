//! The alert rules and the dashboard in a real Prometheus (Debian's package), which scrapes the example service while its
//! sessions expire and its locks are lost: see monitoring/README.md.

mod alerts;
mod process;
mod rules;

use std::path::PathBuf;

/// A file of the folder that users are given.
fn monitoring(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("monitoring").join(file)
}
