//! What the three libraries promise in public, item by item, beside what was agreed on: `tests/surface/*.txt`.
//!
//! An unintended change shows here before users meet it. One that is meant is written down, and read in the
//! commit like any other line: `REWRITE=1 cargo test -p zk-tests --test surface`.

mod examples;
mod rustdoc;

use std::{collections::BTreeSet, fs, path::PathBuf};

use public_api::{Builder, PublicApi};

/// The libraries, each with all of its features that need nothing but Rust.
const LIBRARIES: [(&str, &str); 3] = [
    ("zk-proto", "proptest,serde"),
    ("zk-client", "digest-id,metrics,sasl-digest,tls-ring,trace-requests"),
    ("zk-locks", "blocking,digest-id,metrics,sasl-digest,tls-ring,trace-requests"),
];

/// The public items of a library, one line each, in order.
fn surface(library: &str, features: &str) -> String {
    let api: PublicApi = Builder::from_rustdoc_json(rustdoc::json(library, features))
        // They say nothing that the items themselves do not.
        .omit_blanket_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .unwrap_or_else(|error| panic!("{library}: {error}"));
    // `Send` and the like are promises too, and lines enough when they are not kept.
    let kept = |line: &String| {
        let freely = ["Freeze", "RefUnwindSafe", "UnwindSafe", "UnsafeUnpin"];
        !freely.iter().any(|auto| line.contains(&format!("::{auto} for ")))
    };
    api.items().map(|item| format!("{item}\n")).filter(kept).collect()
}

fn agreed(library: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("surface").join(format!("{library}.txt"))
}

/// What only one of two lists has.
fn differences(agreed: &str, found: &str) -> String {
    let (agreed, found): (BTreeSet<_>, BTreeSet<_>) =
        (agreed.lines().collect(), found.lines().collect());
    let gone = agreed.difference(&found).map(|line| format!("- {line}\n"));
    let new = found.difference(&agreed).map(|line| format!("+ {line}\n"));
    gone.chain(new).collect()
}

#[test]
fn the_libraries_promise_what_was_agreed_on() {
    for (library, features) in LIBRARIES {
        let (path, found) = (agreed(library), surface(library, features));
        if std::env::var_os("REWRITE").is_some() {
            fs::write(&path, &found).unwrap();
            continue;
        }
        let agreed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            agreed == found,
            "{library} promises something else than {}:\n{}",
            path.display(),
            differences(&agreed, &found)
        );
    }
}

#[test]
fn differences_list_removed_and_added_items() {
    assert_eq!(differences("a\nb\n", "b\nc\n"), "- a\n+ c\n");
    assert_eq!(differences("a\n", "a\n"), "");
}

/// Code that compiles without a feature does with it: another crate may have switched it on.
#[test]
fn features_of_the_protocol_only_add() {
    let (library, features) = LIBRARIES[0];
    let (plain, full) = (surface(library, ""), surface(library, features));
    let (plain, full): (BTreeSet<_>, BTreeSet<_>) =
        (plain.lines().collect(), full.lines().collect());
    let gone: Vec<_> = plain.difference(&full).collect();
    assert!(gone.is_empty(), "{gone:#?}");
    // What the traits of serde and proptest, and `AsRecord`, are made of.
    let own = ["serde_core::", "proptest::", "zk_proto::strategy", "::Record<'a> = "];
    let own_fns = ["::as_record(&self)", "::encoded(&self)", "::arbitrary_with(())"];
    let own = |line: &str| {
        own.iter().chain(&own_fns).any(|own| line.contains(own))
            || line.ends_with("::Parameters = ()")
    };
    let foreign: Vec<_> = full.difference(&plain).filter(|line| !own(line)).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
}

/// `?` into a library's `Error` takes whatever its operations fail with.
#[test]
fn one_error_takes_all() {
    let lists = LIBRARIES.map(|(library, features)| surface(library, features));
    // Of TLS: made before there is a client, and by users of the feature. A step of SASL fails towards the client.
    let of_client = failures(&lists[1]);
    lacks_only(&of_client, &taken(&lists[1], "zk_client"), &["Error", "SaslFault", "TlsError"]);

    // With all that a client fails with. Of the feature `blocking`: no thread for the session.
    let apart = ["Error", "SaslFault", "SessionError", "TlsError"];
    lacks_only(&(&of_client | &failures(&lists[2])), &taken(&lists[2], "zk_locks"), &apart);
}

#[track_caller]
fn lacks_only(failures: &BTreeSet<&str>, taken: &BTreeSet<&str>, apart: &[&str]) {
    assert!(failures.contains("ReadError") && failures.contains("MultiError"), "{failures:?}");
    let lacking: Vec<_> = failures.difference(taken).filter(|it| !apart.contains(it)).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

/// The last part of a type's path, which is the same in the list of the crate that defines it and in others.
fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// The errors in what functions and futures result in.
fn failures(list: &str) -> BTreeSet<&str> {
    const WITHOUT_THE_WORD: [&str; 4] = ["Interruption", "Lost", "SessionEnd", "WatchEnd"];
    let results =
        list.lines().filter_map(|line| line.split_once(" -> ").or_else(|| line.split_once(" = ")));
    let paths = results
        .flat_map(|(_, result)| result.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c))));
    let is_error = |name: &&str| {
        name.ends_with("Error") || name.ends_with("Fault") || WITHOUT_THE_WORD.contains(name)
    };
    paths.filter(|path| path.starts_with("zk_")).map(last).filter(is_error).collect()
}

/// What the `Error` of a crate is made from.
fn taken<'a>(list: &'a str, name: &str) -> BTreeSet<&'a str> {
    let own = format!(" for {name}::Error");
    let converted = list.lines().filter(|line| line.starts_with("impl") && line.ends_with(&own));
    let converted = converted.filter_map(|line| line.split_once("core::convert::From<"));
    let sources = converted.filter_map(|(_, source)| source.split(['<', '>']).next());
    let variant = format!("pub {name}::Error::");
    let variants = list.lines().filter(|line| line.starts_with(&variant));
    let fields = variants.filter_map(|line| line.strip_suffix(')')?.split_once('('));
    sources.chain(fields.map(|(_, field)| field)).map(last).collect()
}

/// Users of `zk-locks` need no other crate for what its recipes take and give.
#[test]
fn locks_stand_alone() {
    let (library, features) = LIBRARIES[2];
    let found = surface(library, features);
    let words = found.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
    let foreign: BTreeSet<&str> = words
        .filter(|word| word.starts_with("zk_client::") || word.starts_with("zk_proto::"))
        .filter_map(|word| word.rsplit("::").find(|part| part.starts_with(char::is_uppercase)))
        .collect();
    assert!(foreign.contains("Client"), "{foreign:?}");
    let exported = |name: &&str| {
        let from = |module: &str| found.contains(&format!("pub use zk_locks::{module}{name}\n"));
        from("") || from("metrics::")
    };
    // The client's error is a part of the one of this library, which has the name.
    let lacking: Vec<_> =
        foreign.into_iter().filter(|name| *name != "Error" && !exported(name)).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}
