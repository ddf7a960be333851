//! Unified diffs, located strictly: what a hunk removes and what stands around it must be in the file, once.

use std::ops::Range;

/// The changes of one file.
#[derive(Debug)]
pub(crate) struct Patch {
    /// Relative to the workspace.
    pub(crate) file: String,
    hunks: Vec<Vec<Line>>,
}

#[derive(Debug)]
enum Line {
    Context(String),
    Old(String),
    New(String),
}

/// Lines of a file, and what stands in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) lines: Range<usize>,
    pub(crate) new: Vec<String>,
}

impl Line {
    fn read(line: &str) -> Result<Self, String> {
        let text = |text: &str| text.to_owned();
        match line.split_at_checked(1) {
            Some((" ", rest)) => Ok(Self::Context(text(rest))),
            Some(("-", rest)) => Ok(Self::Old(text(rest))),
            Some(("+", rest)) => Ok(Self::New(text(rest))),
            None => Ok(Self::Context(String::new())),
            Some(_) => Err(format!("no line of a diff: {line}")),
        }
    }

    /// The line as it is in the file that is to be changed.
    fn before(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Old(text) => Some(text),
            Self::New(_) => None,
        }
    }
}

/// Reads a diff of any number of files.
pub(crate) fn read(diff: &str) -> Result<Vec<Patch>, String> {
    let mut patches: Vec<Patch> = Vec::new();
    for line in diff.lines() {
        let patch = patches.last_mut();
        if let Some(file) = line.strip_prefix("--- a/") {
            patches.push(Patch { file: file.to_owned(), hunks: Vec::new() });
        } else if line.starts_with("@@ ") {
            patch.ok_or("a hunk without a file")?.hunks.push(Vec::new());
        } else if let Some(hunk) = patch.and_then(|patch| patch.hunks.last_mut()) {
            let is_next_file =
                ["diff --git ", "index ", "+++ b/"].iter().any(|it| line.starts_with(it));
            if !is_next_file {
                hunk.push(Line::read(line)?);
            }
        }
    }
    Ok(patches)
}

impl Patch {
    /// What it changes, in the order of the file.
    ///
    /// Line numbers of hunks are not looked at.
    pub(crate) fn edits(&self, text: &[&str]) -> Result<Vec<Edit>, String> {
        let mut edits = Vec::new();
        for hunk in &self.hunks {
            let before: Vec<&str> = hunk.iter().filter_map(Line::before).collect();
            let mut places = (0..text.len()).filter(|&place| text[place..].starts_with(&before));
            let (place, another) = (places.next(), places.next());
            let first = before.first().map_or("", |line| line.trim());
            let mut place = match (place, another) {
                (Some(place), None) if !before.is_empty() => place,
                (None, _) => return Err(format!("{}: not there: {first} …", self.file)),
                _ => return Err(format!("{}: there twice: {first} …", self.file)),
            };
            let mut is_open = false;
            for line in hunk {
                if !is_open && !matches!(line, Line::Context(_)) {
                    edits.push(Edit { lines: place..place, new: Vec::new() });
                }
                is_open = !matches!(line, Line::Context(_));
                match (line, edits.last_mut()) {
                    (Line::Old(_), Some(edit)) => edit.lines.end += 1,
                    (Line::New(text), Some(edit)) => edit.new.push(text.clone()),
                    _ => {}
                }
                place += usize::from(line.before().is_some());
            }
        }
        edits.sort_by_key(|edit| edit.lines.start);
        Ok(edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -7,3 +7,3 @@\n b\n-c\n+C\n+D\n d\n";

    fn edits(text: &str) -> Result<Vec<Edit>, String> {
        read(DIFF).unwrap()[0].edits(&text.lines().collect::<Vec<_>>())
    }

    #[test]
    fn a_hunk_is_found_wherever_it_is() {
        let edit = Edit { lines: 2..3, new: vec!["C".to_owned(), "D".to_owned()] };
        assert_eq!(edits("a\nb\nc\nd\n"), Ok(vec![edit]));
    }

    #[test]
    fn a_hunk_that_is_not_there_is_refused() {
        assert_eq!(edits("a\nb\nc\ne\n"), Err("x.rs: not there: b …".to_owned()));
    }

    #[test]
    fn a_hunk_that_is_there_twice_is_refused() {
        assert_eq!(edits("b\nc\nd\nb\nc\nd\n"), Err("x.rs: there twice: b …".to_owned()));
    }
}
