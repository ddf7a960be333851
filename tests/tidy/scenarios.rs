//! Whether `docs/scenarios.md` names tests that exist, and all scenarios that there are.

use std::{collections::BTreeSet, fs};

use crate::root;

/// A line of one of the tables: what it is called, and what it is shown by.
struct Row {
    name: String,
    shown_by: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/scenarios.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let name = (*cells.first()?).to_owned();
        let is_header = name.is_empty() || name.starts_with(['#', '-']);
        // The last one ends at the end of the line.
        let last = cells.get(cells.len().checked_sub(2)?)?;
        let shown_by = last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (!is_header).then_some(Row { name, shown_by })
    };
    text.lines().filter_map(row).collect()
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// Whether there is a test of this name.
fn exists(name: &str) -> bool {
    let parts: Vec<&str> = name.split("::").collect();
    let sources = match parts[..] {
        [mistake] => {
            return text("zk-proto/src/planted.rs").unwrap().contains(&format!(" {mistake}: "));
        }
        ["session", script] => {
            return text(&format!("tests/session/scripts/{script}.txt")).is_some();
        }
        [folder, _] => vec![format!("tests/{folder}/main.rs")],
        [folder, file, _] => vec![
            format!("tests/{folder}/{file}.rs"),
            format!("{folder}/src/{file}.rs"),
            format!("{folder}/tests/cli/{file}.rs"),
        ],
        _ => return false,
    };
    let test = parts[parts.len() - 1];
    sources.iter().filter_map(|path| text(path)).any(|source| is_test(&source, test))
}

/// Whether a source has a test of this name, and not only a function.
fn is_test(source: &str, test: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let begins = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ").is_some_and(|rest| rest.starts_with(&format!("{test}(")))
    };
    let at = lines.iter().position(|line| begins(line));
    at.is_some_and(|at| {
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
        above
            .into_iter()
            .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn every_scenario_is_shown_by_tests_that_exist() {
    for Row { name, shown_by } in rows() {
        assert!(!shown_by.is_empty(), "nothing shows {name}");
        for test in shown_by {
            assert!(exists(&test), "{name} is shown by {test}, which does not exist");
        }
    }
}

#[test]
fn no_scenario_and_no_rule_is_missing_or_twice() {
    let rows = rows();
    let names: BTreeSet<&str> = rows.iter().map(|row| &*row.name).collect();
    assert_eq!(names.len(), rows.len());
    let numbers = (1..=68).map(|number: u32| number.to_string());
    let rules = (1..=9).map(|n| format!("S{n}")).chain((1..=3).map(|n| format!("L{n}")));
    let rules =
        rules.chain((1..=3).map(|n| format!("N{n}"))).chain((1..=2).map(|n| format!("R{n}")));
    let expected: Vec<String> = numbers.chain(rules).collect();
    let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_name_that_nobody_has_would_be_noticed() {
    assert!(exists("tidy::nobody_who_holds_a_lock_asks_the_wall_clock"));
    assert!(exists("AdoptsOldNode") && !exists("AdoptsNoNode"));
    assert!(!exists("session::a_script_that_nobody_wrote"));
    assert!(!exists("tidy::files"), "a function is not a test");
    assert!(!exists("tidy::nobody_who_holds_a_lock_asks"), "half a name is not a name");
}
