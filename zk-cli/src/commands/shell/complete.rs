//! What a word may go on with: commands, options, and paths of nodes.

use std::{sync::Arc, time::Duration};

use rustyline::{
    Context, Helper as RustylineHelper, Result,
    completion::{Completer, Pair},
    highlight::Highlighter,
    hint::Hinter,
    validate::Validator,
};
use tokio::{runtime::Handle, time::timeout};
use zk_client::path::join;

use super::{
    line::{grammar, is_path},
    place::Place,
    words::Typed,
};
use crate::{render::printable, shared::Shared};

/// How long a person waits for names.
const PATIENCE: Duration = Duration::from_secs(2);

/// Knows what words may go on with.
#[derive(Debug)]
pub(crate) struct Helper {
    pub(crate) place: Place,
    pub(crate) shared: Arc<Shared>,
    pub(crate) runtime: Handle,
}

/// What a word is.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// One of these.
    Any(Vec<String>),
    Path,
    Nothing,
}

impl RustylineHelper for Helper {}
impl Highlighter for Helper {}
impl Validator for Helper {}
impl Hinter for Helper {
    type Hint = String;
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let typed = Typed::read(line.get(..pos).unwrap_or(line));
        let candidates = match wanted(&grammar(&self.place), &typed) {
            Wanted::Nothing => Vec::new(),
            Wanted::Path => self.paths(&typed),
            Wanted::Any(words) => {
                let mut words = words;
                words.retain(|word| word.starts_with(&typed.last));
                words.sort();
                let pair =
                    |word: String| Pair { replacement: typed.written(&word, true), display: word };
                words.into_iter().map(pair).collect()
            }
        };
        Ok((typed.start, candidates))
    }
}

impl Helper {
    /// The nodes whose paths begin like that. In a thread that is none of the runtime's.
    fn paths(&self, typed: &Typed) -> Vec<Pair> {
        let (above, begin) =
            typed.last.rsplit_once('/').map_or(("", &*typed.last), |(above, begin)| {
                (if above.is_empty() { "/" } else { above }, begin)
            });
        let Ok(parent) = self.place.node(above) else { return Vec::new() };
        let found = async { timeout(PATIENCE, self.children(&parent, begin)).await };
        let found = self.runtime.block_on(found);
        // What cannot be had in time, or at all, is no reason to disturb who types.
        let Ok(Some((names, goes_on))) = found else { return Vec::new() };
        let is_only = names.len() == 1;
        let pair = |name: String| {
            let word = match above {
                "" => name.clone(),
                above => join(above, &name),
            };
            let replacement = if is_only && goes_on {
                typed.written(&(word + "/"), false)
            } else {
                typed.written(&word, is_only)
            };
            Pair { display: printable(&name), replacement }
        };
        names.into_iter().map(pair).collect()
    }

    /// Children whose names begin like that; and, of a single one, whether it has children.
    async fn children(&self, parent: &str, begin: &str) -> Option<(Vec<String>, bool)> {
        let client = self.shared.client().await.ok()?;
        let (names, _) = client.children(parent).packed().await.ok()?;
        // Those that are not text cannot be typed.
        let is_meant = |name: &str| name.starts_with(begin) && !name.contains('\u{FFFD}');
        let mut names: Vec<String> =
            names.iter().filter(|name| is_meant(name)).map(|name| name.into_owned()).collect();
        names.sort_unstable();
        let goes_on = match &*names {
            [name] => {
                let stat = client.exists(&join(parent, name)).await.ok().flatten();
                stat.is_some_and(|stat| stat.num_children > 0)
            }
            _ => false,
        };
        Some((names, goes_on))
    }
}

/// What the last word is to be.
fn wanted(grammar: &clap::Command, typed: &Typed) -> Wanted {
    let commands = || {
        let shown = grammar.get_subcommands().filter(|command| !command.is_hide_set());
        let names = shown.map(|command| command.get_name().to_owned());
        Wanted::Any(names.collect())
    };
    let Some((first, words)) = typed.before.split_first() else { return commands() };
    if first == "help" {
        return commands();
    }
    let Some(command) = grammar.find_subcommand(first) else { return Wanted::Nothing };
    let option = |word: &str| {
        let (long, short) = (word.strip_prefix("--"), word.strip_prefix('-'));
        command.get_arguments().find(|arg| {
            let is_short = |short: &str| short.chars().eq(arg.get_short());
            long.is_some_and(|long| arg.get_long() == Some(long))
                || (long.is_none() && short.is_some_and(is_short))
        })
    };
    // Where an equals sign is required, no word of its own is the value.
    let is_apart =
        |arg: &&clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    let takes_value = |word: &str| option(word).filter(is_apart);
    if words.iter().any(|word| word == "--") {
        return Wanted::Nothing;
    }
    if let Some(arg) = words.last().and_then(|word| takes_value(word)) {
        return of(arg);
    }
    if typed.last.starts_with('-') && typed.quote.is_none() {
        let longs = command.get_arguments().filter_map(|arg| arg.get_long());
        return Wanted::Any(longs.chain(["help"]).map(|long| format!("--{long}")).collect());
    }
    let mut place = 0;
    let mut is_value = false;
    for word in words {
        match (is_value, word.starts_with('-')) {
            (true, _) => is_value = false,
            (false, true) => is_value = takes_value(word).is_some(),
            (false, false) => place += 1,
        }
    }
    command.get_positionals().nth(place).map_or(Wanted::Nothing, of)
}

fn of(arg: &clap::Arg) -> Wanted {
    if is_path(arg) {
        return Wanted::Path;
    }
    let values = arg.get_possible_values();
    match values.is_empty() {
        true => Wanted::Nothing,
        false => Wanted::Any(values.iter().map(|value| value.get_name().to_owned()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &str) -> Wanted {
        let grammar = grammar(&Place::new(zk_client::path::ZkPath::root()));
        wanted(&grammar, &Typed::read(line))
    }

    #[test]
    fn each_word_is_known_by_its_place() {
        for line in ["", "l"] {
            let Wanted::Any(words) = at(line) else { panic!() };
            for word in ["ls", "cd", "help", "holders", "exit"] {
                assert!(words.iter().any(|it| it == word), "{word} in {words:?}");
            }
        }
        let Wanted::Any(options) = at("ls --") else { panic!() };
        assert!(options.contains(&"--recursive".to_owned()), "{options:?}");
        let paths = [
            "ls ",
            "ls -l /a",
            "get ",
            "set --version 3 ",
            "create ",
            "cd x",
            "lock --shared ",
            "quota --delete ",
        ];
        for line in paths {
            assert_eq!(at(line), Wanted::Path, "{line}");
        }
        for line in
            ["get /a ", "set /a x", "set --version ", "lock /a -- ", "fly ", "get --server "]
        {
            assert_eq!(at(line), Wanted::Nothing, "{line}");
        }
        let Wanted::Any(modes) = at("lock --mode ") else { panic!() };
        assert!(modes.contains(&"kazoo".to_owned()), "{modes:?}");
        assert!(matches!(at("help "), Wanted::Any(_)));
    }
}
