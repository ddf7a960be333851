//! Whether the list of futures is the whole API: the sources are asked.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::scene::{ELSEWHERE, scenes};

/// Every future that the list names.
pub(crate) fn futures() -> BTreeSet<&'static str> {
    scenes().map(|scene| scene.future).collect()
}

fn sources(package: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src");
    let found = files(&folder);
    assert!(found.len() > 5, "the sources are not in {}", folder.display());
    found
}

/// Every source file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs"));
    here.chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

/// The name at the front of some code.
fn name(code: &str) -> &str {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// What can be awaited, in one file: methods as `Type::method`, and types.
fn awaited(text: &str) -> BTreeSet<String> {
    // Tests stand at the foot.
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    let mut of = "";
    let mut in_list = false;
    // Of a method whose signature goes on in further lines.
    let mut begun = None;
    for line in text.lines() {
        let code = line.trim_start();
        if let Some(implementation) = line.strip_prefix("impl") {
            let (trait_name, of_type) = match implementation.split_once(" for ") {
                Some((named, of_type)) => (Some(named), of_type),
                None => (None, implementation),
            };
            let of_type = match of_type.strip_prefix('<') {
                Some(generic) => generic.split_once("> ").map_or("", |(_, of_type)| of_type),
                None => of_type.trim_start(),
            };
            of = name(of_type);
            let last = trait_name.and_then(|named| named.split_whitespace().last());
            if matches!(last, Some("Future" | "IntoFuture")) {
                found.insert(of.to_owned());
            }
        } else if let Some(method) = code.strip_prefix("pub async fn ") {
            found.insert(format!("{of}::{}", name(method)));
        } else if let Some(method) = code.strip_prefix("pub fn ") {
            begun = Some(name(method)).filter(|_| !code.ends_with('{'));
            if code.contains("-> impl Future") {
                found.insert(format!("{of}::{}", name(method)));
            }
        } else if code.starts_with(") ->") {
            let method = begun.take().filter(|_| code.starts_with(") -> impl Future"));
            found.extend(method.map(|method| format!("{of}::{method}")));
        } else if line.starts_with("awaitable! {") {
            in_list = true;
        } else if in_list {
            in_list = line != "}";
            if in_list && code.contains(": ") {
                found.insert(name(code).to_owned());
            }
        }
    }
    found
}

#[test]
fn every_future_of_the_api_is_on_the_list_and_nothing_else() {
    let mut awaited_there = BTreeSet::new();
    for package in ["zk-client", "zk-locks"] {
        for source in sources(package) {
            awaited_there.append(&mut awaited(&fs::read_to_string(source).unwrap()));
        }
    }
    let elsewhere = ELSEWHERE.iter().map(|(future, _)| *future);
    let listed: BTreeSet<String> =
        futures().into_iter().chain(elsewhere).map(str::to_owned).collect();
    let missing: Vec<_> = awaited_there.difference(&listed).collect();
    assert!(missing.is_empty(), "no scene drops {missing:?}");
    let invented: Vec<_> = listed.difference(&awaited_there).collect();
    assert!(invented.is_empty(), "the API has no {invented:?}");
}

#[test]
fn a_new_future_of_any_form_would_be_noticed() {
    let text = "impl<'a> Thing<'a> {\n    pub async fn wait(&self) {}\n    pub fn go(self) -> impl Future<Output = ()> {}\n    \
                pub fn look(\n        self,\n    ) -> impl Future<Output = ()> {}\n}\n\
                impl IntoFuture for Builder<'_> {\n}\nimpl<T> Future for Later<T> {\n}\n\
                awaitable! {\n    Listed: (), Error;\n}\n";
    let found = awaited(text);
    let expected = ["Builder", "Later", "Listed", "Thing::go", "Thing::look", "Thing::wait"];
    assert!(found.iter().map(String::as_str).eq(expected), "{found:?}");
}
