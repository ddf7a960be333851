//! Tables of what can happen and what shows what comes of it: whether every test that they name
//! exists, and every row is there.

use std::{collections::BTreeSet, fs};

use crate::tidy::root;

/// A file of such tables, and the rows that it must have: so many of each letter, counted from 1.
struct Tables {
    file: &'static str,
    rows: &'static [(&'static str, u32)],
}

const TABLES: [Tables; 8] = [
    Tables {
        file: "zk-locks/src/guide/migrating.md",
        rows: &[("A", 11), ("C", 14), ("K", 7), ("Z", 2)],
    },
    Tables { file: "docs/scenarios.md", rows: &[("", 68), ("S", 9), ("L", 3), ("N", 3), ("R", 2)] },
    Tables { file: "docs/traps.md", rows: &[("", 70)] },
    Tables { file: "docs/peers.md", rows: &[("K", 13), ("T", 6), ("A", 10)] },
    Tables { file: "tests/peers/curator/names.md", rows: &[("C", 85)] },
    Tables { file: "tests/peers/go/names.md", rows: &[("G", 43)] },
    Tables { file: "tests/peers/kazoo/names.md", rows: &[("P", 30)] },
    Tables { file: "tests/peers/kezhuw/names.md", rows: &[("Z", 48)] },
];

impl Tables {
    fn rows(&self) -> Vec<Row> {
        text(self.file).unwrap().lines().filter_map(Row::read).collect()
    }

    fn expected(&self) -> BTreeSet<String> {
        let rows = self.rows.iter();
        rows.flat_map(|(letter, last)| (1..=*last).map(move |n| format!("{letter}{n}"))).collect()
    }
}

/// A line of one of the tables: what it is called, and what it is shown by.
struct Row {
    name: String,
    shown_by: Vec<String>,
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let name = (*cells.first()?).to_owned();
        let is_header = name.is_empty() || name.starts_with(['#', '-']);
        // The last one ends at the end of the line.
        let last = cells.get(cells.len().checked_sub(2)?)?;
        let shown_by = last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (!is_header).then_some(Self { name, shown_by })
    }
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// Whether there is a test of this name: a transcript, a mutant, or a function in
/// the folder or package that the name begins with.
fn exists(name: &str) -> bool {
    let parts: Vec<&str> = name.split("::").collect();
    match parts[..] {
        [mutant] => text(&format!("tests/mutants/patches/{mutant}.patch")).is_some(),
        ["session", script] => text(&format!("tests/session/scripts/{script}.txt")).is_some(),
        [place, .., test] => sources(place, &parts[1..parts.len() - 1])
            .iter()
            .filter_map(|path| text(path))
            .any(|source| is_test(&source, test)),
        [] => false,
    }
}

/// Where a module of a folder of tests, or of a package, may be.
fn sources(place: &str, module: &[&str]) -> Vec<String> {
    let below = match module {
        [] => vec!["main".to_owned(), "mod".to_owned()],
        module => vec![module.join("/"), format!("{}/mod", module.join("/"))],
    };
    let main = format!("{}/main", module.join("/"));
    let tests = format!("tests/{place}");
    let roots = [format!("{tests}/tests"), tests, format!("{place}/src"), format!("{place}/tests")];
    let places = roots
        .iter()
        .flat_map(|root| below.iter().chain([&main]).map(move |file| format!("{root}/{file}.rs")));
    places.chain([format!("{place}/tests/cli/{}.rs", module.join("/"))]).collect()
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
        let attributes = ["#[test]", "#[test_with(", "#[tokio::test"];
        above.into_iter().any(|line| attributes.iter().any(|attribute| line.starts_with(attribute)))
    })
}

#[test]
fn every_row_is_shown_by_tests_that_exist() {
    let mut wrong = Vec::new();
    for tables in TABLES {
        for Row { name, shown_by } in tables.rows() {
            if shown_by.is_empty() {
                wrong.push(format!("{}: nothing shows {name}", tables.file));
            }
            let missing = shown_by.iter().filter(|test| !exists(test));
            wrong.extend(missing.map(|test| format!("{}: {name}: no test {test}", tables.file)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_row_is_missing_or_twice() {
    for tables in TABLES {
        let rows = tables.rows();
        let names: BTreeSet<String> = rows.iter().map(|row| row.name.clone()).collect();
        assert_eq!(names.len(), rows.len(), "{}: a row is there twice", tables.file);
        assert_eq!(names, tables.expected(), "{}", tables.file);
    }
}

#[test]
fn unknown_names_are_reported() {
    assert!(exists("tidy::lock_crates_never_read_the_wall_clock"));
    assert!(exists("zk-proto::session::liveness::only_the_leader_confirms_less_the_margin"));
    assert!(exists("zk-proto::roundtrip::hostile::random_bytes_decode_within_bounds"));
    assert!(exists("AdoptsOldNode") && !exists("AdoptsNoNode"));
    assert!(!exists("session::a_script_that_nobody_wrote"));
    assert!(!exists("tidy::files"), "a function is not a test");
    assert!(!exists("tidy::nobody_who_holds_a_lock_asks"), "half a name is not a name");
}
