//! The dashboard and the alert rules beside the list of metrics: what they ask for exists, and nothing is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;
use zk_client::{ConnectOptions, ErrorCode, OpCode, metrics::Kind};
use zk_locks::Lock;
use zk_testkit::TestServer;

use super::{all, recorder::Recording};

/// What a Prometheus adds to every metric.
const OF_PROMETHEUS: [&str; 2] = ["job", "instance"];

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap()
}

/// A selector in an expression: a metric, and its label matchers.
#[derive(Debug, PartialEq)]
struct Selector<'a> {
    metric: &'a str,
    matchers: Vec<(&'a str, &'a str)>,
}

/// All selectors of metrics of ZooKeeper in a text.
fn selectors(text: &str) -> Vec<Selector<'_>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("zookeeper_") {
        let name = &rest[at..];
        let (metric, behind) = name.split_at(name.find(|c| !is_word(c)).unwrap_or(name.len()));
        let inner = behind.strip_prefix('{').and_then(|it| it.split_once('}')).map(|it| it.0);
        let matchers =
            inner.into_iter().flat_map(|inner| inner.split(", ")).flat_map(|it| it.split(",\n"));
        let matchers = matchers.map(|matcher| {
            let (label, value) = matcher.split_once('=').unwrap_or_else(|| panic!("{matcher}"));
            (label.trim().trim_end_matches('!'), value.trim_start_matches('~').trim_matches('"'))
        });
        found.push(Selector { metric, matchers: matchers.collect() });
        rest = behind;
    }
    found
}

/// What is wrong with the selectors of a text.
fn faults(text: &str) -> Vec<String> {
    let mut series = BTreeMap::new();
    for metric in all() {
        let labels: BTreeSet<_> = metric.labels.iter().copied().chain(OF_PROMETHEUS).collect();
        if let Kind::Histogram(_) = metric.kind {
            for part in ["sum", "count"] {
                series.insert(format!("{}_{part}", metric.name), labels.clone());
            }
            let limits = labels.into_iter().chain(["le"]).collect();
            series.insert(format!("{}_bucket", metric.name), limits);
        } else {
            series.insert(metric.name.to_owned(), labels);
        }
    }
    let mut wrong = Vec::new();
    for Selector { metric, matchers } in selectors(text) {
        let Some(labels) = series.get(metric) else {
            wrong.push(format!("there is no {metric}"));
            continue;
        };
        for (label, value) in matchers {
            if !labels.contains(label) {
                wrong.push(format!("{metric} has no label {label}"));
            }
            // Those whose values have a list elsewhere. The others are in their metric's description.
            let help =
                || all().iter().find(|it| it.name == metric).map_or("", |it| it.help).to_owned();
            let is_known = |value: &str| match label {
                "code" => ErrorCode::KNOWN.iter().any(|code| code.name() == Some(value)),
                "operation" => OpCode::KNOWN.iter().any(|op| op.name() == Some(value)),
                "state" | "reason" | "outcome" if metric.ends_with("_bucket") => {
                    ["granted", "given_up"].contains(&value)
                }
                "state" | "reason" | "outcome" => help()
                    .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .any(|it| it == value),
                _ => true,
            };
            let exact = |value: &&str| !value.contains(['*', '$', '.']);
            let unknown = value.split('|').filter(exact).filter(|value| !is_known(value));
            wrong.extend(unknown.map(|value| format!("{metric} has no {label} {value}")));
        }
    }
    wrong
}

/// The expressions of all panels.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_dashboard_shows_all_metrics() {
    let dashboard: Value = serde_json::from_str(&text("monitoring/dashboard.json")).unwrap();
    let expressions = expressions(&dashboard).join("\n");
    assert_eq!(faults(&expressions), Vec::<String>::new());
    let shown: BTreeSet<_> = selectors(&expressions).iter().map(|it| it.metric).collect();
    let is_shown =
        |name: &str| shown.iter().any(|it| *it == name || it.starts_with(&format!("{name}_")));
    let hidden: Vec<_> = all().iter().map(|it| it.name).filter(|name| !is_shown(name)).collect();
    assert_eq!(hidden, Vec::<&str>::new());
    let choices = dashboard["templating"]["list"].to_string().replace("\\\"", "\"");
    assert_eq!(faults(&choices), Vec::<String>::new());
}

#[test]
fn panels_have_places_and_numbers_of_their_own() {
    let dashboard: Value = serde_json::from_str(&text("monitoring/dashboard.json")).unwrap();
    let (mut numbers, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "{}", panel["title"]);
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{}", panel["title"]);
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(places.insert((x, y)), "{} lies on another panel", panel["title"]);
            }
        }
    }
}

