//! Nothing but tests, one binary for each area in the folders beside this one.
