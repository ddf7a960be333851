//! House rules that a program can check.

use std::{
    fs,
    path::{Path, PathBuf},
};

mod floors;
mod imports;
mod messages;
mod met;
mod pages;
mod published;
mod simulated;
mod tables;
mod walk;

/// Lines of a source file from which on it hides a module that wants out.
const LINES_MAX: usize = 500;

fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the package stands in the workspace's root")
}

/// Every file below a folder, but for what builds leave behind.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files(&path, ending));
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found
}

fn sources() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(&path).unwrap());
    let sources: Vec<_> = files(root(), ".rs").into_iter().map(read).collect();
    assert!(sources.len() > 50, "the sources are not where this test looks");
    sources
}

#[test]
fn no_source_file_outgrows_its_reader() {
    let long: Vec<_> =
        sources().into_iter().filter(|(_, text)| text.lines().count() > LINES_MAX).collect();
    let names: Vec<_> = long.iter().map(|(path, _)| path).collect();
    assert!(names.is_empty(), "longer than {LINES_MAX} lines: {names:?}");
}

#[test]
fn nothing_is_ignored_or_left_to_do() {
    // Written apart, so that this file does not find itself.
    let banned = [
        concat!("#[ign", "ore"),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("db", "g!("),
        concat!("#[all", "ow("),
    ];
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let found = banned.iter().find(|banned| line.contains(*banned));
            assert_eq!(found, None, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

/// Waiting for a condition is synchronisation; waiting for a while is hope. So a test may only sleep
/// between two looks at the same condition.
#[test]
fn no_test_sleeps_but_between_two_looks() {
    for (path, text) in sources() {
        if !path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let mut before = "";
        for (number, line) in text.lines().enumerate() {
            let sleeps = line
                .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '(')
                .any(|word| word.starts_with(concat!("sl", "eep(")));
            let looks = before.trim_start().starts_with("while ");
            assert!(!sleeps || looks, "{}:{}: {line}", path.display(), number + 1);
            before = line;
        }
    }
}

#[test]
fn architecture_names_packages_and_modules() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for package in ["zk-proto", "zk-client", "zk-locks", "zk-testkit", "zk-cli", "tests", "benches"]
    {
        assert!(text.contains(&format!("`{package}`")), "ARCHITECTURE.md does not name {package}");
        assert!(root().join(package).join("Cargo.toml").exists());
    }
    for core in ["zk-proto", "zk-client", "zk-locks"] {
        for source in files(&root().join(core).join("src"), ".rs") {
            let module = source.file_stem().unwrap().to_str().unwrap();
            let named = module == "mod" || module == "lib" || text.contains(&format!("`{module}`"));
            let folder = source.parent().unwrap().file_name().unwrap().to_str().unwrap();
            let folder_named = folder != "src" && text.contains(&format!("`{folder}`"));
            assert!(named || folder_named, "ARCHITECTURE.md does not name {}", source.display());
        }
    }
}

/// Scenario 34: a lock's holder cannot be confused by a clock that was set.
#[test]
fn lock_crates_never_read_the_wall_clock() {
    for (path, text) in sources() {
        let holds = ["zk-proto/src", "zk-client/src", "zk-locks/src"];
        let holds = holds.iter().any(|folder| path.starts_with(root().join(folder)));
        assert!(!holds || !text.contains("SystemTime"), "{}", path.display());
    }
}

/// A dependency that should not be is refused by cargo only as long as no manifest lists it.
#[test]
fn dependencies_point_one_way() {
    let manifest = |package: &str| {
        let text = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap();
        // Dependencies of tests may point anywhere.
        text.split("[dev-dependencies]").next().unwrap().to_owned()
    };
    let refused = [
        ("zk-proto", &["tokio", "zk-client", "zk-locks", "zk-testkit"][..]),
        ("zk-client", &["zk-locks", "zk-testkit"]),
        ("zk-locks", &["zk-proto", "zk-testkit"]),
        ("zk-testkit", &["zk-locks"]),
    ];
    for (package, refused) in refused {
        for dependency in refused {
            let depends = manifest(package).lines().any(|line| {
                line.starts_with(&format!("{dependency}."))
                    || line.starts_with(&format!("{dependency} "))
            });
            assert!(!depends, "{package} depends on {dependency}");
        }
    }
    let lib = fs::read_to_string(root().join("zk-proto/src/lib.rs")).unwrap();
    assert!(lib.contains("#![no_std]"), "zk-proto must stay without std");
}

/// No use after free, no aliased writer, no undefined behaviour of our own.
#[test]
fn no_package_may_be_unsafe() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("\nunsafe_code = \"forbid\"\n"));
    let manifests = files(root(), "Cargo.toml");
    assert!(manifests.len() > 6, "the manifests are not where this test looks");
    for path in manifests {
        let text = fs::read_to_string(&path).unwrap();
        // What the fuzzer makes of its targets is its own.
        let forbids =
            text.contains("[lints]\nworkspace = true") || path.starts_with(root().join("fuzz"));
        assert!(forbids || !text.contains("[package]"), "{}", path.display());
    }
}
