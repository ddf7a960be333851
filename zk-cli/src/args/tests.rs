use clap::{Arg, Command as Cli, CommandFactory as _, Parser as _, error::ErrorKind};

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
    Operation::command().debug_assert();
}

const MISTYPED: [&str; 2] = ["--no-such-option", "-%"];

#[test]
fn mistyped_options_are_refused_everywhere() {
    for command in built(Args::command()).get_subcommands() {
        refuses(command, Args::command, &["zk"]);
    }
    for command in built(Operation::command()).get_subcommands() {
        refuses(command, Operation::command, &[]);
    }
}

fn built(mut command: Cli) -> Cli {
    command.build();
    command
}

/// In front of each positional argument and behind it, with all of them and with fewer; and as the value of each option.
#[track_caller]
fn refuses(command: &Cli, whole: fn() -> Cli, front: &[&str]) {
    let (last, own): (Vec<_>, Vec<_>) =
        command.get_positionals().partition(|arg| arg.is_last_set());
    let own: Vec<_> = own.into_iter().map(sample).collect();
    let behind: &[&str] = if last.is_empty() { &[] } else { &["--", "true"] };
    let refused = |middle: &[&str]| {
        let line = [front, &[command.get_name()], middle, behind].concat();
        let error = whole().try_get_matches_from(&line).expect_err(&format!("{line:?}"));
        let text = error.to_string();
        assert!(text.contains("tip:") || text.contains("try '--help'"), "{line:?}: {text}");
        error
    };
    for mistyped in MISTYPED {
        for count in 0..=own.len() {
            for place in 0..=count {
                let mut middle = own[..count].to_vec();
                middle.insert(place, mistyped);
                let error = refused(&middle);
                assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{middle:?}: {error}");
            }
        }
        for option in command.get_opts() {
            let option = format!("--{}", option.get_long().expect("all options have long names"));
            refused(&[&[&*option, mistyped], &*own].concat());
        }
    }
}

/// A value that is understood.
fn sample(positional: &Arg) -> &'static str {
    match positional.get_id().as_str() {
        "token" | "grace" | "parent" => "7",
        "group" => "group",
        "entries" => "world:anyone:r",
        "session" => "0x7",
        "shell" => "bash",
        _ => "/a",
    }
}

#[test]
fn data_with_a_hyphen_comes_behind_two() {
    for (line, data) in [
        (&["zk", "set", "/a", "--", "--version=3"][..], "--version=3"),
        (&["zk", "create", "/a", "--", "-1"], "-1"),
        (&["zk", "set", "/a", "-"], "-"),
    ] {
        let parsed = Args::try_parse_from(line).unwrap();
        let (Command::Set(SetArgs { data: read, .. })
        | Command::Create(CreateArgs { data: read, .. })) = parsed.command
        else {
            panic!("{line:?}")
        };
        assert_eq!(read.as_deref(), Some(data.as_ref()), "{line:?}");
    }
}

/// Everything in the column for `zk` of the table of other tools' commands.
#[test]
fn commands_in_the_readme_are_understood() {
    let rows = include_str!("../../README.md").lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let code = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let lines: Vec<_> = code.filter(|code| code.starts_with("zk ")).collect();
    assert!(lines.len() > 60, "{lines:?}");
    for line in lines {
        let words = shlex::split(line).unwrap_or_else(|| panic!("{line}"));
        match Args::try_parse_from(words) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::DisplayVersion, "{line}: {error}"),
        }
    }
}

/// Each of them, so that a new one has to find its place in the table of the README.
#[test]
fn every_subcommand_is_in_the_readme() {
    let readme = include_str!("../../README.md");
    for command in Args::command().get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = command.get_name();
        assert!(name == "help" || readme.contains(&format!("`zk {name}")), "{name}");
    }
}

/// What people with zkCli.sh, etcdctl or consul in their fingers type is a command of ours, or is answered with it.
#[test]
fn each_word_of_other_tools_is_answered() {
    let rows = include_str!("../../README.md").lines().filter(|line| line.starts_with("| "));
    let columns = rows.flat_map(|row| row.split('|').skip(2).take(2));
    let phrases: Vec<_> = columns.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let (mut counted, mut unanswered) = (0, Vec::new());
    let tools = ["zkCli.sh", "etcdctl", "consul lock"];
    for phrase in phrases.into_iter().filter(|phrase| !tools.contains(phrase)) {
        let words: Vec<&str> = phrase.split(' ').collect();
        let line = [&["zk"], &words[..]].concat();
        // Without an option of its own, or with one that means the same here.
        let is_ours = Args::command().find_subcommand(words[0]).is_some()
            && words[1..].iter().all(|word| !word.starts_with('-') || ["-R", "--"].contains(word));
        let Err(error) = Args::try_parse_from(line) else {
            assert!(is_ours || mistakes::other_options(&words).is_some(), "{phrase}");
            continue;
        };
        let said = advised(mistake(error), &words).to_string();
        let is_answered =
            ["    here: ", "    in place of other tools' ", "    options stand behind"];
        counted += 1;
        if !is_ours && !is_answered.iter().any(|it| said.contains(it)) {
            unanswered.push(phrase);
        }
    }
    assert!(counted > 20, "the table is not where this test looks");
    assert!(unanswered.is_empty(), "{unanswered:?}");
}
