//! What a line asks for: the words of the command line, and a few of the shell's own.

use std::{any::TypeId, ffi::OsString};

use clap::{
    ArgMatches, Args as _, CommandFactory as _, FromArgMatches as _, builder::OsStr,
    parser::ValueSource,
};
use zk_client::path::ZkPath;

use super::place::Place;
use crate::{
    args::{Args, ConnectArgs, unambiguous},
    commands::Command,
    exit::Failure,
};

/// What a line asks for.
#[derive(Debug)]
pub(crate) enum Line {
    Nothing,
    Enter(ZkPath),
    Where,
    /// What there is, with the shell's own words.
    Overview,
    End,
    Command {
        command: Box<Command>,
        /// Whether it names options of a connection, and so wants one of its own.
        is_apart: bool,
    },
    /// Help, or what is wrong.
    Told(clap::Error),
    Refused(Failure),
    Wrong(&'static str),
}

/// The options of the connection that the shell was started with, for each command to have: the id of each, and its words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inherited(Vec<(String, Vec<OsString>)>);

impl Inherited {
    /// Those of this process, which was started as a shell.
    pub(crate) fn of_process() -> Self {
        let matches = Args::command().try_get_matches_from(std::env::args_os());
        let shell = matches.as_ref().ok().and_then(ArgMatches::subcommand);
        shell.map_or_else(Self::default, |(_, matches)| Self::of(matches))
    }

    fn of(matches: &ArgMatches) -> Self {
        let mut options = Vec::new();
        for arg in connection().get_arguments() {
            let (id, Some(long)) = (arg.get_id().as_str(), arg.get_long()) else { continue };
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let option = OsString::from(format!("--{long}"));
            let mut words = Vec::new();
            if arg.get_action().takes_values() {
                for value in matches.get_raw(id).into_iter().flatten() {
                    words.extend([option.clone(), value.to_owned()]);
                }
            } else {
                words.push(option);
            }
            options.push((id.to_owned(), words));
        }
        Self(options)
    }

