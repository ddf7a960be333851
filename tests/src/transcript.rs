//! What differs between a transcript as it is kept and as it was made anew.

use std::fmt::Write as _;

/// Two versions of some lines: those that both begin with, those of the one and of the other, those that both end with.
#[derive(Debug)]
pub struct Versions<'a, T> {
    head: &'a [T],
    expected: &'a [T],
    actual: &'a [T],
    tail: &'a [T],
}

impl<'a, T: PartialEq + AsRef<str>> Versions<'a, T> {
    /// Takes apart what they share.
    pub fn new(expected: &'a [T], actual: &'a [T]) -> Self {
        let shared = |pairs: &mut dyn Iterator<Item = (&T, &T)>| {
            pairs.take_while(|(expected, actual)| expected == actual).count()
        };
        let head = shared(&mut expected.iter().zip(actual));
        let (head, expected) = expected.split_at(head);
        let actual = &actual[head.len()..];
        let tail = shared(&mut expected.iter().rev().zip(actual.iter().rev()));
        let (expected, tail) = expected.split_at(expected.len() - tail);
        Self { head, expected, actual: &actual[..actual.len() - tail.len()], tail }
    }

    /// Only what they do not share, marked.
    #[must_use]
    pub fn changes(&self) -> String {
        marked(&[('-', self.expected), ('+', self.actual)])
    }

    /// All lines, with what they share unmarked.
    #[must_use]
    pub fn in_context(&self) -> String {
        marked(&[(' ', self.head), ('-', self.expected), ('+', self.actual), (' ', self.tail)])
    }
}

fn marked<T: AsRef<str>>(parts: &[(char, &[T])]) -> String {
    let mut text = String::new();
    for (mark, lines) in parts {
        for line in *lines {
            writeln!(text, "{mark} {}", line.as_ref()).expect("text can be added to");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_mark_only_changed_lines() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let (expected, actual) = (lines("abcz"), lines("axz"));
        let versions = Versions::new(&expected, &actual);
        assert_eq!(versions.in_context(), "  a\n- b\n- c\n+ x\n  z\n");
        assert_eq!(versions.changes(), "- b\n- c\n+ x\n");
        let (expected, actual) = (lines("aa"), lines("a"));
        assert_eq!(Versions::new(&expected, &actual).in_context(), "  a\n- a\n");
    }
}
