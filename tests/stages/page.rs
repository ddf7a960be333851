//! Lines of a page, and what differs between two of them.

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::time::Instant;
use zk_client::OpCode;
use zk_tests::transcript::Versions;

/// Lines in a row that are gone, of which all are told.
const GONE_MAX: usize = 4;

/// What is written while something is played. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Page(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    text: String,
    /// What is said is on another page already.
    is_known: bool,
    /// Requests since the last line.
    requests: Vec<OpCode>,
}

impl Page {
    /// A request is sent.
    pub(crate) fn sent(&self, op: OpCode) {
        self.with(|written| written.requests.push(op));
    }

    /// Writes nothing for now, as that would be what another section has.
    pub(crate) fn is_known(&self, is_known: bool) {
        self.with(|written| written.is_known = is_known);
    }

    /// Begins a part.
    pub(crate) fn title(&self, title: &str) {
        self.with(|written| written.add(title));
    }

    /// Something that nobody asked for.
    pub(crate) fn aside(&self, what: &str) {
        self.with(|written| written.add(&format!("        * {}", brief(what))));
    }

    /// What has come of a call that began then.
    pub(crate) fn line(&self, call: &str, result: &dyn Debug, began: Instant) {
        let took = began.elapsed().as_millis();
        let call: String = call.split_whitespace().collect::<Vec<_>>().join(" ");
        self.with(|written| {
            let requests = std::mem::take(&mut written.requests);
            let result = brief(&format!("{result:?}"));
            written.add(&format!("{took:>7} {call} = {result}{}", told(&requests)));
        });
    }

    pub(crate) fn take(&self) -> String {
        self.with(|written| std::mem::take(&mut written.text))
    }

    fn with<T>(&self, change: impl FnOnce(&mut Written) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Written {
    fn add(&mut self, line: &str) {
        if !self.is_known {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }
}

/// Without what is long and says little: most of a `Stat`, most of a unique name, this process.
fn brief(text: &str) -> String {
    let mut brief = String::new();
    let mut rest = text;
    while let Some(at) = ["Stat {", "_c_", "vm pid "].iter().filter_map(|it| rest.find(it)).min() {
        brief.push_str(&rest[..at]);
        rest = &rest[at..];
        let field = |name: &str| {
            let after = rest.split_once(name).map_or("", |(_, after)| after);
            after.split([',', ' ', '}']).next().unwrap_or_default()
        };
        let (short, long) = if rest.starts_with("Stat {") {
            let short = format!(
                "Stat({} version {} children {} of {})",
                field("mzxid: "),
                field(" version: "),
                field("cversion: "),
                field("ephemeral_owner: "),
            );
            (short, rest.find('}').map_or(rest.len(), |end| end + 1))
        } else if rest.starts_with("_c_") {
            // A GUID has 36 letters.
            (rest[..7].to_owned(), 39)
        } else {
            let digits = rest[7..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 7);
            ("pid".to_owned(), 7 + digits)
        };
        brief.push_str(&short);
        rest = &rest[long.min(rest.len())..];
    }
    brief + rest
}

fn told(requests: &[OpCode]) -> String {
    let mut text = String::new();
    let mut rest = requests;
    while let [first, ..] = rest {
        let same = rest.iter().take_while(|op| *op == first).count();
        let times = if same > 1 { format!(" x{same}") } else { String::new() };
        let before = if text.is_empty() { "  <- " } else { ", " };
        write!(text, "{before}{first}{times}").expect("text can be added to");
        rest = &rest[same..];
    }
    text
}

/// The lines that are not in both texts, with the title that they stand below.
pub(crate) fn differences(expected: &str, actual: &str) -> String {
    let (expected, actual) = (sections(expected), sections(actual));
    let mut text = String::new();
    for index in 0..expected.len().max(actual.len()) {
        let none = Vec::new();
        let said = expected.get(index).unwrap_or(&none);
        let done = actual.get(index).unwrap_or(&none);
        if said == done {
            continue;
        }
        let title = said.first().or_else(|| done.first()).copied().unwrap_or_default();
        writeln!(text, "{title}").expect("text can be added to");
        text.push_str(&in_brief(&Versions::new(said, done).changes()));
    }
    text
}

/// Without most of what is no longer there, and stands on the other page.
fn in_brief(changes: &str) -> String {
    let lines: Vec<_> = changes.lines().collect();
    let mut text = String::new();
    for run in lines.chunk_by(|a, b| a.starts_with('-') && b.starts_with('-')) {
        let told = if run.len() > GONE_MAX { GONE_MAX - 1 } else { run.len() };
        text.extend(run[..told].iter().flat_map(|line| [line, "\n"]));
        if told < run.len() {
            writeln!(text, "- and {} lines more", run.len() - told).expect("text can be added to");
        }
    }
    text
}

/// The sections of a page that are of something: titles have its name in front of a colon.
pub(crate) fn only(page: &str, is_of: impl Fn(&str) -> bool) -> String {
    let is_wanted = |section: &Vec<&str>| {
        let title = section[0].trim_start_matches("# ");
        title.split_once(':').is_some_and(|(name, _)| is_of(name))
    };
    let wanted = sections(page).into_iter().filter(is_wanted);
    wanted.flatten().flat_map(|line| [line, "\n"]).collect()
}

/// The parts of a page, each with its title in front.
fn sections(page: &str) -> Vec<Vec<&str>> {
    let mut sections: Vec<Vec<&str>> = Vec::new();
    for line in page.lines() {
        match sections.last_mut() {
            Some(section) if !line.starts_with("# ") => section.push(line),
            _ => sections.push(vec![line]),
        }
    }
    sections
}
