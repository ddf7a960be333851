//! What systems for monitoring are told: metrics, the page that lists them, alert rules and dashboards that use them,
//! and spans.

mod counted;
mod monitoring;
mod page;
mod recorder;
mod spans;
mod values;

use zk_client::metrics::Metric;

/// All metrics there are.
fn all() -> Vec<Metric> {
    [zk_client::metrics::LIST, zk_locks::metrics::LIST].concat()
}
