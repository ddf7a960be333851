//! Getting places in several queues at once.

use std::sync::atomic::Ordering;

use tokio::time::sleep;
use zk_client::{Cause, CreateMode, MultiError, Rejection, WriteError};

use super::{Line, Place, THROTTLE_PAUSE, join::PARENT_TRIES};
use crate::{
    error::AcquireError,
    layout::{Role, Strangers},
};

impl Line {
    /// Joins several queues of one client in one transaction, and lists them behind it, all in one round trip.
    ///
    /// Of two who do that each is either in front of the other in all the queues that they share, or behind it
    /// in all: so they never wait for each other.
    pub(crate) async fn join_all(lines: &[&Self], role: Role) -> Result<Vec<Place>, AcquireError> {
        let Some(first) = lines.first() else { return Ok(Vec::new()) };
        for line in lines {
            if line.settings.filter.strangers == Strangers::Refuse {
                line.refuse_strangers().await?;
            }
        }
        let mut with_parents = false;
        let mut tries = PARENT_TRIES;
        let mut may_rotate = true;
        loop {
            let paths = lines.iter().map(|line| line.node_path(role));
            let paths = paths.collect::<Result<Vec<_>, _>>()?;
            let epoch = first.client.session().epoch();
            let cork = first.client.cork();
            let mut parents = Vec::new();
            for line in lines.iter().filter(|_| with_parents) {
                parents.push((line, line.create_parents(&cork)));
            }
            let creates = lines.iter().zip(&paths).map(|(line, path)| {
                let create = cork.create(path, line.settings.description.as_bytes());
                let create = create.mode(CreateMode::EphemeralSequential);
                create.acl(&line.settings.acl).protected_by_its_name()
            });
            let nodes = cork.create_all_protected(creates).submit();
            let listings: Vec<_> =
                lines.iter().map(|line| cork.children(&line.path).packed().submit()).collect();
            drop(cork);

            let mut refusal = None;
            for (line, parents) in parents {
                refusal = refusal.or(line.parents_refused(parents).await);
            }
            // They have one client, and so the same servers. Each refusal costs a connection there.
            if lines.iter().any(|line| line.without_containers.load(Ordering::Relaxed)) {
                lines
                    .iter()
                    .for_each(|line| line.without_containers.store(true, Ordering::Relaxed));
            }
            match nodes.await {
                Ok(Ok(nodes)) if may_rotate && Self::are_worn(lines, &nodes) => {
                    may_rotate = Self::rotate_all(lines, nodes).await?;
                }
                Ok(Ok(nodes)) => {
                    let mut places = Vec::with_capacity(nodes.len());
                    for ((line, node), children) in lines.iter().zip(nodes).zip(listings) {
                        let mut place = Place::new(node, None, &line.settings)?;
                        if let Ok((names, _)) = children.await {
                            place.listing = line.listing(names.iter(), &place, epoch)?;
                            place.story.ahead = place.ahead();
                        }
                        places.push(line.unless_full(place)?);
                    }
                    return Ok(places);
                }
                Ok(Err(MultiError { rejection: Rejection::NoNode, .. })) if tries > 0 => {
                    if let Some(refusal) = refusal {
                        return Err(refusal.into());
                    }
                    with_parents = true;
                    tries -= 1;
                }
                Ok(Err(MultiError { rejection, .. })) => {
                    return Err(AcquireError::Rejected(rejection));
                }
                Err(WriteError::NotApplied(Cause::Throttled)) => sleep(THROTTLE_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
