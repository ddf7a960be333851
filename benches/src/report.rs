//! What comes out: a line of JSON.

use serde::Serialize;
use serde_json::{Map, Value};

/// What was measured. Programs in other languages print the same fields, as far as they have them.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whose work it was.
    pub client: String,
    /// What it was.
    pub workload: String,
    /// As asked for.
    pub in_flight: usize,
    /// As asked for, in bytes.
    pub payload: usize,
    /// As asked for.
    pub threads: usize,
    /// As asked for.
    pub style: String,
    /// As asked for.
    pub unawaited: bool,
    /// How many operations were completed.
    pub operations: u64,
    /// In how long.
    pub seconds: f64,
    /// The quotient of the two.
    pub ops_per_second: f64,
    /// Half of the operations took at most so many microseconds.
    pub p50_us: Option<f64>,
    /// 99 % of them did.
    pub p99_us: Option<f64>,
    /// 99.9 % of them did.
    pub p999_us: Option<f64>,
    /// Microseconds of processors that the process has had for each operation.
    pub cpu_us_per_op: f64,
    /// The same as a share of the time: 1 is one core.
    pub cpu_share: f64,
    /// Calls of the allocator for each operation, if they were counted.
    pub allocations_per_op: Option<f64>,
    /// What is on the heap at the end, if it was counted.
    pub heap_bytes: Option<usize>,
    /// Resident memory of the process at the end.
    pub resident_kib: Option<u64>,
    /// The most that it has ever had.
    pub peak_kib: Option<u64>,
    /// Requests that have reached the server meanwhile.
    pub requests_seen: Option<u64>,
    /// What only this workload has.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Report {
    /// The same with one more figure.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }
}

/// Prints a report, as one line.
pub fn print(report: &Report) {
    println!("{}", serde_json::to_string(report).unwrap_or_default());
}
