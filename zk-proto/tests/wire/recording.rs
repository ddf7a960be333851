//! The lines of the files.

use std::{collections::BTreeMap, fs, path::Path};

use bytes::Bytes;
use serde_json::Value;

use crate::message::Message;

/// Every file and how many frames it holds, so that nothing can go missing unnoticed.
const FILES: [(&str, usize); 18] = [
    ("3.4.6_c-3.8.0.jsonl", 80),
    ("3.4.6_java-3.4.6.jsonl", 59),
    ("3.4.6_java-3.9.3.jsonl", 899),
    ("3.4.6_kazoo-2.11.0.jsonl", 359),
    ("3.4.6_raw.jsonl", 185),
    ("3.8.0_c-3.8.0.jsonl", 104),
    ("3.8.0_curator-5.7.1.jsonl", 340),
    ("3.8.0_java-3.4.6.jsonl", 59),
    ("3.8.0_java-3.9.3.jsonl", 1075),
    ("3.8.0_kazoo-2.11.0.jsonl", 393),
    ("3.8.0_raw.jsonl", 215),
    ("3.9.3_c-3.8.0.jsonl", 104),
    ("3.9.3_curator-5.7.1.jsonl", 340),
    ("3.9.3_java-3.4.6.jsonl", 59),
    ("3.9.3_java-3.9.3.jsonl", 1075),
    ("3.9.3_kazoo-2.11.0.jsonl", 393),
    ("3.9.3_raw.jsonl", 220),
    ("large.jsonl", 12),
];

/// Frames above this length are cut at a sample of places instead of at all.
const LEN_CUT_EVERYWHERE: usize = 4096;

/// One recorded frame.
pub(crate) struct Frame {
    /// File and line, for messages.
    pub(crate) at: String,
    pub(crate) connection: String,
    pub(crate) direction: Direction,
    pub(crate) message: Message,
    /// With the length prefix.
    pub(crate) bytes: Bytes,
    /// What the frame says: header, name of the record, body.
    pub(crate) fields: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    ClientToServer,
    ServerToClient,
}

/// All frames of all files, which must be exactly those that are listed.
pub(crate) fn frames() -> Vec<Frame> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let present: BTreeMap<String, String> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    let lines = |text: &String| text.bytes().filter(|&byte| byte == b'\n').count();
    let found: Vec<_> = present.iter().map(|(name, text)| (name.as_str(), lines(text))).collect();
    assert_eq!(found, FILES, "the recordings are not those that this test knows");

    let frames: Vec<_> = present
        .iter()
        .flat_map(|(name, text)| {
            (1..)
                .zip(text.lines())
                .map(move |(number, line)| Frame::parse(format!("{name}:{number}"), line))
        })
        .collect();
    let expected: usize = FILES.iter().map(|(_, count)| count).sum();
    assert_eq!(frames.len(), expected);
    println!("{expected} frames in {} files", FILES.len());
    frames
}

impl Frame {
    fn parse(at: String, line: &str) -> Self {
        let mut line: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{at}: {error}"));
        let bytes = match &line["hex"] {
            Value::String(hex) => from_hex(hex),
            _ => from_hex(&repeat(&line["hex_runs"])),
        };
        assert_eq!(line["len"], bytes.len() - 4, "{at}");
        let direction = match line["dir"].as_str() {
            Some("c2s") => Direction::ClientToServer,
            Some("s2c") => Direction::ServerToClient,
            _ => panic!("{at}: direction {}", line["dir"]),
        };
        let mut fields = line["fields"].take();
        expand_runs(&mut fields);
        Self {
            connection: line["conn"].as_str().unwrap().to_owned(),
            direction,
            message: Message::of(&line, direction, &fields),
            bytes: bytes.into(),
            fields,
            at,
        }
    }
}

/// Puts whole hex in the place of `{"runs": ...}`.
fn expand_runs(value: &mut Value) {
    if let Some(runs) = value.get("runs") {
        *value = Value::String(repeat(runs));
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(expand_runs),
        Value::Object(fields) => fields.values_mut().for_each(expand_runs),
        _ => {}
    }
}

/// `[[piece, count], ...]` as one string.
fn repeat(runs: &Value) -> String {
    let runs = runs.as_array().expect("runs are a list");
    runs.iter()
        .map(|run| {
            let count = run[1].as_u64().expect("a run has a count");
            run[0].as_str().expect("a run has a piece").repeat(count.try_into().unwrap())
        })
        .collect()
}

fn from_hex(hex: &str) -> Vec<u8> {
    assert!(hex.len() % 2 == 0 && hex.is_ascii(), "hex comes in pairs");
    let bytes = (0..hex.len()).step_by(2);
    bytes.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

/// Where to cut `len` bytes so that something is missing: everywhere, or in a long frame at both ends
/// and here and there between.
pub(crate) fn cuts(len: usize) -> impl Iterator<Item = usize> {
    const LEN_END: usize = 512;
    let is_long = len > LEN_CUT_EVERYWHERE;
    (0..len)
        .filter(move |&at| !is_long || at < LEN_END || len - at <= LEN_END || at % (len / 256) == 0)
}
