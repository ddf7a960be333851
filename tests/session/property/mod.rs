//! Whatever happens in whatever order, some promises hold.
//!
//! A session is driven with random inputs: by a user who submits, listens and closes, by a network
//! that refuses, stalls and tears, by servers that answer, err and talk nonsense, by a clock that
//! jumps. There is no model of what the session should do at each point; [`oracle`] only knows what it
//! must never do, and what it must have done by the end.

mod link;
mod oracle;
mod server;
mod step;
mod world;

use proptest::{collection::vec, prelude::*, test_runner::FileFailurePersistence};

use self::world::World;

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
        setup in step::setup(),
        steps in vec(step::step(), 0..120),
    ) {
        let mut world = World::new(&setup);
        for step in steps {
            world.take(step);
        }
        world.end();
    }
}
