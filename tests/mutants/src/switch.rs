//! Which mutant this process is: the one that the environment's `ZK_MUTANT` names, if it names one.
//!
//! A module of the copy's `zk-proto`, which has `NAMES` added.

extern crate std;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

static CHOSEN: OnceLock<Option<usize>> = OnceLock::new();
static IS_ENABLED: AtomicBool = AtomicBool::new(true);
static CALLS: AtomicU64 = AtomicU64::new(0);

fn chosen() -> Option<usize> {
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("ZK_MUTANT").ok()?;
        Some(NAMES.iter().position(|it| *it == name).expect("ZK_MUTANT names a mutant"))
    })
}

/// The name of the mutant.
pub fn name() -> Option<&'static str> {
    chosen().map(|number| NAMES[number])
}

/// Makes the process behave as its mutant, as it does from the beginning, or as the product.
pub fn enable(on: bool) {
    IS_ENABLED.store(on, Ordering::Relaxed);
}

/// How often a function that the mutant changes was called.
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Whether to behave as this mutant.
pub fn is(number: usize) -> bool {
    let is = chosen() == Some(number) && IS_ENABLED.load(Ordering::Relaxed);
    if is {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    is
}

/// By their numbers.
