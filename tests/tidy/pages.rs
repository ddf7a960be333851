//! What pages name: files, folders, and items in files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{files, root};

fn pages() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    files(root(), ".md").into_iter().map(read).collect()
}

/// Targets of links to other files.
fn links(text: &str) -> impl Iterator<Item = &str> {
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

#[test]
fn what_pages_name_is_there() {
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        let folder = page.parent().unwrap();
        let name = page.strip_prefix(root()).unwrap_or(Path::new("")).display();
        let dead = links(&text).filter(|target| !folder.join(target).exists());
        wrong.extend(dead.map(|target| format!("{name}: link to {target}")));
        // Says what there was.
        if !page.ends_with("CHANGELOG.md") {
            let gone = paths(&text).filter(|(path, item)| !is_there(path, *item));
            wrong.extend(gone.map(|(path, item)| format!("{name}: {path} {item:?}")));
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
}
