//! What is wrong with a command line, and what to do about it.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{Exit, Failure, with_slashes};

/// Words of zkCli.sh, of etcdctl and consul, and of shells, and what does the same here.
const OTHER_WORDS: [(&str, &str); 45] = [
    ("addWatch", "zk watch PATH"),
    ("addauth", "option --auth-file: zk help connection"),
    ("alarm", "zk quota, and zk health"),
    ("cat", "zk get PATH"),
    ("close", "exit, in zk shell"),
    ("connect", "option --server: zk help connection"),
    ("del", "zk delete PATH"),
    ("deleteall", "zk delete -r PATH"),
    ("delquota", "zk quota PATH --delete"),
    ("du", "zk count PATH, and zk quota PATH"),
    ("dump", "zk export PATH FILE, and zk sessions"),
    ("endpoint", "zk health"),
    ("exists", "zk stat PATH"),
    ("getAcl", "zk acl PATH"),
    ("getAllChildrenNumber", "zk count PATH"),
    ("getEphemerals", "zk ephemerals PATH"),
    ("history", "zk shell, which has one"),
    ("kv", "zk get PATH, zk set PATH DATA, zk ls PATH"),
    ("leader", "zk health"),
    ("lease", "zk sessions, and zk ephemerals PATH"),
    ("listquota", "zk quota PATH"),
    ("ls2", "zk ls PATH, and zk stat PATH"),
    ("make-mirror", "zk export PATH FILE, and zk import PATH FILE"),
    ("member", "zk config, and zk reconfig"),
    ("members", "zk config"),
    ("mkdir", "zk create -p PATH"),
    ("mntr", "zk health"),
    ("printwatches", "end the command that watches"),
    ("put", "zk set PATH DATA"),
    ("quit", "exit, in zk shell"),
    ("redo", "zk shell, which has a history"),
    ("removewatches", "end the command that watches"),
    ("rm", "zk delete PATH"),
    ("rmr", "zk delete -r PATH"),
    ("role", "zk acl PATH"),
    ("ruok", "zk health"),
    ("setAcl", "zk acl PATH ENTRY..."),
    ("setquota", "zk quota PATH --nodes N --bytes N"),
    ("snapshot", "zk export PATH FILE"),
    ("srvr", "zk health"),
    ("touch", "zk create PATH"),
    ("tree", "zk ls -R PATH"),
    ("txn", "zk multi FILE"),
    ("user", "zk whoami"),
    ("version", "zk --version"),
];

/// Options of zkCli.sh, etcdctl and consul, the commands that they stand behind, and what does the same here, where `-s`
/// and `-v` are others.
const OTHER_OPTIONS: [(&[&str], &str, &str); 23] = [
    (&["create"], "-e", "--ephemeral"),
    (&["create"], "-s", "--sequential"),
    (&["create"], "-c", "--container"),
    (&["create"], "-t", "--ttl"),
    (&["delete", "set"], "-v", "--version"),
    (&["ls"], "-s", "-l"),
    (&["get", "config", "set"], "-s", "zk stat PATH prints the metadata"),
    (&["config"], "-c", "--json"),
    (&["reconfig"], "-file", "--members"),
    (&["reconfig"], "-members", "--members"),
    (&["get", "ls", "stat", "config"], "-w", "zk watch PATH"),
    (&["delete"], "-R", "-r"),
    (&["lock"], "-n", "--semaphore N"),
    (&["lock"], "-name", "--description"),
    (&["lock"], "-timeout", "--timeout"),
    (&["lock"], "-try", "--try, or --timeout for a while"),
    (&["elect"], "--listen", "zk elect PATH, without a command"),
    (&["get"], "--consistency=s", "--read-only"),
    (&["get"], "--count-only", "zk count PATH"),
    (&["get"], "--keys-only", "zk ls -R PATH"),
    (&["get"], "--prefix", "zk ls -R PATH, zk export PATH"),
    (&["watch"], "-m", "without --recursive, the node and its children"),
    (&["acl"], "-s", "zk stat PATH prints the metadata"),
];

