//! `zk multi`: several writes together.

use std::path::Path;

use clap::Parser as _;
use serde::Serialize;
use zk_client::{
    CreateMode, MultiError, OpResult, Rejection, Request, Stat, WriteError,
    path::{PathError, ZkPath},
};

use crate::{
    args::{CommonArgs, MultiArgs, Operation},
    commands::text,
    exit::{Exit, Failure},
    render::{self, NodeReport},
};

/// An operation, and the line on which it stands, from 1.
#[derive(Debug)]
struct Line {
    number: usize,
    operation: Operation,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    results: Vec<Outcome<'a>>,
}

/// What one operation has done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome<'a> {
    Created {
        path: &'a str,
        /// Some servers before 3.9 do not tell.
        node: Option<NodeReport<'a>>,
    },
    Set(NodeReport<'a>),
    Deleted(&'a str),
    Checked(&'a str),
}

pub(crate) async fn run(args: MultiArgs) -> Result<Exit, Failure> {
    let MultiArgs { common: CommonArgs { connect, output }, file } = &args;
    let name =
        if file == Path::new("-") { "standard input".into() } else { file.to_string_lossy() };
    let lines = parse(&name, &text(file).map_err(Failure::local(&name))?)?;
    let (lines, name) = (&lines, &*name);
    let results = connect
        .with_session(|client| async move {
            let multi = lines.iter().fold(client.multi(), add);
            match multi.await.map_err(Failure::write(name))? {
                Ok(results) => Ok(results),
                Err(error) => Err(refused(name, lines, error)),
            }
        })
        .await?;
    let outcomes = lines.iter().zip(&results).map(|(line, result)| outcome(line, result));
    if output.json {
        render::json(&Report { results: outcomes.collect() })?;
    } else {
        let created = outcomes.filter_map(|outcome| match outcome {
            Outcome::Created { path, .. } => Some(format!("{path}\n")),
            _ => None,
        });
        render::bytes(created.collect::<String>().as_bytes())?;
    }
    Ok(Exit::Done)
}

fn parse(name: &str, text: &str) -> Result<Vec<Line>, Failure> {
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let numbered = text.lines().map(str::trim).enumerate().filter(|(_, line)| is_said(line));
    numbered
        .map(|(index, line)| {
            let number = index + 1;
            let wrong =
                |why: &str| Failure::new(Exit::Usage, format_args!("{name}:{number}: {why}"));
            let words = shlex::split(line).ok_or_else(|| wrong("a quotation does not end"))?;
            let operation = Operation::try_parse_from(words).map_err(|error| {
                // The first line is the reason; what follows is about a command line.
                let text = error.to_string();
                wrong(text.lines().next().unwrap_or_default().trim_start_matches("error: "))
            })?;
            checked(&operation).map_err(|error| {
                Failure::no_path(path(&operation), format!("{name}:{number}: {error}"))
            })?;
            Ok(Line { number, operation })
        })
        .collect()
}

/// Whether the path is one: the client would say so of the whole transaction.
fn checked(operation: &Operation) -> Result<(), PathError> {
    let path = path(operation);
    match operation {
        // With what servers append.
        Operation::Create { sequential: true, .. } => {
            let named = format!("{path}0").parse::<ZkPath>();
            named.map(drop).map_err(|error| PathError { path: path.to_owned(), ..error })
        }
        _ => path.parse::<ZkPath>().map(drop),
    }
}

type Multi<'a> = Request<'a, Result<Vec<OpResult>, MultiError>, WriteError>;

fn add<'a>(multi: Multi<'a>, line: &'a Line) -> Multi<'a> {
    match &line.operation {
        Operation::Create { sequential, container, path, data } => {
            let mode = match (container, sequential) {
                (true, _) => CreateMode::Container,
                (false, true) => CreateMode::PersistentSequential,
                (false, false) => CreateMode::Persistent,
            };
            multi.create(path, data.as_bytes(), mode)
        }
        Operation::Set { version: None, path, data } => multi.set(path, data.as_bytes()),
        Operation::Set { version: Some(version), path, data } => {
            multi.set_version(path, data.as_bytes(), *version)
        }
        Operation::Delete { version: None, path } => multi.delete(path),
        Operation::Delete { version: Some(version), path } => multi.delete_version(path, *version),
        Operation::Check { version: None, path } => multi.check(path),
        Operation::Check { version: Some(version), path } => multi.check_version(path, *version),
    }
}

fn refused(name: &str, lines: &[Line], error: MultiError) -> Failure {
    let at = lines.get(error.index);
    let (number, path) = at.map_or((0, name), |line| (line.number, path(&line.operation)));
    let creates = at.is_some_and(|line| matches!(line.operation, Operation::Create { .. }));
    let reason = match error.rejection {
        Rejection::NoNode if creates => Failure::no_parent(path),
        rejection => Failure::rejected(path, rejection),
    };
    reason.retold(|reason| format!("{name}:{number}: {reason}; nothing was done"))
}

fn path(operation: &Operation) -> &str {
    match operation {
        Operation::Create { path, .. }
        | Operation::Set { path, .. }
        | Operation::Delete { path, .. }
        | Operation::Check { path, .. } => path,
    }
}

fn outcome<'a>(line: &'a Line, result: &'a OpResult) -> Outcome<'a> {
    let asked = path(&line.operation);
    let report = |path: &'a str, stat: &Stat| NodeReport::new(path, stat);
    match result {
        OpResult::Created { path, stat } => {
            Outcome::Created { path, node: stat.as_ref().map(|stat| report(path, stat)) }
        }
        OpResult::Set(stat) => Outcome::Set(report(asked, stat)),
        OpResult::Deleted => Outcome::Deleted(asked),
        // What else there may be one day has not changed anything that we have asked for.
        _ => Outcome::Checked(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_a_shell_would() {
        let text =
            "# first\n\ncreate /a 'one two'\n  set /a --version 3 -- -1\ncreate --sequential /s-\n";
        let lines = parse("f", text).unwrap();
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [3, 4, 5]);
        let Operation::Create { data, .. } = &lines[0].operation else { panic!("{lines:?}") };
        assert_eq!(data, "one two");
        let Operation::Set { version, data, .. } = &lines[1].operation else { panic!("{lines:?}") };
        assert_eq!((*version, &**data), (Some(3), "-1"));
    }

    /// It is about the path, which is not the file's.
    #[test]
    fn advice_on_a_path_is_about_that_path() {
        let said = parse("f", "create jobs/7 x").unwrap_err().to_string();
        assert!(said.ends_with("do not end in one: /jobs/7"), "{said}");
        assert!(parse("f", "create --sequential /jobs/").is_ok());
    }

    #[test]
    fn errors_name_their_line() {
        for (text, message) in [
            ("create /a 'x", "f:1: a quotation does not end"),
            ("\nfly /a", "f:2: unrecognized subcommand 'fly'"),
            ("set /a x --version -1", "f:1: "),
            ("check /\ncreate jobs/7 x", "f:2: "),
            ("create --sequential jobs/ x", "f:1: "),
            ("delete /a/", "f:1: "),
        ] {
            let failure = parse("f", text).unwrap_err();
            assert!(failure.to_string().starts_with(message), "{failure}");
            assert_eq!(failure.exit, Exit::Usage);
        }
    }
}
