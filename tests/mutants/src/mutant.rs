//! The patches, and what their first lines say of them.

use std::{fs, path::Path};

use crate::patch::{self, Patch};

/// A mistake that the product could have.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// That of its file.
    pub(crate) name: String,
    pub(crate) judge: Judge,
    pub(crate) patches: Vec<Patch>,
}

/// What has to kill a mutant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Judge {
    /// Seeds of the simulator.
    Simulator,
    /// Tests whose names contain the filter, in a package's test binary, or `lib` for its unit tests.
    Test { package: String, target: String, filter: String },
}

impl Judge {
    /// Whether both are judged by the same program.
    pub(crate) fn is_same_program(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Simulator, Self::Simulator) => true,
            (
                Self::Test { package, target, .. },
                Self::Test { package: other, target: others, .. },
            ) => (package, target) == (other, others),
            _ => false,
        }
    }

    fn read(text: &str) -> Result<Self, String> {
        let owned = |text: &str| text.to_owned();
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["simulator"] => Ok(Self::Simulator),
            ["test", package, target, filter] => Ok(Self::Test {
                package: owned(package),
                target: owned(target),
                filter: owned(filter),
            }),
            _ => Err(format!("no judge: {text}")),
        }
    }
}

impl Mutant {
    /// Reads a sentence about what is wrong, an empty line, `origin:`, `breaks:` and `judge:`, another empty line, and a
    /// diff.
    fn read(name: &str, text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, "\n\n");
        let mut part = || parts.next().filter(|part| !part.is_empty()).ok_or("a part is missing");
        let (what, fields, diff) = (part()?, part()?, part()?);
        if !what.ends_with('.') || what.starts_with("---") {
            return Err(format!("no sentence about what is wrong: {what}"));
        }
        let mut fields = fields.lines();
        let mut field = |name: &str| {
            let value = fields.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.filter(|value| !value.is_empty()).ok_or_else(|| format!("no {name}"))
        };
        let _origin = field("origin")?;
        let promises = field("breaks")?;
        let is_promise = |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase());
        if !promises.split(' ').all(is_promise) {
            return Err(format!("no names of promises: {promises}"));
        }
        let judge = Judge::read(field("judge")?)?;
        let patches = patch::read(diff)?;
        if patches.is_empty() {
            return Err("no diff".to_owned());
        }
        Ok(Self { name: name.to_owned(), judge, patches })
    }
}

/// All mutants, in the order of their names.
pub(crate) fn all(root: &Path) -> Result<Vec<Mutant>, String> {
    let mut mutants = Vec::new();
    let folder = root.join("tests/mutants/patches");
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        mutants.push(Mutant::read(name, &text).map_err(|error| format!("{name}: {error}"))?);
    }
    mutants.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Is wrong.\n\norigin: own\nbreaks: S1 S2\njudge: simulator\n\n";
    const DIFF: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-a\n+b\n";

    #[test]
    fn first_lines_say_what_to_expect() {
        let judge = |text: &str| Mutant::read("Wrong", text).map(|mutant| mutant.judge);
        assert_eq!(judge(&format!("{HEAD}{DIFF}")), Ok(Judge::Simulator));
        let by_test = HEAD.replace("simulator", "test zk-tests cancel sweep::");
        assert!(matches!(judge(&format!("{by_test}{DIFF}")), Ok(Judge::Test { .. })));
        assert_eq!(judge(HEAD), Err("a part is missing".to_owned()));
        assert_eq!(judge(DIFF), Err("a part is missing".to_owned()));
        for (right, wrong) in
            [("wrong.", "wrong"), ("origin", "author"), ("S1", "s1"), ("simulator", "none")]
        {
            assert!(judge(&format!("{}{DIFF}", HEAD.replace(right, wrong))).is_err(), "{wrong}");
        }
    }
}
