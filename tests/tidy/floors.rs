//! What a crate's files may import: nothing that imports them, and nothing from a floor above their own. ARCHITECTURE.md
//! has the floors, and the map of what there is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use crate::tidy::{
    files,
    imports::{Arrows, Library, circles},
    root,
};

/// Crates whose files import each other in one direction.
const HELD: [&str; 4] = MAPPED;

/// Crates of which the map has every module.
const MAPPED: [&str; 4] = ["zk-proto", "zk-client", "zk-locks", "zk-testkit"];

/// What stands in front of the numbered list of a crate's floors.
const FLOORS: &str = "Floors, from the top:";

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The sources of a library, by their names below `src`.
fn library(package: &str) -> BTreeMap<String, String> {
    let source = root().join(package).join("src");
    let name = |path: &std::path::Path| path.strip_prefix(&source).unwrap().display().to_string();
    let read = files(&source, ".rs").into_iter();
    read.map(|path| (name(&path), fs::read_to_string(path).unwrap())).collect()
}

/// The module at the top of a crate that a file belongs to; `None` for the crate's root itself.
fn top(file: &str) -> Option<&str> {
    let top = file.split('/').next()?;
    (top != "lib.rs").then(|| top.trim_end_matches(".rs"))
}

/// What the map says of a crate: the lines below its heading.
fn section<'a>(text: &'a str, package: &str) -> Vec<&'a str> {
    let heading = format!("### `{package}`");
    let lines = text.lines().skip_while(|line| !line.starts_with(&heading)).skip(1);
    lines.take_while(|line| !line.starts_with('#')).collect()
}

/// What stands between backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The floors of a crate, from the top; none if the map has none.
fn floors<'a>(text: &'a str, package: &str) -> Vec<Vec<&'a str>> {
    let lines = section(text, package).into_iter();
    let mut list = lines.skip_while(|line| !line.starts_with(FLOORS)).skip(1).peekable();
    while list.next_if(|line| line.is_empty()).is_some() {}
    let mut floors: Vec<Vec<&str>> = Vec::new();
    for line in list.take_while(|line| !line.is_empty()) {
        // All other lines go on with an item.
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            floors.push(Vec::new());
        }
        floors.last_mut().expect("a list begins with a number").extend(names(line));
    }
    floors
}

/// What is wrong with the arrows of a crate, and with its list of floors if it has one.
fn faults(arrows: &Arrows, floors: &[Vec<&str>]) -> Vec<String> {
    let circles = circles(arrows).into_iter();
    let circles = circles.map(|circle| format!("import each other: {}", circle.join(", ")));
    if floors.is_empty() {
        return circles.collect();
    }
    let there: BTreeSet<&str> = arrows.keys().filter_map(|file| top(file)).collect();
    let listed: Vec<&str> = floors.iter().flatten().copied().collect();
    let count = |module: &str| listed.iter().filter(|it| **it == module).count();
    let homeless = there.iter().filter(|module| count(module) != 1);
    let homeless = homeless.map(|module| format!("on {} floors: {module}", count(module)));
    let unknown = listed.iter().filter(|module| !there.contains(*module));
    let unknown = unknown.map(|module| format!("on a floor, and not there: {module}"));
    // The crate's root is above them all.
    let floor =
        |file: &str| floors.iter().position(|it| top(file).is_some_and(|top| it.contains(&top)));
    let all = arrows.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    let up = all.filter(|(from, to)| floor(to) < floor(from));
    let up = up.map(|(from, to)| format!("{from} imports {to}, which is above it"));
    circles.chain(homeless).chain(unknown).chain(up).collect()
}

