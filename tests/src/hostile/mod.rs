//! A session among a user, a network and servers that do whatever comes to their minds.
//!
//! A user submits, listens and closes, a network refuses, stalls and tears, servers answer, err and talk
//! nonsense, a clock jumps. There is no model of what the session should do at each point; [`oracle`]
//! only knows what it must never do, and what it must have done by the end.
//!
//! What happens comes from bytes: those of a fuzzer, saved ones, or random ones.

mod link;
mod oracle;
mod script;
mod server;
mod world;

use self::world::World;
use crate::input::Input;

/// Most steps of one script: more only takes time.
const STEPS_MAX: usize = 200;

/// Reads what happens to a session from bytes, and drives it through that.
///
/// # Panics
/// If a promise is broken.
pub(crate) fn session_inputs(input: &[u8]) {
    let mut input = Input::new(input);
    let (config, seed) = script::config(&mut input);
    let mut world = World::new(config, seed);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        world.step(&mut input);
    }
    world.end();
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(800))]

        #[test]
        fn no_input_breaks_a_promise(input in vec(any::<u8>(), 0..600)) {
            super::session_inputs(&input);
        }
    }
}