/// The alerts of the rules, each with its part of the file.
fn alerts(rules: &str) -> BTreeMap<&str, &str> {
    let alerts = rules.split("- alert: ").skip(1);
    alerts
        .filter_map(|rule| rule.split_once('\n'))
        .map(|(name, rule)| (name.trim(), rule))
        .collect()
}

/// Where the page of errors is published, which the rules name section by section.
const RUNBOOKS: &str = "https://docs.rs/zk-client/latest/zk_client/guide/errors/#";

/// As rustdoc makes the anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect()
}

#[test]
fn every_alert_is_tested_and_has_a_runbook() {
    let (rules, tests) = (text("monitoring/alerts.yml"), text("monitoring/alerts_test.yml"));
    assert_eq!(faults(&rules), Vec::<String>::new());
    assert_eq!(faults(&tests), Vec::<String>::new());
    let (alerts, page) = (alerts(&rules), text("zk-client/src/guide/errors.md"));
    assert!(alerts.len() > 10, "the alerts are not where this test looks");
    let tested = tests.lines().filter_map(|line| line.strip_prefix("  - name: "));
    assert_eq!(tested.collect::<BTreeSet<_>>(), alerts.keys().copied().collect());
    for (name, rule) in alerts {
        let runbook = rule.lines().find_map(|line| line.trim().strip_prefix("runbook_url: "));
        let section = runbook.and_then(|it| it.strip_prefix(RUNBOOKS)).expect("a runbook");
        let mut headings = page.lines().filter_map(|line| line.strip_prefix("## "));
        assert!(headings.any(|heading| anchor(heading) == section), "{name}: {section}");
    }
}

/// Whether a value is one that an alert asks for: words, and beginnings of words.
fn is_asked_for(pattern: &str, value: &str) -> bool {
    let mut words = pattern.split('|');
    words.any(|word| word.strip_suffix(".*").map_or(word == value, |it| value.starts_with(it)))
}

/// Prometheus does not see the first increase of a counter that appears with it, and it may be the only one.
#[tokio::test(flavor = "current_thread")]
async fn counters_whose_first_increase_alerts_begin_at_zero() {
    let recording = Recording::default();
    let _installed = metrics::set_default_local_recorder(&recording);
    let server = TestServer::start().await.unwrap();
    let options = ConnectOptions::new(&server.connect_string()).unwrap();
    let zk = options.connect().await.unwrap();
    let _lock = Lock::builder(&zk, "/lock").metrics_name("tested").build();
    let registered = recording.series();
    let rules = text("monitoring/alerts.yml");
    let first = |rule: &&str| rule.contains("increase(") && rule.contains("m])) > 0");
    let alerts = alerts(&rules);
    let mut asked = 0;
    for Selector { metric, matchers } in alerts.into_values().filter(first).flat_map(selectors) {
        let of_metric = || registered.iter().filter(|(name, ..)| name == metric);
        assert!(of_metric().next().is_some(), "{metric}");
        for (label, pattern) in matchers {
            let has = |value: &str| {
                let is_it = |(k, v): &(String, String)| k == label && v == value;
                of_metric().any(|(_, _, labels, _)| labels.iter().any(is_it))
            };
            // Those of sessions are no callers' requests.
            let own = [OpCode::CREATE_SESSION, OpCode::SET_WATCHES, OpCode::SET_WATCHES2];
            let callers = OpCode::KNOWN.iter().filter(|op| !own.contains(op));
            let known: Vec<_> = match label {
                "operation" => callers.filter_map(|op| op.name()).collect(),
                "code" => ErrorCode::KNOWN.iter().filter_map(|code| code.name()).collect(),
                _ => pattern.split('|').collect(),
            };
            for value in known.into_iter().filter(|value| is_asked_for(pattern, value)) {
                assert!(has(value), "{metric} has no {label} {value} from the start");
                asked += 1;
            }
        }
    }
    assert!(asked > 10, "the alerts are not where this test looks: {asked}");
}

#[test]
fn what_asks_for_nothing_that_exists_is_noticed() {
    let wrong = |expression: &str| faults(expression).len();
    assert_eq!(wrong("zookeeper_lock_held{lock=\"a\", job=~\"$job\"}"), 0);
    assert_eq!(wrong("rate(zookeeper_lock_holds[5m])"), 1);
    assert_eq!(wrong("zookeeper_lock_hold_duration_seconds"), 1);
    assert_eq!(wrong("zookeeper_lock_held{client=\"a\"}"), 1);
    assert_eq!(wrong("zookeeper_client_sessions{state=~\"connected|gone\"}"), 1);
    assert_eq!(wrong("zookeeper_client_request_rejections_total{code=\"InvalidACL\"}"), 1);
    assert_eq!(
        selectors("f(zookeeper_a_b{c!=\"d\",\ne=~\"f\"}[5m])"),
        [Selector { metric: "zookeeper_a_b", matchers: vec![("c", "d"), ("e", "f")] }]
    );
}
