//! A session among a user, a network and servers that do whatever comes to their minds.
//!
//! A user submits, listens and closes, a network refuses, stalls and tears, servers answer, err and talk
//! nonsense, a clock jumps. There is no model of what the session should do at each point; [`oracle`]
//! only knows what it must never do, and what it must have done by the end.
//!
//! What happens comes from bytes: those of a fuzzer, saved ones, or random ones.

mod link;
mod oracle;
mod read;
mod server;
mod step;
mod world;

use self::{read::Script, world::World};

/// Reads what happens to a session from bytes, and drives it through that.
///
/// # Panics
/// If a promise is broken.
pub(crate) fn session_inputs(input: &[u8]) {
    let mut script = Script::new(input);
    let mut world = World::new(&script.setup());
    while let Some(step) = script.step() {
        world.take(step);
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
