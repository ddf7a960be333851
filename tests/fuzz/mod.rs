//! What a fuzzer has found worth keeping is tried again, without one.
//!
//! The inputs are in `fuzz/saved`, a folder for each target; see `fuzz/README.md`.

use std::{collections::BTreeSet, fs, path::PathBuf};

use allocation_counter::measure;
use zk_tests::fuzz::{TARGETS, Target};

/// Bytes of all inputs together: they are meant to be small, and few.
const SAVED_MAX: u64 = 1 << 20;

fn saved() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/saved"))
}

/// The inputs of a target, in an order that does not depend on the file system.
fn inputs(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = saved().join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|_| panic!("no {}", folder.display()));
    let paths: BTreeSet<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("a file can be read"));
    paths.into_iter().map(read).collect()
}

/// Names the input that broke a promise: its file, which is what a fuzzer is given to replay it.
struct Naming<'a>(&'a PathBuf);

impl Drop for Naming<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with the input {}", self.0.display());
        }
    }
}

fn replay(target: &Target) {
    let inputs = inputs(target);
    assert!(inputs.len() > 5, "{}: only {} inputs", target.name, inputs.len());
    for (path, input) in &inputs {
        let _naming = Naming(path);
        let memory = measure(|| (target.run)(input)).bytes_max;
        let memory_max = target.memory_max(input.len());
        assert!(memory <= memory_max, "{memory} bytes of memory, more than {memory_max}");
    }
}

/// Makes a test of each target, and a test that there are no others.
macro_rules! targets {
    ($($name:ident)*) => {
        mod saved_inputs_break_no_promise_of {
            $(#[test]
            fn $name() {
                super::replay(super::Target::named(stringify!($name)).expect("it is listed"));
            })*
        }

        #[test]
        fn every_target_is_replayed() {
            let here = [$(stringify!($name)),*];
            let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(here.as_slice(), known);
        }
    };
}

targets! {
    reply_decode
    request_decode
    path
    connect_string
    frames
    session_inputs
    server_inputs
}

#[test]
fn saved_inputs_are_few_and_have_a_target() {
    let mut bytes = 0;
    for folder in fs::read_dir(saved()).expect("there are inputs") {
        let folder = folder.expect("a folder");
        let name = folder.file_name();
        assert!(name.to_str().and_then(Target::named).is_some(), "whose is {name:?}?");
        for input in fs::read_dir(folder.path()).expect("it can be read") {
            bytes += input.and_then(|input| input.metadata()).expect("a file").len();
        }
    }
    assert!(bytes <= SAVED_MAX, "{bytes} bytes");
}
