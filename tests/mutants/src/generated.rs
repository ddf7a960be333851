//! What cargo-mutants would change: read from its list, and put behind switches as patches are, so that one build has all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use serde_json::Value;

use crate::{
    area::Area,
    patch::Edit,
    schema::{self, Variant},
};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// As cargo-mutants calls it, with its place.
    pub(crate) name: String,
    pub(crate) file: String,
    /// Lines and columns, from 1: of the first character, and of the one behind the last.
    from: (usize, usize),
    to: (usize, usize),
    replacement: String,
}

impl Change {
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let place = |end: &str| {
            let number = |key: &str| usize::try_from(value["span"][end][key].as_u64()?).ok();
            Some((number("line")?, number("column")?))
        };
        Some(Self {
            name: text("name")?,
            file: text("file")?,
            from: place("start")?,
            to: place("end")?,
            replacement: text("replacement")?,
        })
    }

    /// Its name without the place, which says the same when lines have moved.
    pub(crate) fn key(&self) -> String {
        let what = self.name.splitn(4, ':').nth(3).unwrap_or(&self.name);
        format!("{}:{what}", self.file)
    }

    fn edit(&self, lines: &[&str]) -> Option<Edit> {
        let (first, last) = (self.from.0.checked_sub(1)?, self.to.0.checked_sub(1)?);
        let at = |line: &str, column: usize| {
            let mut places = line.char_indices().map(|(at, _)| at).chain([line.len()]);
            places.nth(column.saturating_sub(1))
        };
        let (head, tail) = (lines.get(first)?, lines.get(last)?);
        let new = format!(
            "{}{}{}",
            head.get(..at(head, self.from.1)?)?,
            self.replacement,
            tail.get(at(tail, self.to.1)?..)?
        );
        Some(Edit { lines: first..last + 1, new: new.lines().map(str::to_owned).collect() })
    }
}

/// What cargo-mutants lists for an area.
pub(crate) fn list(root: &Path, area: &Area) -> Result<Vec<Change>, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["mutants", "--list", "--json", "--no-config", "--workspace"]);
    cargo.args(area.files.iter().flat_map(|file| ["--file", file]));
    let output = cargo.current_dir(root).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("needs cargo-mutants (cargo install --locked cargo-mutants): {said}"));
    }
    let list: Vec<Value> =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let changes: Vec<Change> = list.iter().filter_map(Change::read).collect();
    if changes.is_empty() {
        return Err(format!("cargo-mutants would change nothing in {:?}", area.files));
    }
    Ok(changes)
}

/// A change that has been put into the text of its file, and on which lines of that its function is, and itself.
#[derive(Debug)]
struct Placed {
    number: usize,
    function: std::ops::Range<usize>,
    own: std::ops::Range<usize>,
}

/// Files with changes behind switches, by name.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) files: BTreeMap<String, String>,
    placed: BTreeMap<String, Vec<Placed>>,
}

impl Merged {
    /// Merges those changes that can be: not all can be told apart by a switch, since `const` functions cannot ask one.
    /// Returns the others' numbers too.
    pub(crate) fn new(
        root: &Path,
        changes: &[Change],
        without: &BTreeSet<usize>,
    ) -> Result<(Self, BTreeSet<usize>), String> {
        let (mut merged, mut left_out) = (Self::default(), BTreeSet::new());
        let files: BTreeSet<&str> = changes.iter().map(|change| &*change.file).collect();
        for file in files {
            let text = fs::read_to_string(root.join(file)).map_err(|error| error.to_string())?;
            let lines: Vec<&str> = text.lines().collect();
            let mut variants = Vec::new();
            for (number, change) in changes.iter().enumerate() {
                if change.file != file || without.contains(&number) {
                    continue;
                }
                let variant = change.edit(&lines).map(|edit| Variant {
                    number,
                    name: &change.name,
                    edits: vec![edit],
                });
                match variant.filter(|one| schema::merge(&text, std::slice::from_ref(one)).is_ok())
                {
                    Some(variant) => variants.push(variant),
                    None => {
                        left_out.insert(number);
                    }
                }
            }
            let text = schema::merge(&text, &variants)?;
            merged.placed.insert(file.to_owned(), placed(&text));
            merged.files.insert(file.to_owned(), text);
        }
        Ok((merged, left_out))
    }