/// What `-v` and a number behind it may mean, where either could cost data.
///
/// # Errors
/// That it is not clear.
pub(crate) fn unambiguous<W: AsRef<str>>(words: &[W]) -> Result<(), Failure> {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
    let mut words = words.iter().map(W::as_ref).take_while(|word| *word != "--");
    // The program's own options may be in front of it.
    let subcommand = words.find(|word| !word.starts_with('-'));
    let takes_version = subcommand.is_some_and(|it| ["delete", "set"].contains(&it));
    let mut is_behind = false;
    for word in words {
        if takes_version && is_behind && is_number(word) {
            let why = format!("-v {word}: -v logs more here, and takes no number");
            let next = format!("--version {word}; data that is a number stands in front of -v");
            return Err(Failure::new(Exit::Usage, why).next(next));
        }
        is_behind = word == "-v";
    }
    Ok(())
}

/// Why a command line has failed, with what to type for options of other tools, if it is about what was typed.
pub(crate) fn advised<W: AsRef<str>>(failure: Failure, words: &[W]) -> Failure {
    let hint = if failure.exit == Exit::Usage { other_options(words) } else { None };
    match hint {
        Some(hint) => failure.next(hint),
        None => failure,
    }
}

pub(super) fn other_options<W: AsRef<str>>(words: &[W]) -> Option<String> {
    let mut words = words.iter().map(W::as_ref).take_while(|word| *word != "--").peekable();
    let first = words.next()?;
    let hints = std::iter::from_fn(|| Some((words.next()?, words.peek().copied())));
    let hints = hints.filter_map(|(word, behind)| {
        // Ours is --server.
        if word == "-s" && behind.is_some_and(|it| !it.starts_with(['/', '-'])) {
            return None;
        }
        if word == "-server" {
            return Some("-server: --server".to_owned());
        }
        let known = |(commands, option, _): &&(&[&str], &str, &str)| {
            *option == word && commands.contains(&first)
        };
        let (_, option, ours) = OTHER_OPTIONS.iter().find(known)?;
        Some(format!("{option}: {ours}"))
    });
    let hints: Vec<_> = hints.collect();
    (!hints.is_empty()).then(|| format!("in place of other tools' {}", hints.join(", ")))
}

/// Whether this is what was asked for, or what there is to say to a command line without a subcommand.
pub(crate) fn is_help(error: &clap::Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// A command line that makes no sense.
pub(crate) fn mistake(mut error: clap::Error) -> Failure {
    let next = next(&error);
    if next.is_some() {
        // Such as `evict` for `exists`.
        let _ = error.remove(ContextKind::SuggestedSubcommand);
        let _ = error.remove(ContextKind::Suggested);
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    // The usage has what was given by $ZK_SERVER, as if it had to be typed.
    let text = text.replace(" --server <HOST:PORT,…>", "");
    // Without clap's last line, on --help: what to do next stands in its place.
    let text = text.rsplit_once("\n\nFor more information").map_or(&*text, |(text, _)| text);
    let failure = Failure::new(Exit::Usage, text.trim_end());
    match next {
        Some(next) => failure.next(next),
        None => failure,
    }
}

fn next(error: &clap::Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand)?;
            let same = OTHER_WORDS.iter().find(|(other, _)| other.eq_ignore_ascii_case(word))?.1;
            Some(format!("here: {same}"))
        }
        ErrorKind::UnknownArgument => {
            let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
            let takes_command = usage.contains("-- <COMMAND>...");
            let word = word(ContextKind::InvalidArg)?;
            if usage.contains("<COMMAND>") && !takes_command && word.starts_with('-') {
                return Some(
                    "options stand behind the subcommand: zk ls --server HOST:PORT".into(),
                );
            }
            (takes_command && !word.starts_with('-'))
                .then(|| format!("the command stands behind --: -- {word} ..."))
        }
        ErrorKind::ValueValidation => {
            let (arg, value) = (word(ContextKind::InvalidArg)?, word(ContextKind::InvalidValue)?);
            match arg {
                "<TOKEN>" => Some("zk holders PATH lists the tokens, which are numbers".to_owned()),
                "<PATH>" | "[PATH]" => with_slashes(value),
                _ => None,
            }
        }
        _ => None,
    }
}
