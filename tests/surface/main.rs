//! What the three libraries promise in public, item by item, beside what was agreed on: `tests/surface/*.txt`.
//!
//! An unintended change shows here before users meet it. One that is meant is written down, and read in the
//! commit like any other line: `REWRITE=1 cargo test -p zk-tests --features surface --test surface`.

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
    // Of TLS: made before there is a client, and by users of the feature. A step of SASL fails towards the client.
    one_takes_all("zk_client", 1, &["zk_client::TlsError", "zk_client::SaslFault"]);
    // Of the feature `blocking`: no thread for the session, which is not an error of a lock.
    one_takes_all("zk_locks", 2, &["zk_locks::blocking::SessionError"]);
}

fn one_takes_all(name: &str, library: usize, apart: &[&str]) {
    let (library, features) = LIBRARIES[library];
    let found = surface(library, features);
    let (own, read) = (format!("{name}::Error"), "ReadError");
    let failures: BTreeSet<&str> = found
        .lines()
        .filter_map(|line| line.rsplit_once(") -> ").or_else(|| line.split_once(" = ")))
        .map(|(_, result)| result)
        .filter(|result| ["Result<", "Request<", "Pending<"].iter().any(|it| result.contains(it)))
        .filter_map(|result| result.rsplit_once(", "))
        .filter_map(|(_, rest)| {
            rest.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).next()
        })
        .filter(|error| error.starts_with("zk_"))
        .filter(|error| !apart.contains(error) && *error != own)
        .collect();
    assert!(failures.iter().any(|error| error.ends_with(read)), "{failures:?}");
    let takes = |error: &str| {
        let converted = |line: &str| {
            let from = format!("core::convert::From<{error}");
            line.starts_with("impl")
                && line.contains(&from)
                && line.ends_with(&format!(" for {own}"))
        };
        let variant = |line: &str| {
            line.starts_with(&format!("pub {own}::")) && line.ends_with(&format!("({error})"))
        };
        found.lines().any(|line| converted(line) || variant(line))
    };
    let lacking: Vec<_> = failures.into_iter().filter(|error| !takes(error)).collect();
    assert!(lacking.is_empty(), "{name}: {lacking:?}");
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