    /// Which changes may be what the compiler objects to on a line of a file: the one there, or all of its function.
    pub(crate) fn suspects(&self, file: &str, line: usize) -> BTreeSet<usize> {
        let placed = || self.placed.iter().filter(|it| file.ends_with(it.0)).flat_map(|it| it.1);
        let number = |it: &Placed| it.number;
        let exact: BTreeSet<usize> =
            placed().filter(|it| it.own.contains(&line)).map(number).collect();
        if !exact.is_empty() {
            return exact;
        }
        placed().filter(|it| it.function.contains(&line)).map(number).collect()
    }
}

/// Where the changes are in a merged text; lines are counted from 1.
fn placed(text: &str) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    let mut first_of_function = 0;
    for (line, content) in text.lines().enumerate().map(|(at, content)| (at + 1, content)) {
        let number = content.split_once("if crate::mutant::is(").and_then(|(before, rest)| {
            if before.is_empty() {
                first_of_function = placed.len();
            }
            rest.split_once(')')?.0.parse().ok()
        });
        if number.is_some() || content == "} else {" {
            let open = placed.last_mut().filter(|last| last.own.end == usize::MAX);
            if let Some(last) = open {
                last.own.end = line;
            }
        }
        if let Some(number) = number {
            let (function, own) = (line..usize::MAX, line..usize::MAX);
            placed.push(Placed { number, function, own });
        } else if content == "}" && placed.iter().any(|it| it.function.end == usize::MAX) {
            // The end of the product's own body, at the margin as nothing else in a function is.
            placed[first_of_function..].iter_mut().for_each(|it| it.function.end = line + 1);
        }
    }
    let begin = |placed: &[Placed], end| {
        placed.iter().filter(|it| it.function.end == end).map(|it| it.function.start).min()
    };
    for at in 0..placed.len() {
        placed[at].function.start =
            begin(&placed, placed[at].function.end).unwrap_or(placed[at].function.start);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from: (usize, usize), to: (usize, usize), replacement: &str) -> Change {
        let (name, file) = ("a.rs:2:5: replace it".to_owned(), "a.rs".to_owned());
        Change { name, file, from, to, replacement: replacement.to_owned() }
    }

    #[test]
    fn changes_stand_where_cargo_mutants_says() {
        let lines = ["fn one() -> u8 {", "    1 + 2", "}"];
        let edit = |change: Change| change.edit(&lines).map(|edit| (edit.lines, edit.new));
        let expected = Some((1..2, vec!["    1 - 2".to_owned()]));
        assert_eq!(edit(change((2, 7), (2, 8), "-")), expected);
        assert_eq!(edit(change((2, 7), (9, 8), "-")), None);
        assert_eq!(change((2, 7), (2, 8), "-").key(), "a.rs: replace it");
    }

    #[test]
    fn objections_are_held_against_their_change() {
        let text = "fn one() -> u8 {\nif crate::mutant::is(4) { // A\n    1\n\
            } else if crate::mutant::is(7) { // B\n    2\n} else {\n    3\n}\n}\n";
        let placed = BTreeMap::from([("a.rs".to_owned(), placed(text))]);
        let merged = Merged { placed, ..Merged::default() };
        let suspects = |line| merged.suspects("source/a.rs", line).into_iter().collect::<Vec<_>>();
        assert_eq!(suspects(3), [4]);
        assert_eq!(suspects(5), [7]);
        assert_eq!(suspects(7), [4, 7]);
        assert!(suspects(1).is_empty());
    }
}
