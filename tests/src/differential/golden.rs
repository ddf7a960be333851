//! What real servers did, kept.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use bytes::{BufMut as _, BytesMut};
use zk_testkit::real::Release;

use super::{
    batch::Batch,
    encode::Meaning,
    record::Record,
    setup::Setup,
    step::{Name, Sequence, Step},
};
use crate::history::digest;

/// Where the sequences come from that are kept.
const SEED: u64 = 20_261_121;

/// Sequences of one batch that is kept.
const SEQUENCES: u64 = 256;

/// A batch as it was played on a real server.
#[derive(Clone, Debug)]
pub struct Golden {
    /// The version that played it.
    pub version: String,
    /// Its place among those that are kept.
    pub number: u64,
    /// Which sequences.
    pub batch: Batch,
    /// What came of each.
    pub records: Vec<Record>,
}

impl Golden {
    /// How many batches are kept of each release.
    pub const BATCHES: u64 = 8;

    /// Where they are kept.
    pub fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("differential/golden")
    }

    /// One of the batches that are kept.
    pub fn batch(release: Release, number: u64) -> Batch {
        let variant = usize::try_from(number).unwrap_or(0);
        let setup = Setup::timeless(release, variant);
        Batch { setup, seed: SEED, first: number * SEQUENCES, count: SEQUENCES }
    }

    /// As a text: behind a mark of what was asked, a line for each thing that was heard. Steps end with
    /// a dot.
    pub fn text(&self) -> String {
        let Self { version, number, batch, records } = self;
        let mut text = format!("{version} batch {number}\n");
        for (sequence, record) in batch.sequences().zip(records) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "> {:08x}", mark(&sequence));
            for step in &record.steps {
                step.iter().for_each(|line| {
                    let _ = writeln!(text, "{line}");
                });
                text.push_str(".\n");
            }
        }
        text
    }

    /// Reads [`text`](Self::text) back, and makes sure that the sequences are still the same.
    ///
    /// # Errors
    /// The text is something else, or sequences are made up differently now.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [version, "batch", number] = head[..] else {
            return Err(format!("not the head of a recording: {head:?}"));
        };
        let number = number.parse().map_err(|error| format!("{number}: {error}"))?;
        let release = version.parse().map_err(|error| format!("{error}"))?;
        let batch = Self::batch(release, number);
        let records = records(lines, &batch)?;
        Ok(Self { version: version.to_owned(), number, batch, records })
    }
}

fn records<'a>(lines: impl Iterator<Item = &'a str>, batch: &Batch) -> Result<Vec<Record>, String> {
    let mut records: Vec<Record> = Vec::new();
    let mut sequences = batch.sequences();
    let mut step = Vec::new();
    for line in lines {
        if let Some(found) = line.strip_prefix("> ") {
            let index = records.len();
            let expected = sequences.next().map(|sequence| format!("{:08x}", mark(&sequence)));
            if expected.as_deref() != Some(found) {
                return Err(format!("sequence {index} is made up differently now; record again"));
            }
            records.push(Record::default());
        } else if line == "." {
            let record = records.last_mut();
            record.ok_or("a step of nothing")?.steps.push(step);
            step = Vec::new();
        } else {
            step.push(line.to_owned());
        }
    }
    if sequences.next().is_some() {
        return Err(format!("ends after {} sequences", records.len()));
    }
    Ok(records)
}

/// Tells sequences apart, by the bytes that are sent.
fn mark(sequence: &Sequence) -> u32 {
    let meaning = Meaning::new("$");
    let mut bytes = BytesMut::new();
    for step in &sequence.steps {
        match step {
            Step::Open(Name(name), hello) => {
                bytes.put_u8(*name);
                meaning.hello(hello, &mut bytes);
            }
            Step::Send(Name(name), requests) => {
                bytes.put_u8(*name);
                for request in requests {
                    meaning.request(request, &mut bytes);
                }
            }
            Step::HangUp(Name(name)) => bytes.put_u8(*name),
            Step::Wait(millis) => bytes.put_u32(*millis),
        }
    }
    u32::try_from(digest(Some(&bytes)) >> 32).expect("what is left has 32 bits")
}
