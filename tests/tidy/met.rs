//! Every public function and every variant of the client and the recipes is met by a test or a tested example, or listed with
//! a reason.

use std::{collections::BTreeSet, fs};

use crate::tidy::{
    files, root,
    simulated::{public, words},
};

/// What no test can meet, and why.
const UNMET: [(&str, &str); 10] = [
    ("ClockSkew", "takes a key distribution centre whose clock is wrong"),
    ("Entropy", "the operating system has randomness"),
    ("NoCredentials", BY_WORDS),
    ("NoCryptography", "tests are built with ring"),
    ("Thread", "the operating system gives threads"),
    ("UnknownClient", BY_WORDS),
    ("UnknownRealm", BY_WORDS),
    ("UnknownService", BY_WORDS),
    ("Unreachable", BY_WORDS),
    ("gauge", "lists of metrics are made with it, and those are compared with what recorders get"),
];

const BY_WORDS: &str = "`gssapi` compares the words of a process";

/// The variants in a list of public items: `pub zk_client::ConnectError::TimedOut`.
fn variants(list: &str) -> impl Iterator<Item = &str> {
    let begins_large = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
    let paths = list.lines().filter_map(|line| line.strip_prefix("pub zk_")?.split('(').next());
    paths.filter(|path| !path.contains(' ')).filter_map(move |path| {
        let (owner, name) = path.rsplit_once("::")?;
        let is_variant = begins_large(name) && begins_large(owner.rsplit("::").next()?);
        is_variant.then_some(name)
    })
}

/// What is run of a source of a library: its tests, and the examples in its comments.
fn tested(source: &str) -> String {
    let (code, tests) = source.split_once("#[cfg(test)]").unwrap_or((source, ""));
    let mut run = tests.to_owned();
    let mut is_example = false;
    for line in code.lines() {
        let line = line.trim_start();
        let comment = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        let text = comment.unwrap_or(line).trim_start();
        if text.starts_with("```") {
            is_example = !is_example;
        } else if is_example {
            run.push_str(text);
            run.push('\n');
        }
    }
    run
}

#[test]
fn what_no_test_meets_is_listed_with_its_reason() {
    let read = |path: &std::path::PathBuf| fs::read_to_string(path).unwrap();
    let folders = ["tests", "zk-client/tests", "zk-locks/tests"].map(|name| root().join(name));
    let tests = folders.iter().flat_map(|folder| files(folder, ".rs"));
    let mut run: Vec<String> = tests.map(|path| read(&path)).collect();
    for library in ["zk-client/src", "zk-locks/src"] {
        for ending in [".rs", ".md"] {
            let sources = files(&root().join(library), ending);
            run.extend(sources.iter().map(|path| tested(&read(path))));
        }
    }
    let met: BTreeSet<&str> = run.iter().flat_map(|source| words(source)).collect();
    let lists = ["zk-client", "zk-locks"]
        .map(|name| read(&root().join(format!("tests/surface/{name}.txt"))));
    let all: BTreeSet<&str> =
        lists.iter().flat_map(|list| public(list).chain(variants(list))).collect();
    assert!(all.len() > 300, "the lists of public items were not understood: {all:?}");
    let unmet: BTreeSet<&str> = all.difference(&met).copied().collect();
    let listed = BTreeSet::from(UNMET.map(|(name, _)| name));
    assert_eq!(unmet, listed, "met by no test, and listed as that");
}
