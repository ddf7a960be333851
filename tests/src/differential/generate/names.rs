//! Paths: mostly a few that are used again and again, sometimes impossible ones.

use super::{Chars, Field, Maker};

/// Nodes that come and go.
const USUAL: [&str; 9] =
    ["$", "$/a", "$/a/b", "$/a/b/c", "$/b", "$/c", "$/e", "$/s0000000000", "$/a/0000000001"];

/// Nodes that every server has, or treats in its own way.
const RESERVED: [&str; 9] = [
    "/",
    "/zookeeper",
    "/zookeeper/quota",
    "/zookeeper/config",
    "/zookeeper/quota$",
    "/zookeeper/quota$/zookeeper_limits",
    "/zookeeper/quota$/zookeeper_stats",
    "/zookeeper/quota$/a",
    "/zookeeper/nothing",
];

/// What no node can be called, and what it can be called against all appearances.
const ODD: [&str; 25] = [
    "",
    "//",
    "$/",
    "$//a",
    "$/.",
    "$/..",
    "$/./a",
    "$/../a",
    "$/a/.",
    "a",
    "zookeeper",
    "$/...",
    "$/.a",
    "$/ ",
    "$/a ",
    "$/\u{0}",
    "$/a\u{1}b",
    "$/\u{7f}",
    "$/\u{9f}x",
    "$/\u{e9}\u{4e2d}",
    "$/\u{e000}",
    "$/\u{f8ff}",
    "$/\u{fff0}",
    "$/\u{feff}",
    "$/\u{1f600}",
];

/// What is not UTF-8.
const WILD: [&[u8]; 6] =
    [b"$/\xff", b"$/a\xc3", b"$/\xed\xa0\x80", b"$/\xe4\xb8", b"$/\xf0\x9f\x98", b"$/\xc0\x80"];

impl Maker {
    pub(super) fn path(&mut self) -> Option<Chars> {
        let odd = if self.is_tame { 78 } else { 100 };
        Some(match self.rng.index(odd) {
            0..55 => self.known[self.rng.index(self.known.len())].clone(),
            55..78 => Chars::of(self.rng.one_of(&USUAL)),
            78..82 => {
                let parent = self.rng.one_of(&["$", "$/a", "$/b", "$/e"]);
                let number = self.rng.index(4);
                let name = self.rng.one_of(&["", "s", "a"]);
                Chars::of(&format!("{parent}/{name}{number:010}"))
            }
            82..89 => Chars::of(self.rng.one_of(&RESERVED)),
            89..97 => Chars::of(self.rng.one_of(&ODD)),
            97..98 => Chars(self.rng.one_of(&WILD).to_vec()),
            98 => Chars::of(&format!("$/{}", "l".repeat(300))),
            _ => return None,
        })
    }

    /// A path to create something at, which for sequential nodes is only the beginning of one.
    pub(super) fn path_to_create(&mut self, is_sequential: bool) -> Option<Chars> {
        if is_sequential && !self.rng.one_in(4) {
            let paths =
                ["$/s", "$/", "$/a/", "$/a/s", "$/e/s", "$", "$/a/b/s", "$/.", "/zookeeper/s"];
            return Some(Chars::of(self.rng.one_of(&paths)));
        }
        if self.rng.one_in(2) {
            return self.path();
        }
        let Chars(mut path) = self.known[self.rng.index(self.known.len())].clone();
        path.extend_from_slice(self.rng.one_of(&["/a", "/b", "/c", "/f", "/g"]).as_bytes());
        let path = Chars(path);
        if !self.known.contains(&path) {
            self.known.push(path.clone());
        }
        Some(path)
    }

    pub(super) fn a_path(&mut self) -> Field {
        Field::Text(self.path())
    }
}
