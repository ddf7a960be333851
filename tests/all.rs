//! All tests of this package that need neither a process of their own nor a feature: a module for each area, which
//! ARCHITECTURE.md lists.

mod api;
mod cancel;
mod coexistence;
mod fuzz;
mod locks;
mod metrics;
mod readme;
mod session;
mod sim;
mod stages;
mod tidy;
