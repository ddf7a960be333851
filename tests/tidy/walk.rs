//! The walk of a request in ARCHITECTURE.md: each step is in the code, and there are few.

use std::{collections::BTreeSet, fs};

use crate::tidy::root;

/// Files on the way of a `get` from the call to the socket and back.
const FILES_MAX: usize = 12;

/// The steps one way, function and file each: the list below a line.
fn steps<'a>(text: &'a str, way: &str) -> Vec<(&'a str, &'a str)> {
    let list = text.lines().skip_while(|line| *line != way).skip(2);
    let step = |line: &'a str| {
        let mut names = line.split('`').skip(1).step_by(2);
        names.next().zip(names.next())
    };
    list.map_while(step).collect()
}

/// What is wrong with the steps one way, given the text of a file.
fn wrong(steps: &[(&str, &str)], text: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (function, file) in steps {
        if !seen.insert(file) {
            wrong.push(format!("{file} is entered twice"));
        }
        let text = text(file).unwrap_or_default();
        let is_there = |after: &str| text.contains(&format!("fn {function}{after}"));
        if !is_there("(") && !is_there("<") {
            wrong.push(format!("{file} has no function {function}"));
        }
    }
    wrong
}

#[test]
fn a_get_walks_through_few_files() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let ways = ["Down:", "Back:"].map(|way| steps(&text, way));
    assert!(ways.iter().all(|steps| steps.len() > 5), "no walk: {ways:?}");
    for steps in &ways {
        let wrong = wrong(steps, |file| fs::read_to_string(root().join(file)).ok());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    let files: BTreeSet<&str> = ways.iter().flatten().map(|(_, file)| *file).collect();
    assert!(files.len() <= FILES_MAX, "{} files: {files:#?}", files.len());
}

#[test]
fn a_walk_that_is_not_there_is_noticed() {
    let text = "Down:\n\n1. `get`, `a.rs`: asks\n2. `send`, `b.rs`: sends\n3. `get`, `a.rs`: again\n\nBack:\n\n1. `x`, `y`\n";
    let down = steps(text, "Down:");
    assert_eq!(down, [("get", "a.rs"), ("send", "b.rs"), ("get", "a.rs")]);
    assert_eq!(steps(text, "Back:"), [("x", "y")]);
    let files = |file: &str| (file == "a.rs").then(|| "pub const fn get<'a>(".to_owned());
    assert_eq!(wrong(&down, files), ["b.rs has no function send", "a.rs is entered twice"]);
}
