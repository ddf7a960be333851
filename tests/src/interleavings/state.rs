//! When two states are the same.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{contender::Phase, names::Known, world::World};

/// A number that is the same for states from which the same can happen.
pub(super) fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    let existing: Vec<&Known> = world.names.existing().collect();
    let labels: Vec<_> = existing.iter().map(|known| known.label).collect();
    labels.hash(&mut hasher);
    // Which of them may be granted yet: tokens have to grow.
    let last = world.judge.last_token();
    existing.iter().filter(|known| known.created <= last).count().hash(&mut hasher);
    world.is_over.hash(&mut hasher);
    for (client, link) in world.links.iter().enumerate() {
        if world.is_done(client) {
            "done".hash(&mut hasher);
            continue;
        }
        link.history.hash(&mut hasher);
        world.has_session(client).hash(&mut hasher);
        let waiting: Option<Vec<_>> = link.line.as_ref().map(|line| line.waiting().collect());
        waiting.hash(&mut hasher);
        let (data, children) = world.watches(client);
        for paths in [&data, &children] {
            let mut labels: Vec<_> = paths.iter().map(|path| world.names.label(path)).collect();
            labels.sort();
            labels.hash(&mut hasher);
        }
        // A watch that is armed anew fires at once if the path has changed since the client last heard of anything.
        let changed =
            |path: &&str| world.tree().get(path).is_some_and(|node| node.stat().pzxid > link.heard);
        let missed: Vec<bool> = children.iter().map(changed).collect();
        missed.hash(&mut hasher);
    }
    for contender in &world.contenders {
        let phase = match contender.phase() {
            Phase::Waiting => 0,
            Phase::Holding { .. } => 1,
            Phase::Releasing { .. } => 2,
            Phase::Done(_) => 3,
        };
        phase.hash(&mut hasher);
    }
    hasher.finish()
}
