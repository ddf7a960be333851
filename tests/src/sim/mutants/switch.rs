//! Which mutant this process is: none. `cargo mutation` replaces this file in its copy of the sources, where the
//! environment's `ZK_MUTANT` names one.

/// The name of the mutant.
pub(super) const fn name() -> Option<&'static str> {
    None
}

/// Makes the process behave as its mutant, as it does from the beginning, or as the product.
pub(super) const fn enable(_on: bool) {}

/// How often a function that the mutant changes was called.
pub(super) const fn calls() -> u64 {
    0
}
