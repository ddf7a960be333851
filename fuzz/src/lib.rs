//! Runs a target of `zk_tests::fuzz`, and counts the memory that it takes.
#![forbid(unsafe_code)]

use allocation_counter::measure;
use zk_tests::fuzz::Target;

/// Tries an input.
///
/// # Panics
/// If there is no such target, or if it breaks a promise or takes too much memory.
pub fn run(target: &str, input: &[u8]) {
    let target = Target::named(target).expect("there is such a target");
    let memory = measure(|| (target.run)(input)).bytes_max;
    let memory_max = target.memory_max(input.len());
    assert!(memory <= memory_max, "{memory} bytes of memory, more than {memory_max}");
}
