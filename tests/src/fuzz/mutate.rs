//! Inputs from inputs, without looking at what they reach: what a fuzzer does, less its memory, many times as
//! fast and on any toolchain.

use std::{fs, io, path::Path};

use zk_testkit::sim::Rng;

use super::Target;

/// Lengths and numbers at which decoders decide.
const EDGES: [i32; 12] =
    [0, 1, -1, 2, 127, 255, 1 << 10, 0xf_ffff, 1 << 20, i32::MAX - 1, i32::MAX, i32::MIN];

/// Makes inputs of a target from those that are kept for it. The same seed makes the same ones.
#[derive(Debug)]
pub struct Mutator {
    kept: Vec<Vec<u8>>,
    len_max: usize,
    rng: Rng,
    input: Vec<u8>,
}

impl Mutator {
    /// Starts from the files in `saved` for this target, cut at `len_max` bytes.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn new(target: &Target, saved: &Path, seed: u64, len_max: usize) -> io::Result<Self> {
        let entries = fs::read_dir(saved.join(target.name))?;
        let mut paths: Vec<_> =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        // What the file system lists first must not matter.
        paths.sort();
        let mut kept: Vec<_> = paths.iter().map(fs::read).collect::<io::Result<_>>()?;
        kept.push(Vec::new());
        Ok(Self { kept, len_max, rng: Rng::new(seed), input: Vec::new() })
    }

    /// The next input.
    pub fn next_input(&mut self) -> &[u8] {
        let Self { kept, rng, input, len_max } = self;
        input.clear();
        let start: &Vec<u8> = rng.pick(kept);
        input.extend_from_slice(start);
        for _ in 0..=rng.below(4) {
            mutate(input, kept, rng);
        }
        input.truncate(*len_max);
        &self.input
    }
}

fn byte(rng: &mut Rng) -> u8 {
    u8::try_from(rng.below(256)).unwrap_or(u8::MAX)
}

fn mutate(input: &mut Vec<u8>, kept: &[Vec<u8>], rng: &mut Rng) {
    if input.is_empty() {
        let more = rng.within(1, 16);
        input.extend((0..more).map(|_| byte(rng)));
        return;
    }
    let at = rng.index(input.len());
    match rng.below(8) {
        0 => input[at] ^= 1 << rng.below(8),
        1 => input[at] = byte(rng),
        2 => input.truncate(at),
        3 => {
            let end = at + rng.index(input.len() - at);
            input.drain(at..end);
        }
        4 => input.insert(at, byte(rng)),
        5 => {
            let end = at + rng.index((input.len() - at).min(32));
            input.extend_from_within(at..end);
        }
        6 => {
            let edge = rng.pick(&EDGES).to_be_bytes();
            let end = (at + edge.len()).min(input.len());
            input[at..end].copy_from_slice(&edge[..end - at]);
        }
        // The end of another.
        _ => {
            let other = rng.pick(kept);
            let from = if other.is_empty() { 0 } else { rng.index(other.len()) };
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::fuzz::TARGETS;

    #[test]
    fn inputs_are_bounded_and_reproducible() {
        let saved = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/saved"));
        for target in TARGETS {
            let inputs = |seed| {
                let mut mutator = Mutator::new(target, saved, seed, 100).unwrap();
                let inputs = (0..1_000).map(move |_| mutator.next_input().to_vec());
                inputs.collect::<Vec<_>>()
            };
            let (one, again, other) = (inputs(1), inputs(1), inputs(2));
            assert_eq!(one, again);
            assert_ne!(one, other);
            assert!(one.iter().all(|input| input.len() <= 100));
            let different: HashSet<_> = one.iter().collect();
            assert!(different.len() > 700, "{}: {} different", target.name, different.len());
        }
    }
}
