//! Scripts: prose, commands, and below each command what came of it.
//!
//! ```text
//! # The server is asked, and answers.
//! > submit get /a as=g1
//! send #1 getData /a
//! ```
//!
//! A command is a line that begins with `>`; its output goes to the next command, the next line of
//! prose (`#`) or the next empty line. With `REWRITE` in the environment, scripts are not checked but
//! written anew with the output of today; what has changed is then for the reviewer to see.

use std::{fmt::Write as _, fs, path::Path};

use zk_tests::transcript::Versions;

use crate::session::world::World;

/// A line of prose, or a command with its output.
enum Piece {
    Prose(String),
    Step { line: usize, command: String, expected: Vec<String> },
}

/// Runs a script. Panics with a diff if something else comes of it than it says.
#[track_caller]
pub(crate) fn run(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("session/scripts/{name}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut world = World::new();
    let (mut rewritten, mut diff) = (String::new(), String::new());
    for piece in parse(&text) {
        match piece {
            Piece::Prose(line) => writeln!(rewritten, "{line}").unwrap(),
            Piece::Step { line, command, expected } => {
                let actual = world.execute(&command).unwrap_or_else(|error| {
                    panic!("{name}.txt:{line}: {error}\n> {command}");
                });
                if actual != expected {
                    writeln!(diff, "{name}.txt:{line}\n> {command}").unwrap();
                    diff.push_str(&Versions::new(&expected, &actual).in_context());
                    diff.push('\n');
                }
                writeln!(rewritten, "> {command}").unwrap();
                for line in actual {
                    writeln!(rewritten, "{line}").unwrap();
                }
            }
        }
    }
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, rewritten).unwrap();
    } else {
        assert!(
            diff.is_empty(),
            "the session does not what the script says (- said, + done):\n\n{diff}"
        );
    }
}

fn parse(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut in_output = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(command) = line.strip_prefix('>') {
            let command = String::from(command.trim());
            pieces.push(Piece::Step { line: index + 1, command, expected: Vec::new() });
            in_output = true;
        } else if line.is_empty() || line.starts_with('#') {
            pieces.push(Piece::Prose(line.into()));
            in_output = false;
        } else if let Some(Piece::Step { expected, .. }) = pieces.last_mut().filter(|_| in_output) {
            expected.push(line.into());
        } else {
            panic!("line {}: output without a command: {line}", index + 1);
        }
    }
    pieces
}
