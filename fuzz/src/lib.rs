//! Runs a target of `zk_tests::fuzz`, and counts the memory that it takes.
#![forbid(unsafe_code)]

use allocation_counter::measure;
use zk_tests::fuzz::Target;

/// Tries an input.
///
/// # Panics
/// If it breaks a promise or takes too much memory.
pub fn run(target: Target, input: &[u8]) {
    let memory = measure(|| (target.run)(input)).bytes_max;
    let memory_max = target.memory_max(input.len());
    assert!(memory <= memory_max, "{memory} bytes of memory, more than {memory_max}");
}
