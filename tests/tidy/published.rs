//! Published packages: what their manifests say, and links. Links must lead somewhere once the package is published: rustdoc
//! checks those to items, this test the others.

use std::{fs, path::Path};

use crate::tidy::{files, pages::links, root};

/// Packages that are published, by their folders.
const PUBLISHED: [&str; 5] = ["zk-proto", "zk-client", "zk-locks", "zk-testkit", "zk-cli"];

/// Where documentation is read.
const DOCS: &str = "https://docs.rs/";

/// Whether an address in the documentation is that of a module of a published library, such as
/// `zk-client/latest/zk_client/guide/`, or of something in a library that a package depends on.
fn is_documented(address: &str) -> bool {
    let address = address.split('#').next().unwrap();
    let Some((package, path)) = address.split_once("/latest/") else { return false };
    if !PUBLISHED.contains(&package) {
        let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
        return lock.contains(&format!("\nname = \"{package}\"\n"));
    }
    let Some(path) = path.strip_suffix('/') else { return false };
    let read = |path: String| fs::read_to_string(root().join(path)).ok();
    // What a library promises in public is listed for all but the testkit.
    if let Some(surface) = read(format!("tests/surface/{package}.txt")) {
        let module = format!("pub mod {}", path.replace('/', "::"));
        return surface.lines().any(|line| line == module);
    }
    let library = read(format!("{package}/src/lib.rs")).unwrap_or_default();
    match path.split('/').collect::<Vec<_>>()[..] {
        [name] => name == package.replace('-', "_"),
        [_, module] => library.contains(&format!("\npub mod {module} ")),
        _ => false,
    }
}

/// Whether it is the page of a package: `crate/zk-command/latest`.
fn is_package(address: &str) -> bool {
    let name = address.strip_prefix("crate/").and_then(|rest| rest.strip_suffix("/latest"));
    let manifests = PUBLISHED.iter().map(|folder| root().join(folder).join("Cargo.toml"));
    let mut texts = manifests.map(|path| fs::read_to_string(path).unwrap());
    name.is_some_and(|name| texts.any(|text| text.contains(&format!("\nname = \"{name}\"\n"))))
}

/// Links that lead nowhere from a registry's page or from rustdoc.
fn dead(text: &str) -> Vec<String> {
    // Code has brackets of its own.
    let text: String = text.split('`').step_by(2).collect();
    let addresses = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let addresses = addresses.filter(|target| target.contains("://"));
    let unknown = addresses.filter(|target| {
        let ours = target.strip_prefix(DOCS);
        !ours.is_some_and(|address| is_documented(address) || is_package(address))
    });
    links(&text).chain(unknown).map(str::to_owned).collect()
}

/// What is documentation in a source file: its comments for rustdoc, without their marks.
fn comments(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let marked =
        lines.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    marked.map(|line| format!("{line}\n")).collect()
}

#[test]
fn packages_are_fit_to_be_published() {
    let members = files(root(), "Cargo.toml").into_iter().filter_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let is_published = text.contains("[package]") && !text.contains("\npublish = false\n");
        is_published.then(|| (path.parent().unwrap().to_owned(), text))
    });
    let mut found = 0;
    for (folder, manifest) in members {
        found += 1;
        let name = folder.strip_prefix(root()).unwrap().display();
        assert!(PUBLISHED.iter().any(|known| folder.ends_with(known)), "{name}: published?");
        for key in [
            "description = \"",
            "keywords = [\"zookeeper\", ",
            "categories = [",
            "readme = \"README.md\"",
            "license.workspace = true",
            "repository.workspace = true",
            "rust-version.workspace = true",
            "[package.metadata.docs.rs]\nall-features = true",
        ] {
            assert!(manifest.contains(&format!("\n{key}")), "{name}: no {key}");
        }
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let read = |folder: &Path| fs::read_to_string(folder.join(license)).ok();
            assert!(read(root()).is_some() && read(&folder) == read(root()), "{name}: {license}");
        }
    }
    assert_eq!(found, PUBLISHED.len());
}

#[test]
fn published_pages_have_no_dead_links() {
    let mut wrong = Vec::new();
    for package in PUBLISHED {
        let folder = root().join(package);
        let mut pages = files(&folder.join("src"), ".md");
        pages.push(folder.join("README.md"));
        let pages = pages.into_iter().map(|path| (fs::read_to_string(&path).unwrap(), path));
        let sources = files(&folder.join("src"), ".rs").into_iter();
        let sources = sources.map(|path| (comments(&fs::read_to_string(&path).unwrap()), path));
        for (text, path) in pages.chain(sources) {
            let dead = dead(&text).into_iter();
            wrong.extend(dead.map(|target| format!("{}: {target}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "dead once published:\n{}", wrong.join("\n"));
}

#[test]
fn address_of_no_module_is_dead() {
    let text = "`[1](queued=0)` [a](https://docs.rs/zk-client/latest/zk_client/guide/#errors) \
                [b](https://docs.rs/crate/zk-command/latest) [c](#here) [d](crate::Lock) \
                [e](https://docs.rs/zk-testkit/latest/zk_testkit/guide/)";
    assert_eq!(dead(text), [] as [&str; 0]);
    for target in [
        "../docs/traps.md",
        "src/guide.md",
        "https://docs.rs/zk-client/latest/zk_client/guides/",
        "https://docs.rs/zk-clients/latest/zk_clients/",
        "https://docs.rs/zk-testkit/latest/zk_testkit/guides/",
        "https://docs.rs/crate/zk-cli/latest",
        "https://elsewhere.example/",
    ] {
        assert_eq!(dead(&format!("/// see [it]({target})")), [target]);
    }
    assert_eq!(comments("    /// a [b](c)\n// d\nlet e = 1;"), " a [b](c)\n");
}
