//! The page that lists all metrics: made here, `REWRITE=1 cargo test -p zk-tests --test all metrics::`.

use std::{fmt::Write as _, fs, path::Path};

use zk_client::metrics::{Kind, Metric};

use super::all;

const PAGE: &str = "monitoring/metrics.md";

const HEAD: &str = "\
# Metrics

What programs with the feature `metrics` of `zk-client` or `zk-locks` report to the recorder of the crate `metrics` that
they have installed. Made by a test, `tests/metrics/page.rs`. `client` is the name that the program gives to
its sessions, `lock` the name of its locks; all other labels have a fixed list of values, and none is a path.
";

fn section(page: &mut String, title: &str, metrics: &[Metric]) {
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "\n## {title}\n\n| metric | kind | unit | labels | meaning |\n|---|---|---|---|---|"
    );
    for Metric { name, kind, unit, labels, help, .. } in metrics {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        let _ = writeln!(
            page,
            "| `{name}` | {kind} | {} | {} | {help} |",
            unit.as_str(),
            labels.join(", ")
        );
    }
}

#[test]
fn the_page_lists_all_metrics() {
    let mut made = HEAD.to_owned();
    section(&mut made, "Sessions", zk_client::metrics::LIST);
    section(&mut made, "Locks", zk_locks::metrics::LIST);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(PAGE);
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == made, "{PAGE} is not up to date: REWRITE=1 makes it anew");
}

/// Prometheus's conventions for names: <https://prometheus.io/docs/practices/naming/>.
#[test]
fn names_follow_conventions_of_prometheus() {
    for Metric { name, kind, unit, labels, help, .. } in all() {
        let ends = |end| name.ends_with(end);
        assert!(name.starts_with("zookeeper_client_") || name.starts_with("zookeeper_lock_"));
        assert!(name.chars().all(|it| it.is_ascii_lowercase() || it == '_'), "{name}");
        assert_eq!(ends("_total"), kind == Kind::Counter, "{name}");
        assert_eq!(ends("_seconds"), unit == metrics::Unit::Seconds, "{name}");
        assert_eq!(ends("_bytes"), unit == metrics::Unit::Bytes, "{name}");
        // Made by exporters of histograms.
        assert!(!["_sum", "_count", "_bucket"].iter().any(|end| name.ends_with(end)), "{name}");
        assert!(!labels.iter().any(|label| ["le", "quantile", "job", "instance"].contains(label)));
        assert!(help.ends_with('.') && !help.contains('|'), "{name}: {help}");
        if let Kind::Histogram(limits) = kind {
            assert!(limits.is_sorted() && limits.len() <= 20, "{name}");
        }
    }
}
