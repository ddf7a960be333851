//! What promtool says of the rules, and of what the dashboard asks for.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::monitoring;

/// How Grafana's variables read in what a Prometheus is asked, as if everything were chosen.
pub(crate) fn filled(expression: &str, interval: &str) -> String {
    let names = ["$job", "$instance", "$client", "$lock"];
    let chosen = names.iter().fold(expression.to_owned(), |text, name| text.replace(name, ".*"));
    chosen.replace("$__rate_interval", interval)
}

/// What the dashboard's panels ask for: title and expression.
pub(crate) fn panels() -> Vec<(String, String)> {
    let dashboard = fs::read_to_string(monitoring("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut asked = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            asked.push((text(&panel["title"]), text(&target["expr"])));
        }
    }
    assert!(asked.len() > 20, "the expressions are not where this test looks");
    asked
}

fn promtool(arguments: &[&str], file: &Path) -> Output {
    let ran = Command::new("promtool").args(arguments).arg(file).output();
    ran.expect("promtool is needed here: Debian's package prometheus, or .ci/packages prometheus")
}

fn passes(arguments: &[&str], file: &Path) {
    let output = promtool(arguments, file);
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success(), "promtool {arguments:?}: {}", said.join("\n"));
}

#[test]
fn rules_are_valid_and_fire_when_they_should() {
    passes(&["check", "rules"], &monitoring("alerts.yml"));
    passes(&["test", "rules"], &monitoring("alerts_test.yml"));
}

/// A rule that says something else fails the tests of the rules.
#[test]
fn the_tests_of_rules_notice_a_changed_rule() {
    let folder = tempfile::tempdir().unwrap();
    let rules = fs::read_to_string(monitoring("alerts.yml")).unwrap();
    fs::copy(monitoring("alerts_test.yml"), folder.path().join("alerts_test.yml")).unwrap();
    let fails = |rules: &str| {
        fs::write(folder.path().join("alerts.yml"), rules).unwrap();
        !promtool(&["test", "rules"], &folder.path().join("alerts_test.yml")).status.success()
    };
    assert!(!fails(&rules));
    assert!(fails(&rules.replacen("- alert: ", "- alert: Other", 1)));
    let names: Vec<_> = rules.match_indices("- alert: ").map(|(at, _)| at).collect();
    for (number, at) in names.iter().enumerate() {
        let (before, rule) = rules.split_at(*at);
        let name = rule.lines().next().unwrap();
        let end = names.get(number + 1).map_or(rules.len(), |next| *next) - at;
        let (this, others) = rule.split_at(end);
        // The limit is one that nothing exceeds.
        let other = this.replacen("]))) > ", "]))) > 1000 + ", 1);
        let other = if other == this { this.replacen(") > ", ") > 1000 + ", 1) } else { other };
        assert_ne!(other, this, "{name}");
        assert!(fails(&format!("{before}{other}{others}")), "{name}");
    }
}

#[test]
fn the_dashboard_asks_for_what_prometheus_understands() {
    let mut rules = "groups:\n  - name: panels\n    rules:\n".to_owned();
    for (number, (_, expression)) in panels().iter().enumerate() {
        let expression = serde_json::to_string(&filled(expression, "5m")).unwrap();
        rules += &format!("      - record: panel{number}\n        expr: {expression}\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("panels.yml");
    fs::write(&file, rules).unwrap();
    passes(&["check", "rules"], &file);
}
