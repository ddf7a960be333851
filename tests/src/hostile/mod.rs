//! A session among a user, a network and servers that do whatever comes to their minds.
//!
//! A user submits, listens and closes, a network refuses, stalls and tears, servers answer, err and talk
//! nonsense, a clock jumps. There is no model of what the session should do at each point; [`oracle`]
//! only knows what it must never do, and what it must have done by the end.
//!
//! What happens comes from a strategy, or from the bytes of a fuzzer.

mod link;
mod oracle;
mod read;
mod server;
mod step;
#[cfg(test)]
mod strategy;
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
    use proptest::{collection::vec, prelude::*, test_runner::FileFailurePersistence};

    use super::{World, strategy};

    /// Cases that have failed once are kept beside this file and tried first.
    fn config() -> ProptestConfig {
        ProptestConfig {
            cases: 800,
            failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
            ..ProptestConfig::default()
        }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn no_sequence_of_inputs_breaks_a_promise(
            setup in strategy::setup(),
            steps in vec(strategy::step(), 0..120),
        ) {
            let mut world = World::new(&setup);
            for step in steps {
                world.take(step);
            }
            world.end();
        }
    }
}
