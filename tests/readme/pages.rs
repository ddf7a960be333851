//! What pages show is what examples do: every block of Rust on them is a part of a program that is compiled.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What is read first. A line of a block is a line of a program but for its indentation.
const PAGES: [&str; 5] = [
    "README.md",
    "zk-client/README.md",
    "zk-locks/README.md",
    "zk-proto/README.md",
    "zk-testkit/README.md",
];

/// Where the programs are: each file below is one, or a part of one.
const PROGRAMS: [&str; 5] = [
    "tests/quickstart/src",
    "zk-client/examples",
    "zk-locks/examples",
    "zk-proto/examples",
    "zk-testkit/examples",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| programs(folder))).collect()
}

/// The blocks of Rust on a page, each with the number of its first line.
fn blocks(page: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found = Vec::new();
    let mut block: Option<(usize, Vec<&str>)> = None;
    for (number, line) in page.lines().enumerate() {
        match &mut block {
            Some(_) if line == "```" => found.extend(block.take()),
            Some((_, lines)) => lines.push(line),
            None if line.starts_with("```rust") => block = Some((number + 2, Vec::new())),
            None => {}
        }
    }
    found
}

/// Whether these lines stand in a program one behind the other, all moved to the right by the same amount.
fn shows(program: &str, block: &[&str]) -> bool {
    let lines: Vec<&str> = program.lines().collect();
    lines.windows(block.len()).any(|there| {
        let Some(indent) = there[0].strip_suffix(block[0]) else { return false };
        indent.trim().is_empty()
            && there.iter().zip(block).all(|(there, line)| match *line {
                "" => there.is_empty(),
                line => there.strip_prefix(indent) == Some(line),
            })
    })
}

#[test]
fn every_rust_block_is_part_of_a_program() {
    let programs: Vec<String> = PROGRAMS
        .iter()
        .flat_map(|folder| programs(&root().join(folder)))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let blocks = blocks(&text);
        assert!(!blocks.is_empty(), "{page} shows nothing");
        for (line, block) in blocks {
            let shown = programs.iter().any(|program| shows(program, &block));
            assert!(shown, "{page}:{line}: no program does this:\n{}", block.join("\n"));
        }
    }
}

#[test]
fn changed_line_order_or_indent_is_no_match() {
    let program = "fn main() {\n    let a = 1;\n\n    if a > 0 {\n        a();\n    }\n}\n";
    assert!(shows(program, &["let a = 1;", "", "if a > 0 {", "    a();", "}"]));
    assert!(!shows(program, &["let a = 1;", "if a > 0 {"]));
    assert!(!shows(program, &["let a = 2;"]));
    assert!(!shows(program, &["if a > 0 {", "a();"]));
    assert!(!shows(program, &["a = 1;"]), "half a line");
}
