//! What is true of every program's command line.

use clap::{CommandFactory, Parser};

/// Asserts that a command line is consistent, and understands these arguments: those that the guides show.
///
/// # Panics
/// It is not, or does not.
pub fn understands<C: CommandFactory + Parser>(lines: &[&str]) {
    C::command().debug_assert();
    for line in lines {
        let parsed = C::try_parse_from([""].into_iter().chain(line.split(' ')));
        assert!(
            parsed.is_ok(),
            "{line}: {}",
            parsed.err().map_or_else(String::new, |it| it.to_string())
        );
    }
}
