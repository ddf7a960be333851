//! Tests that take longer than `cargo test --workspace` has room for, most of them on real servers that are started and killed
//! for them, or that have settings of their own: a module for each area, which ARCHITECTURE.md lists.

mod combinations;
mod compat;
mod differential;
mod faults;
mod security;
mod soak;
