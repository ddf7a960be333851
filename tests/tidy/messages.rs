//! `zk-client/src/guide/errors.md` against the messages in the sources.

use std::{collections::BTreeSet, fs};

use crate::tidy::{files, root};

/// What begins a message at the level `info` or above.
const LOGGED: [&str; 3] = ["tracing::error!(", "tracing::warn!(", "tracing::info!("];

/// The messages of a crate, with `…` in place of what is filled in.
#[derive(Default)]
struct Messages {
    /// What errors display, and what is logged.
    shown: BTreeSet<String>,
    /// All that stands between quotes: an entry of the page may be one of them.
    quoted: BTreeSet<String>,
}

/// A format string with `…` for each run of placeholders.
fn with_gaps(format: &str) -> String {
    let mut message = String::new();
    let mut rest = format;
    while let Some((before, behind)) = rest.split_once('{') {
        message.push_str(before);
        if !(before.is_empty() && message.ends_with('…')) {
            message.push('…');
        }
        rest = behind.split_once('}').map_or("", |(_, rest)| rest);
    }
    message + rest
}

/// What stands between quotes.
fn quoted(text: &str) -> impl DoubleEndedIterator<Item = String> {
    text.split('"').skip(1).step_by(2).map(with_gaps).collect::<Vec<_>>().into_iter()
}

impl Messages {
    fn read() -> Self {
        let mut messages = Self::default();
        for library in ["zk-proto", "zk-client", "zk-locks"] {
            for path in files(&root().join(library).join("src"), ".rs") {
                messages.add(&fs::read_to_string(path).unwrap());
            }
        }
        messages
    }

    fn add(&mut self, source: &str) {
        let errors = source.split("#[error(").skip(1);
        let errors = errors.filter(|rest| rest.trim_start().starts_with('"'));
        self.shown.extend(errors.filter_map(|rest| quoted(rest).next()));
        for macros in LOGGED {
            let calls = source.split(macros).skip(1).filter_map(|rest| rest.split(");").next());
            self.shown.extend(calls.filter_map(|call| quoted(call).next_back()));
        }
        // Others pass on a message.
        self.shown.retain(|message| message.contains(char::is_alphabetic));
        self.quoted.extend(source.split('"').map(with_gaps));
    }
}

/// The messages on a page: what stands between backticks in the first cells of tables that are keyed by them.
fn entries(page: &str) -> BTreeSet<String> {
    let mut is_keyed = false;
    let mut found = BTreeSet::new();
    for line in page.lines() {
        match line.strip_prefix('|').and_then(|line| line.split('|').next()) {
            None => is_keyed = false,
            Some(cell) if cell.trim().starts_with("message") => is_keyed = true,
            Some(cell) if is_keyed => {
                found.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
            }
            Some(_) => {}
        }
    }
    found
}

#[test]
fn the_page_of_errors_has_every_message() {
    let page = fs::read_to_string(root().join("zk-client/src/guide/errors.md")).unwrap();
    let (messages, entries) = (Messages::read(), entries(&page));
    assert!(messages.shown.len() > 80, "messages are not where this test looks");
    let missing: Vec<_> = messages.shown.difference(&entries).collect();
    assert!(missing.is_empty(), "not on the page: {missing:#?}");
    let is_known = |entry: &&String| messages.quoted.contains(*entry);
    let stale: Vec<_> = entries.iter().filter(|entry| !is_known(entry)).collect();
    assert!(stale.is_empty(), "on the page, and not in the sources: {stale:#?}");
}

#[test]
fn messages_are_found_wherever_they_stand() {
    let source = r#"
        #[derive(Error)]
        enum Fault { #[error("{op}{} of {len} bytes", op())] Long, #[error(transparent)] Other }
        fn f() { select! { () = g => tracing::warn!(path = "x", "cannot {what}"); } write!(f, "no {}", 1); }
    "#;
    let mut messages = Messages::default();
    messages.add(source);
    assert!(messages.shown.iter().eq(["cannot …", "… of … bytes"]), "{:?}", messages.shown);
    assert!(messages.quoted.contains("no …"));
    let page = "| message |\n|---|\n| `a` and `b` | `c` |\n\n| symptom |\n|---|\n| `d` |\n";
    assert!(entries(page).iter().eq(["a", "b"]));
}