/// Modules that the tables of a crate's section name and that are not there, or are there and not named.
fn unmapped(text: &str, package: &str, sources: &BTreeMap<String, String>) -> Vec<String> {
    let cells = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
    let lines = section(text, package).into_iter().filter(|line| line.starts_with('|'));
    let (mut folder, mut named, mut wrong) = (String::new(), BTreeSet::new(), Vec::new());
    for cells in lines.map(cells).filter(|cells| cells.len() > 2) {
        if let Some(header) = cells[1].trim().strip_prefix("module") {
            folder = names(header).map(|name| format!("{name}/")).collect();
            continue;
        }
        for name in names(&cells[1]) {
            let mut places = ["", "/mod"].iter().map(|it| format!("{folder}{name}{it}.rs"));
            if !places.any(|place| sources.contains_key(&place)) {
                wrong.push(format!("{package}: no module {folder}{name}"));
            }
            named.insert(format!("{folder}{name}"));
        }
    }
    let tops = sources.keys().filter(|file| !file.starts_with("bin/")).filter_map(|file| top(file));
    let tops: BTreeSet<&str> = tops.filter(|module| !named.contains(*module)).collect();
    wrong.extend(tops.into_iter().map(|module| format!("{package}: not in the map: {module}")));
    wrong
}

#[test]
fn imports_run_one_way_and_never_up() {
    let text = architecture();
    let mut wrong = Vec::new();
    for package in HELD {
        let arrows = Library::read(&library(package)).arrows();
        let count: usize = arrows.values().map(BTreeSet::len).sum();
        assert!(count > arrows.len(), "{package}: the imports are not where this test looks");
        let faults = faults(&arrows, &floors(&text, package)).into_iter();
        wrong.extend(faults.map(|fault| format!("{package}: {fault}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn map_lists_exactly_the_existing_modules() {
    let text = architecture();
    let sources = MAPPED.map(library);
    let mut wrong = Vec::new();
    for (package, sources) in MAPPED.iter().zip(&sources) {
        assert!(!section(&text, package).is_empty(), "the map has no section for {package}");
        wrong.extend(unmapped(&text, package, sources));
    }
    // In the walks through the code a module goes by the name of its file.
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    for module in words.filter_map(|word| word.strip_suffix(".rs")) {
        let ends = [format!("{module}.rs"), format!("{module}/mod.rs")];
        let is =
            |file: &String| ends.iter().any(|end| format!("/{file}").ends_with(&format!("/{end}")));
        if !sources.iter().flat_map(BTreeMap::keys).any(is) {
            wrong.push(format!("no file {module}.rs"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the files of a made-up crate import.
fn arrows(files: &[(&str, &str)]) -> Arrows {
    let text = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    Library::read(&files.iter().map(text).collect()).arrows()
}

fn imports(arrows: &Arrows, from: &str, to: &[&str]) {
    assert_eq!(arrows[from].iter().map(String::as_str).collect::<Vec<_>>(), to, "{from}");
}

#[test]
fn import_circles_are_found_in_any_form() {
    let ways = [
        "use crate::b::B;",
        "use super::b::{self, B as Other};",
        "fn f() { crate::b::f(); }",
        "fn f() { assert!(matches!(it, Some(super::b::B(_)))); }",
        "impl From<u8> for A { fn from(_: u8) -> Self { { use crate::b; b::f() } } }",
    ];
    for way in ways {
        let lib = ("lib.rs", "mod a; mod b; mod c;");
        let c = ("c.rs", "use crate::a;");
        let arrows = arrows(&[lib, ("a.rs", way), ("b.rs", "use crate::c::C;"), c]);
        assert_eq!(circles(&arrows), [["a.rs", "b.rs", "c.rs"]], "{way}");
        assert_eq!(faults(&arrows, &[]), ["import each other: a.rs, b.rs, c.rs"]);
    }
}

#[test]
fn what_is_no_import_makes_no_circle() {
    let ways = [
        "// use crate::b::B;",
        "/// See [`B`](crate::b::B).\npub(in crate::b) struct A;",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] use crate::b::B;",
        "use b::B; fn f() { ::b::f() }",
        "const TEXT: &str = \"crate::b::B\";",
        "fn f() { let b = 1; debug!(b); }",
    ];
    for way in ways {
        let lib = ("lib.rs", "mod a; mod b;");
        let arrows = arrows(&[lib, ("a.rs", way), ("b.rs", "use crate::a;")]);
        assert_eq!(circles(&arrows), Vec::<Vec<&str>>::new(), "{way}");
    }
}

#[test]
fn a_reexport_stands_for_the_file_behind_it() {
    let map = "mod line; mod place; pub(crate) use self::{line::Line, place::Place as Spot};";
    let line = ("queue/line.rs", "use super::Spot; pub struct Line(Spot);");
    let place = ("queue/place.rs", "pub struct Place;");
    let user = ("user.rs", "use crate::{Spot, queue}; fn f(_: queue::Line) {}");
    let lib = ("lib.rs", "mod queue; mod user; pub use other::Stat; pub use queue::Spot;");
    let found = arrows(&[lib, ("queue/mod.rs", map), line, place, user]);
    imports(&found, "lib.rs", &[]);
    imports(&found, "queue/mod.rs", &[]);
    imports(&found, "queue/line.rs", &["queue/place.rs"]);
    imports(&found, "user.rs", &["queue/line.rs", "queue/mod.rs", "queue/place.rs"]);
    assert!(circles(&found).is_empty());

    // A map with code beside it needs what the code names, and an importer of the code makes a circle.
    let map = format!("{map} pub struct Head(Line);");
    let line = ("queue/line.rs", "use super::Head;");
    let found = arrows(&[lib, ("queue/mod.rs", &map), line, place, user]);
    assert_eq!(circles(&found), [["queue/line.rs", "queue/mod.rs"]]);

    let elsewhere =
        arrows(&[lib, ("queue/mod.rs", &map), place, line, ("user.rs", "use crate::Stat;")]);
    imports(&elsewhere, "user.rs", &[]);
}

#[test]
fn glob_reexport_stands_for_each_module() {
    let map = ("all/mod.rs", "mod a; mod b; pub use self::{a::*, b::*};");
    let a = ("all/a.rs", "pub struct A;");
    let b = ("all/b.rs", "use super::A; records! { struct B; holds(A); }");
    let user = ("user.rs", "use crate::all::B; use crate::all::*; fn f() { g(A) }");
    let lib = ("lib.rs", "mod all; mod user;");
    let found = arrows(&[lib, map, a, b, user]);
    imports(&found, "all/mod.rs", &[]);
    imports(&found, "all/b.rs", &["all/a.rs"]);
    imports(&found, "user.rs", &["all/a.rs", "all/b.rs", "all/mod.rs"]);
    let map = format!("{} impl A {{}}", map.1);
    let a = ("all/a.rs", "use super::Other; pub struct A;");
    let found = arrows(&[lib, ("all/mod.rs", &map), a, b, user]);
    assert_eq!(circles(&found), [["all/a.rs", "all/mod.rs"]]);
}

#[test]
fn an_arrow_that_runs_up_is_noticed() {
    let text = "### `made-up`: a crate\n\nFloors, from the top:\n\n1. the top: `a`,\n   `b`\n2. below: `c`\n\n3. no item\n## Next";
    let floors = floors(text, "made-up");
    assert_eq!(floors, [vec!["a", "b"], vec!["c"]]);
    let lib = ("lib.rs", "mod a; mod b; mod c;");
    let down = [lib, ("a.rs", "use crate::{b::B, c::C};"), ("b.rs", ""), ("c.rs", "")];
    assert!(faults(&arrows(&down), &floors).is_empty());
    let up = [lib, ("a.rs", ""), ("b/mod.rs", ""), ("c.rs", "use crate::{b::B, Root};")];
    let above = |file| format!("c.rs imports {file}, which is above it");
    assert_eq!(faults(&arrows(&up), &floors), [above("b/mod.rs"), above("lib.rs")]);

    let more = [("lib.rs", "mod a; mod d;"), ("a.rs", ""), ("d.rs", "")];
    let wrong = faults(&arrows(&more), &[vec!["a", "c"], vec!["a"]]);
    assert_eq!(wrong, ["on 2 floors: a", "on 0 floors: d", "on a floor, and not there: c"]);
}

#[test]
fn a_map_that_is_wrong_is_noticed() {
    let text = "### `made-up`: a crate\n| module | concern |\n|---|---|\n| `a`, `gone` | this |\n\n| module of `a` | concern |\n|---|---|\n| `mod`, `b`, `c` | that |\n";
    let names = ["lib.rs", "a/mod.rs", "a/b.rs", "new.rs", "bin/tool.rs"];
    let sources = names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
    let wrong =
        ["made-up: no module gone", "made-up: no module a/c", "made-up: not in the map: new"];
    assert_eq!(unmapped(text, "made-up", &sources), wrong);
}