    /// What a line has of them: not what it says itself; and nothing where it names other servers, which are not to be
    /// shown this one's credentials.
    fn words(&self, line: &ArgMatches) -> impl Iterator<Item = OsString> {
        let is_elsewhere = ["server", "profile"].iter().any(|id| is_said(line, id));
        let options = self.0.iter().filter(move |(id, _)| !is_elsewhere && !is_said(line, id));
        options.flat_map(|(_, words)| words.iter().cloned())
    }
}

/// The options of a connection, as a command of their own.
fn connection() -> clap::Command {
    ConnectArgs::augment_args(clap::Command::new("connection"))
}

/// The command line as it is understood here: with paths relative to this place, and without a program's name.
pub(crate) fn grammar(place: &Place) -> clap::Command {
    let path = |place: &Place| {
        let place = place.clone();
        move |text: &str| place.node(text)
    };
    let own = clap::Command::new;
    let enter = clap::Arg::new("path").default_value("/").value_name("PATH");
    let enter = enter.value_parser(path(place));
    let place = place.clone();
    // Options in front of a subcommand are the program's, not those of a line.
    let commands: Vec<_> = Args::command().get_subcommands().cloned().collect();
    clap::Command::new("zk")
        .subcommands(commands)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .multicall(true)
        .subcommand(own("cd").about("Enter a node, which paths are relative to").arg(enter))
        .subcommand(own("pwd").about("Print the node that paths are relative to"))
        .subcommand(own("exit").visible_alias("quit").about("End the shell, as Ctrl-D does"))
        .mut_subcommands(move |command| {
            let place = place.clone();
            command.mut_args(move |arg| {
                let type_id = arg.get_value_parser().type_id();
                if type_id == TypeId::of::<ZkPath>() {
                    let is_root = arg.get_default_values() == [OsStr::from("/")];
                    // The shell's own words say what they mean.
                    let here = is_root && arg.is_positional();
                    let arg = arg.value_parser(path(&place));
                    return if here { arg.default_value(".") } else { arg };
                }
                if is_path_of_sequence(&arg) {
                    let place = place.clone();
                    return arg.value_parser(move |text: &str| -> Result<String, String> {
                        Ok(place.resolved(text))
                    });
                }
                arg
            })
        })
        .mut_subcommand("cd", |command| command.mut_arg("path", |arg| arg.default_value("/")))
}

/// Whether this is a path up to a number that servers append, and so no path yet.
fn is_path_of_sequence(arg: &clap::Arg) -> bool {
    arg.get_id() == "path" && arg.get_value_parser().type_id() == TypeId::of::<String>()
}

/// Whether this is the path of a node.
pub(crate) fn is_path(arg: &clap::Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<ZkPath>() || is_path_of_sequence(arg)
}

/// The words of a line, if its quotations end.
pub(crate) fn words(text: &str) -> Option<Vec<String>> {
    let mut words = shlex::split(text)?;
    // As advice on what to do next is written.
    if words.len() > 1 && words.first().is_some_and(|word| word == "zk") {
        words.remove(0);
    }
    Some(words)
}

/// Reads a line.
pub(crate) fn read(text: &str, place: &Place, inherited: &Inherited) -> Line {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Line::Nothing;
    }
    let Some(words) = words(text) else { return Line::Wrong("a quotation does not end") };
    if let Err(failure) = unambiguous(&words) {
        return Line::Refused(failure);
    }
    match matches(&words, place) {
        Err(error) => Line::Told(error),
        Ok(matches) => match matches.subcommand() {
            Some(("cd", its)) => its.get_one("path").cloned().map_or(Line::Where, Line::Enter),
            Some(("pwd", _)) => Line::Where,
            Some(("exit", _)) => Line::End,
            Some(("help", its)) => match its.get_one::<String>("topic").map(String::as_str) {
                None => Line::Overview,
                Some(own @ ("cd" | "pwd" | "exit" | "quit")) => own_help(own, place),
                Some(_) => command(&matches, false),
            },
            Some(("shell", _)) => Line::Wrong("this is a shell already"),
            Some((name, its)) if has_connection(its) => {
                let (first, others) =
                    (OsString::from(name), words.iter().skip(1).map(OsString::from));
                let words = [first].into_iter().chain(inherited.words(its)).chain(others);
                match grammar(place).try_get_matches_from(words) {
                    // What renews the lease is the session's own.
                    Ok(matches) => command(&matches, is_apart(its) || is_said(its, "lease")),
                    Err(error) => Line::Told(error),
                }
            }
            Some(_) => command(&matches, false),
            None => Line::Nothing,
        },
    }
}

/// On one of the shell's own words.
fn own_help(word: &str, place: &Place) -> Line {
    let help = [word.to_owned(), "--help".to_owned()];
    matches(&help, place).map_or_else(Line::Told, |_| Line::Nothing)
}

fn matches(words: &[String], place: &Place) -> Result<ArgMatches, clap::Error> {
    grammar(place).try_get_matches_from(words)
}

fn command(matches: &ArgMatches, is_apart: bool) -> Line {
    match Command::from_arg_matches(matches) {
        Ok(command) => Line::Command { command: Box::new(command), is_apart },
        Err(error) => Line::Told(error),
    }
}

/// Whether a command has options of a connection. Others may have one of the same name.
fn has_connection(matches: &ArgMatches) -> bool {
    connection().get_arguments().all(|arg| matches.try_contains_id(arg.get_id().as_str()).is_ok())
}

/// Whether the line itself says something about the connection.
fn is_apart(matches: &ArgMatches) -> bool {
    connection().get_arguments().any(|arg| is_said(matches, arg.get_id().as_str()))
}

