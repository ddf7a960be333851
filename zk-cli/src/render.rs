//! Standard output: text, JSON, tables.

use std::{
    fmt::Display,
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use zk_client::{SessionId, Stat};

use crate::exit::Failure;

/// Writes to standard output, all of it at once.
///
/// The reader may have seen enough and gone (`zk ls / | head`): that is not a failure.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    is_read(bytes).map(drop)
}

/// The same of what has more to say later: whether there still is a reader.
pub(crate) fn is_read(bytes: &[u8]) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(Failure::local("standard output")),
    }
}

/// Writes one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    bytes(&json_line(value)?)
}

/// One line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(value)
        .map_err(io::Error::from)
        .map_err(Failure::local("standard output"))?;
    line.push(b'\n');
    Ok(line)
}

/// Writes a line to standard error. With that closed, the exit code has to do.
pub(crate) fn complain(what: &impl Display) {
    let _ = writeln!(io::stderr(), "zk: {what}");
}

/// Whether standard output is a terminal.
pub(crate) fn to_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Which way a column leans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lean {
    Left,
    Right,
}

/// Lines of text in columns, the first line being the headings.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    leans: [Lean; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(columns: [(&str, Lean); N]) -> Self {
        Self {
            leans: columns.map(|(_, lean)| lean),
            rows: vec![columns.map(|(heading, _)| heading.to_owned())],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    pub(crate) fn text(&self) -> String {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), lean) in row.iter().zip(&widths).zip(self.leans) {
                line.push_str(&match lean {
                    Lean::Left => format!("{cell:<width$}  "),
                    Lean::Right => format!("{cell:>width$}  "),
                });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Text that came from a server, fit for a terminal: no line feeds, no escape sequences.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

/// A moment that a server has recorded in milliseconds since 1970, in UTC.
pub(crate) fn moment(millis: i64) -> String {
    let since = u64::try_from(millis).ok().map(Duration::from_millis);
    match since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)) {
        // The last moment that has four digits for its year.
        Some(moment) if millis < 253_402_300_800_000 => {
            humantime::format_rfc3339_millis(moment).to_string()
        }
        _ => format!("{millis} ms"),
    }
}

/// How long ago a moment in milliseconds since 1970 was by this machine's clock; negative if that clock is
/// behind.
pub(crate) fn age_millis(since: i64, now: SystemTime) -> i64 {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(since)
}

/// An age for people: two units at most.
pub(crate) fn age(millis: i64) -> String {
    let millis = u64::try_from(millis).unwrap_or_default();
    let (seconds, minutes, hours) = (millis / 1_000, millis / 60_000, millis / 3_600_000);
    match (seconds, minutes, hours) {
        (0..10, ..) => format!("{}.{}s", seconds, millis / 100 % 10),
        (10..60, ..) => format!("{seconds}s"),
        (_, 1..60, _) => format!("{minutes}m{:02}s", seconds % 60),
        (_, _, 1..48) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{}d{:02}h", hours / 24, hours % 24),
    }
}

/// The session that an ephemeral node belongs to, in hexadecimal as servers print it; JSON's numbers would
/// not hold it. Servers do not tell containers and nodes with time to live from ordinary ones.
pub(crate) fn session(stat: &Stat) -> Option<String> {
    (stat.ephemeral_owner != SessionId(0)).then(|| stat.ephemeral_owner.to_string())
}

/// A bar on standard error for so many steps, if that is a terminal.
pub(crate) fn progress(steps: usize) -> Option<ProgressBar> {
    io::stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} nodes");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(steps as u64).with_style(style)
    })
}

/// A node's data, in JSON: text where it is text.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Data {
    Text { data: String },
    Binary { data_base64: String },
}

impl Data {
    /// The data itself.
    pub(crate) fn bytes(self) -> Result<Vec<u8>, base64::DecodeError> {
        match self {
            Self::Text { data } => Ok(data.into_bytes()),
            Self::Binary { data_base64 } => BASE64_STANDARD.decode(data_base64),
        }
    }
}

impl From<&[u8]> for Data {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text { data: text.to_owned() },
            Err(_) => Self::Binary { data_base64: BASE64_STANDARD.encode(bytes) },
        }
    }
}

/// A node's metadata, in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct NodeReport<'a> {
    pub(crate) path: &'a str,
    version: i32,
    children: i32,
    bytes: i32,
    czxid: i64,
    mzxid: i64,
    pzxid: i64,
    ctime_ms: i64,
    mtime_ms: i64,
    cversion: i32,
    aversion: i32,
    /// Of ephemeral nodes.
    session: Option<String>,
}

impl<'a> NodeReport<'a> {
    pub(crate) fn new(path: &'a str, stat: &Stat) -> Self {
        Self {
            path,
            version: stat.version,
            children: stat.num_children,
            bytes: stat.data_length,
            czxid: stat.czxid.0,
            mzxid: stat.mzxid.0,
            pzxid: stat.pzxid.0,
            ctime_ms: stat.ctime,
            mtime_ms: stat.mtime,
            cversion: stat.cversion,
            aversion: stat.aversion,
            session: session(stat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("N", Lean::Right), ("NAME", Lean::Left), ("X", Lean::Left)]);
        table.row(["10".into(), "a".into(), String::new()]);
        assert_eq!(table.text(), " N  NAME  X\n10  a\n");
    }

    #[test]
    fn ages_have_at_most_two_units_and_no_sign() {
        for (millis, text) in [
            (-5_000, "0.0s"),
            (9_950, "9.9s"),
            (59_999, "59s"),
            (61_000, "1m01s"),
            (3_600_000, "1h00m"),
            (172_800_000, "2d00h"),
        ] {
            assert_eq!(age(millis), text, "{millis}");
        }
    }

    #[test]
    fn out_of_range_times_print_as_numbers() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(-1), "-1 ms");
        assert_eq!(moment(i64::MAX), format!("{} ms", i64::MAX));
        assert_eq!(moment(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn data_that_is_not_text_becomes_base64() {
        let json = |bytes: &[u8]| serde_json::to_string(&Data::from(bytes)).unwrap();
        assert_eq!(json(b"a\nb"), r#"{"data":"a\nb"}"#);
        assert_eq!(json(b"\xff\x00"), r#"{"data_base64":"/wA="}"#);
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\x1b[2J\n\u{e9}"), "a\u{fffd}[2J\u{fffd}\u{e9}");
    }
}
