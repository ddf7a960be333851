//! Getting places in several queues at once.

use zk_client::{Client, MultiError, Rejection, WriteError};

use super::{Pace, Position, WaitQueue};
use crate::{
    error::AcquireError,
    layout::{ForeignNodes, Role},
};

impl WaitQueue {
    /// Joins several queues of one client in one transaction, and lists them behind it, all in one round trip.
    ///
    /// Of two contenders that do so, one is ahead of the other in all the queues that they share: so they never wait
    /// for each other.
    pub(crate) async fn join_all(
        wait_queues: &[&Self],
        role: Role,
        pace: Pace<'_>,
    ) -> Result<Vec<Position>, AcquireError> {
        let Some(first) = wait_queues.first() else { return Ok(Vec::new()) };
        for wait_queue in wait_queues {
            if wait_queue.settings.filter.foreign_nodes == ForeignNodes::Refuse {
                wait_queue.refuse_foreign_nodes().await?;
            }
        }
        let mut may_rotate = true;
        loop {
            let said = |wait_queue: &&'_ Self| -> Result<_, AcquireError> {
                let (path, data) =
                    wait_queue.node(role, wait_queue.settings.description.as_bytes())?;
                Ok((path, data.into_owned()))
            };
            let said = wait_queues.iter().map(said).collect::<Result<Vec<_>, _>>()?;
            let client = &first.client;
            let epoch = client.session().epoch();
            let nodes = wait_queues.iter().zip(&said);
            let creates = nodes.map(|(wait_queue, (path, data))| {
                wait_queue.waiting(wait_queue.create(client, path, data))
            });
            let listed = |cork: &Client| -> Vec<_> {
                wait_queues.iter().map(|wait_queue| wait_queue.list_behind(cork)).collect()
            };
            let created = client.create_all_protected(creates).followed_by(listed).await?;
            let (nodes, mut listings) = created.map_err(|MultiError { rejection, index }| {
                let wait_queue = wait_queues.get(index).unwrap_or(first);
                match wait_queue.refused(WriteError::Rejected(rejection)) {
                    // Missing paths are made: the nodes were, and one of them was gone when that was found out.
                    AcquireError::Rejected(Rejection::NoNode) => AcquireError::NodeDeleted,
                    refused => refused,
                }
            })?;
            let mut listed = Vec::new();
            if may_rotate && Self::are_near_overflow(wait_queues, &nodes) {
                for listing in &mut listings {
                    listed.push(listing.await);
                }
                let joined = wait_queues.iter().zip(&nodes).zip(&listed);
                let renewals = joined
                    .map(|((wait_queue, node), listed)| wait_queue.renewal(node, listed, pace));
                let renewals: Vec<_> = renewals.collect();
                if renewals.iter().any(Option::is_some) {
                    Self::rotate_all(wait_queues, nodes, &renewals).await?;
                    may_rotate = false;
                    continue;
                }
            }
            let mut listed = listed.into_iter();
            let mut places = Vec::with_capacity(nodes.len());
            for ((wait_queue, node), children) in wait_queues.iter().zip(nodes).zip(listings) {
                let mut position = Position::new(node, None, &wait_queue.settings)?;
                let listed = match listed.next() {
                    Some(listed) => listed,
                    None => children.await,
                };
                wait_queue.place(&mut position, listed, epoch)?;
                places.push(wait_queue.unless_full(position).await?);
            }
            return Ok(places);
        }
    }
}
