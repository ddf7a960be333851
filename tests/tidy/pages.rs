//! What pages name: files, folders, and items in files.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::tidy::{files, root};

fn pages() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    files(root(), ".md").into_iter().map(read).collect()
}

/// Targets of links to other files.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap());
    files.filter(|target| target.contains(['/', '.']) && !target.contains([':', ' ']))
}

/// Names between backticks that begin with a folder of the workspace, each with the item behind `::`, if any.
fn paths(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let lines = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    lines.filter_map(|name| {
        let (folder, _) = name.split_once('/')?;
        let is_path = !name.contains([' ', '*', '<', '…', '{', '$']);
        let is_ours = !folder.is_empty() && root().join(folder).is_dir();
        let (path, item) =
            name.split_once("::").map_or((name, None), |(path, item)| (path, Some(item)));
        (is_path && is_ours).then_some((path, item))
    })
}

fn is_there(path: &str, item: Option<&str>) -> bool {
    let path = root().join(path);
    let has = |item: &str| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == item)
    };
    path.exists() && item.is_none_or(has)
}

/// What commands name, each with its option: subcommands of cargo, packages, targets.
fn targets(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let commands = text.lines().filter_map(|line| line.split_once("cargo "));
    commands.flat_map(|(_, command)| {
        let words: Vec<&str> = command.split([' ', '`', ')']).collect();
        let verb = words.iter().find(|word| !word.starts_with('+')).map(|verb| ("cargo", *verb));
        let named = words.windows(2).map(|pair| (pair[0], pair[1]));
        let named = named.chain(verb).collect::<Vec<_>>();
        named.into_iter().filter(|(option, _)| {
            ["cargo", "-p", "--bin", "--example", "--test", "--bench"].contains(option)
        })
    })
}

/// The names of all packages and their targets, and of cargo's subcommands and aliases.
fn all_targets() -> BTreeSet<String> {
    let manifests = files(root(), "Cargo.toml").into_iter();
    let texts = manifests.map(|path| fs::read_to_string(path).unwrap());
    let named = texts.flat_map(|text| {
        let names = text.split("\nname = \"").skip(1);
        names.filter_map(|rest| rest.split('"').next().map(str::to_owned)).collect::<Vec<_>>()
    });
    let found = files(root(), ".rs").into_iter().filter_map(|path| {
        let path = if path.ends_with("main.rs") { path.parent()?.to_owned() } else { path };
        let folder = path.parent()?.file_name()?.to_str()?;
        let is_target = ["bin", "examples", "tests", "benches"].contains(&folder);
        is_target.then_some(path.file_stem()?.to_str()?.to_owned())
    });
    let config = fs::read_to_string(root().join(".cargo/config.toml")).unwrap();
    let aliases = config.lines().skip_while(|line| *line != "[alias]").skip(1);
    let aliases = aliases.take_while(|line| !line.starts_with('['));
    let aliases = aliases.filter_map(|line| Some(line.split_once(" = ")?.0));
    let verbs = [
        "add", "bench", "build", "check", "clippy", "doc", "fmt", "fuzz", "install", "publish",
        "run", "test",
    ];
    // Whatever there is, as a shell is told.
    let words = verbs.into_iter().chain(aliases).chain(["'*'"]);
    named.chain(found).chain(words.map(str::to_owned)).collect()
}

#[test]
fn what_pages_name_is_there() {
    let (mut wrong, all) = (Vec::new(), all_targets());
    for (page, text) in pages() {
        let folder = page.parent().unwrap();
        let name = page.strip_prefix(root()).unwrap_or_else(|_| Path::new("")).display();
        let dead = links(&text).filter(|target| !folder.join(target).exists());
        wrong.extend(dead.map(|target| format!("{name}: link to {target}")));
        // Says what there was.
        if !page.ends_with("CHANGELOG.md") {
            let gone = paths(&text).filter(|(path, item)| !is_there(path, *item));
            wrong.extend(gone.map(|(path, item)| format!("{name}: {path} {item:?}")));
            let gone = targets(&text).filter(|(_, target)| !all.contains(*target));
            wrong.extend(gone.map(|(option, target)| format!("{name}: {option} {target}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_name_of_nothing_is_noticed() {
    let text =
        "`tests/tidy/pages.rs::links` [it](a.md#b) [c](#c) [d](https://d.e/f.md) `not/ours.rs`";
    assert!(paths(text).eq([("tests/tidy/pages.rs", Some("links"))]));
    assert!(links(text).eq(["a.md"]));
    assert!(is_there("tests/tidy/pages.rs", Some("links")));
    assert!(!is_there("tests/tidy/pages.rs", Some(concat!("no", "where"))));
    assert!(!is_there("tests/tidy/page.rs", None));
    let text = "`cargo test -p zk-tests --test all -- x`";
    assert!(targets(text).eq([("-p", "zk-tests"), ("--test", "all"), ("cargo", "test")]));
    let all = all_targets();
    assert!(all.contains("zk-tests") && all.contains("list") && !all.contains("lists"));
}