/// Whether the line itself has this option, if the command has.
fn is_said(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok()
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: &str, text: &str) -> Line {
        read(text, &Place::new(place.parse().unwrap()), &Inherited::default())
    }

    #[test]
    fn commands_have_paths_relative_to_the_place() {
        let Line::Command { command, is_apart: false } = at("/locks", "holders report") else {
            panic!()
        };
        let Command::Holders(args) = *command else { panic!("{command:?}") };
        assert_eq!(args.path.as_str(), "/locks/report");
        let Line::Command { command, .. } = at("/locks", "ls") else { panic!() };
        let Command::Ls(args) = *command else { panic!("{command:?}") };
        assert_eq!(args.path.as_str(), "/locks");
        let Line::Command { command, .. } = at("/q", "create --sequential n- 'two words'") else {
            panic!()
        };
        let Command::Create(args) = *command else { panic!("{command:?}") };
        assert_eq!(
            (&*args.path, args.data.as_deref().and_then(std::ffi::OsStr::to_str)),
            ("/q/n-", Some("two words"))
        );
    }

    #[test]
    fn own_words_are_understood() {
        assert!(matches!(at("/a", "cd b"), Line::Enter(path) if path.as_str() == "/a/b"));
        assert!(matches!(at("/a", "cd .."), Line::Enter(path) if path.as_str() == "/"));
        assert!(matches!(at("/a/b", "cd"), Line::Enter(path) if path.as_str() == "/"));
        assert!(matches!(at("/a", "pwd"), Line::Where));
        assert!(matches!(at("/a", "exit"), Line::End) && matches!(at("/a", "quit"), Line::End));
        assert!(
            matches!(at("/a", "  # ls"), Line::Nothing) && matches!(at("/a", ""), Line::Nothing)
        );
        assert!(matches!(at("/a", "get 'x"), Line::Wrong(_)));
        assert!(matches!(at("/a", "shell"), Line::Wrong(_)));
        assert!(
            matches!(at("/a", "fly"), Line::Told(_))
                && matches!(at("/a", "ls --help"), Line::Told(_))
        );
    }

    #[test]
    fn options_of_the_shell_are_those_of_its_lines() {
        let shell = ["zk", "shell", "--server", "a:1,b:2", "--connect-timeout", "3s"];
        let matches = Args::command().try_get_matches_from(shell).unwrap();
        let inherited = Inherited::of(matches.subcommand().unwrap().1);
        let place = Place::new(ZkPath::root());
        let Line::Command { command, is_apart: false } = read("ls -l", &place, &inherited) else {
            panic!()
        };
        let Command::Ls(args) = *command else { panic!("{command:?}") };
        assert_eq!(args.common.connect.server.as_deref(), Some("a:1,b:2"));
        let line = read("ls --server c:3", &place, &inherited);
        let Line::Command { command, is_apart: true } = line else { panic!("{line:?}") };
        let Command::Ls(args) = *command else { panic!("{command:?}") };
        assert_eq!(args.common.connect.server.as_deref(), Some("c:3"));
        assert_eq!(args.common.connect.connect_timeout, None);
        // The same servers in another way.
        let line = read("ls --session-timeout 5s", &place, &inherited);
        let Line::Command { command, is_apart: true } = line else { panic!("{line:?}") };
        let Command::Ls(args) = *command else { panic!("{command:?}") };
        let connect = args.common.connect;
        let timeouts = [connect.session_timeout, connect.connect_timeout];
        assert_eq!(connect.server.as_deref(), Some("a:1,b:2"));
        assert_eq!(timeouts, [5, 3].map(|seconds| Some(std::time::Duration::from_secs(seconds))));
        let line = read("ls --connect-timeout 5s", &place, &inherited);
        let Line::Command { command, is_apart: true } = line else { panic!("{line:?}") };
        let Command::Ls(args) = *command else { panic!("{command:?}") };
        let timeout = args.common.connect.connect_timeout;
        assert_eq!(timeout, Some(std::time::Duration::from_secs(5)));
        let line = read("lock --lease connection /l -- true", &place, &inherited);
        let Line::Command { command, is_apart: true } = line else { panic!("{line:?}") };
        let Command::Lock(args) = *command else { panic!("{command:?}") };
        assert_eq!(args.connect.server.as_deref(), Some("a:1,b:2"));
        // Its option of that name is another one.
        let line = read("demo", &place, &inherited);
        assert!(matches!(line, Line::Command { is_apart: false, .. }), "{line:?}");
    }
}
