//! Parts of the product, each with the tests that are about it: what `cargo mutation --area` makes mutants of, and judges
//! them by.

use std::collections::BTreeSet;

use crate::mutant::Judge;

/// A part of the product.
#[derive(Debug)]
pub(crate) struct Area {
    pub(crate) name: &'static str,
    /// As cargo-mutants takes them.
    pub(crate) files: &'static [&'static str],
    /// A package, its test binary or `lib`, and which of its tests: the fast ones first.
    tests: &'static [(&'static str, &'static str, &'static str)],
}

/// All of them.
pub(crate) const AREAS: [Area; 7] = [
    Area {
        name: "codec",
        files: &[
            "zk-proto/src/jute.rs",
            "zk-proto/src/frame.rs",
            "zk-proto/src/record.rs",
            "zk-proto/src/request/*.rs",
        ],
        tests: &[
            ("zk-proto", "lib", ""),
            ("zk-proto", "roundtrip", ""),
            ("zk-proto", "wire", ""),
            ("zk-proto", "strategy", ""),
        ],
    },
    Area {
        name: "session",
        files: &["zk-proto/src/session/**/*.rs"],
        tests: &[
            ("zk-proto", "lib", "session"),
            ("zk-tests", "all", "session::"),
            ("zk-tests", "lib", "core_sim"),
        ],
    },
    Area {
        name: "queue",
        files: &["zk-locks/src/wait_queue/*.rs"],
        tests: &[
            ("zk-locks", "lib", ""),
            ("zk-tests", "lib", "interleavings"),
            ("zk-tests", "all", "locks::"),
        ],
    },
    Area {
        name: "guards",
        files: &["zk-locks/src/guard/*.rs"],
        tests: &[
            ("zk-locks", "lib", ""),
            ("zk-tests", "lib", "interleavings"),
            ("zk-tests", "all", "locks::"),
        ],
    },
    Area {
        name: "carry",
        files: &["zk-client/src/carry/**/*.rs"],
        tests: &[
            ("zk-client", "lib", ""),
            ("zk-tests", "lib", "interleavings"),
            ("zk-tests", "all", "cancel::"),
            ("zk-tests", "all", "locks::doubt"),
            ("zk-tests", "all", "locks::orphans"),
            ("zk-tests", "all", "api::"),
        ],
    },
    Area {
        name: "cache",
        files: &["zk-client/src/cache/*.rs"],
        tests: &[
            ("zk-client", "lib", ""),
            ("zk-tests", "all", "api::caches"),
            ("zk-tests", "all", "api::following"),
            ("zk-tests", "all", "api::batches"),
            ("zk-tests", "all", "api::readers"),
            ("zk-tests", "all", "api::runtimes"),
        ],
    },
    Area {
        name: "libraries",
        files: &["zk-proto/src/**/*.rs", "zk-client/src/**/*.rs", "zk-locks/src/**/*.rs"],
        tests: &[
            ("zk-proto", "lib", ""),
            ("zk-client", "lib", ""),
            ("zk-locks", "lib", ""),
            ("zk-tests", "lib", "interleavings"),
            ("zk-tests", "all", ""),
        ],
    },
];

impl Area {
    /// The area of this name, for the command line.
    pub(crate) fn named(name: &str) -> Result<&'static Self, String> {
        let names = || AREAS.each_ref().map(|area| area.name).join(", ");
        AREAS
            .iter()
            .find(|area| area.name == name)
            .ok_or_else(|| format!("no area {name}: there are {}", names()))
    }

    /// The packages that its files belong to.
    pub(crate) fn packages(&self) -> BTreeSet<&'static str> {
        self.files.iter().filter_map(|file| file.split('/').next()).collect()
    }

    pub(crate) fn judges(&self) -> Vec<Judge> {
        let judge = |&(package, target, filter): &(&str, &str, &str)| Judge::Test {
            package: package.to_owned(),
            target: target.to_owned(),
            filter: filter.to_owned(),
        };
        self.tests.iter().map(judge).collect()
    }
}
