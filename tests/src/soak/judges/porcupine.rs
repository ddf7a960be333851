//! Porcupine (github.com/anishathalye/porcupine), in a program of its own.

use std::{error::Error, path::PathBuf, process::Stdio};

use serde::Serialize;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

use crate::{
    interop::go,
    linear::{Answer, Ask, Node, Operation, Refusal},
};

const SOURCES: go::Sources = [
    ("go.mod", include_str!("../../../porcupine/go.mod")),
    ("go.sum", include_str!("../../../porcupine/go.sum")),
    ("main.go", include_str!("../../../porcupine/main.go")),
];

/// What a judge says of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::soak) enum Opinion {
    Linearizable,
    Not,
    /// It would take too long to find out.
    Undecided,
}

/// The program.
#[derive(Debug)]
pub(in crate::soak) struct Porcupine(PathBuf);

/// An operation as the program reads it.
#[derive(Serialize)]
struct Told {
    session: i64,
    asked: u64,
    answered: i64,
    ask: &'static str,
    value: u64,
    version: i32,
    answer: &'static str,
    seen: Option<Seen>,
    written: i32,
}

#[derive(Serialize)]
struct Seen {
    value: u64,
    version: i32,
}

impl Told {
    fn new(operation: &Operation) -> Self {
        let any = |wanted: Option<i32>| wanted.unwrap_or(-1);
        let (ask, value, version) = match operation.ask {
            Ask::Read { synced: true } => ("read", 0, -1),
            Ask::Read { synced: false } => ("late-read", 0, -1),
            Ask::Create(value) => ("create", value, -1),
            Ask::Set(value, wanted) => ("set", value, any(wanted)),
            Ask::Delete(wanted) => ("delete", 0, any(wanted)),
            Ask::Add(name) => ("add", name.into(), -1),
            Ask::Remove(name) => ("remove", name.into(), -1),
        };
        let (answer, seen, written) = match operation.answer {
            Answer::Open => ("open", None, 0),
            Answer::Saw(node) => ("saw", node, 0),
            Answer::Version(version) => ("version", None, version),
            Answer::Done => ("done", None, 0),
            Answer::Refused(Refusal::NoNode) => ("no-node", None, 0),
            Answer::Refused(Refusal::NodeExists) => ("node-exists", None, 0),
            Answer::Refused(Refusal::BadVersion) => ("bad-version", None, 0),
        };
        Self {
            session: operation.session,
            asked: operation.asked,
            answered: i64::try_from(operation.answered).unwrap_or(i64::MAX),
            ask,
            value,
            version,
            answer,
            seen: seen.map(|Node { value, version }| Seen { value, version }),
            written,
        }
    }
}

impl Porcupine {
    /// Builds it, unless it was built before.
    pub(in crate::soak) async fn build() -> Result<Self, String> {
        Ok(Self(go::build("judge", &SOURCES).await?))
    }

    /// What it says of each.
    pub(in crate::soak) async fn judge(
        &self,
        histories: &[Vec<Operation>],
    ) -> Result<Vec<Opinion>, Box<dyn Error>> {
        let mut lines = Vec::new();
        for history in histories {
            let mut history: Vec<&Operation> = history.iter().collect();
            history.sort_by_key(|operation| operation.asked);
            let told: Vec<Told> = history.into_iter().map(Told::new).collect();
            serde_json::to_writer(&mut lines, &told)?;
            lines.push(b'\n');
        }
        let mut command = Command::new(&self.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut program = command.spawn()?;
        let mut input = program.stdin.take().ok_or("no input")?;
        let output = program.stdout.take().ok_or("no output")?;
        // It answers while it is told more.
        let telling = tokio::spawn(async move { input.write_all(&lines).await });
        let mut opinions = Vec::new();
        let mut answers = BufReader::new(output).lines();
        while let Some(answer) = answers.next_line().await? {
            opinions.push(match &*answer {
                "linearizable" => Opinion::Linearizable,
                "not" => Opinion::Not,
                "undecided" => Opinion::Undecided,
                other => return Err(format!("no verdict: {other:?}").into()),
            });
        }
        telling.await??;
        if opinions.len() != histories.len() || !program.wait().await?.success() {
            return Err("porcupine has not judged all histories".into());
        }
        Ok(opinions)
    }
}
