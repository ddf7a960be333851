//! What differs between a transcript as it is kept and as it was made anew.

use std::fmt::Write as _;

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices};

/// Two versions of some lines.
#[derive(Debug)]
pub struct Versions<'a, T> {
    expected: &'a [T],
    actual: &'a [T],
    ops: Vec<DiffOp>,
}

impl<'a, T: Ord + std::hash::Hash + AsRef<str>> Versions<'a, T> {
    /// Finds what they share.
    pub fn new(expected: &'a [T], actual: &'a [T]) -> Self {
        Self { expected, actual, ops: capture_diff_slices(Algorithm::Patience, expected, actual) }
    }

    /// Only what they do not share, marked.
    #[must_use]
    pub fn changes(&self) -> String {
        self.marked(|tag| tag != ChangeTag::Equal)
    }

    /// All lines, with what they share unmarked.
    #[must_use]
    pub fn in_context(&self) -> String {
        self.marked(|_| true)
    }

    fn marked(&self, shows: impl Fn(ChangeTag) -> bool) -> String {
        let changes = self.ops.iter().flat_map(|op| op.iter_slices(self.expected, self.actual));
        let mut text = String::new();
        for (tag, lines) in changes.filter(|(tag, _)| shows(*tag)) {
            for line in lines {
                writeln!(text, "{tag} {}", line.as_ref()).expect("text can be added to");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_mark_only_changed_lines() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let (expected, actual) = (lines("abcdz"), lines("axcez"));
        let versions = Versions::new(&expected, &actual);
        assert_eq!(versions.in_context(), "  a\n- b\n+ x\n  c\n- d\n+ e\n  z\n");
        assert_eq!(versions.changes(), "- b\n+ x\n- d\n+ e\n");
        let (expected, actual) = (lines("aa"), lines("a"));
        assert_eq!(Versions::new(&expected, &actual).in_context(), "  a\n- a\n");
    }
}
