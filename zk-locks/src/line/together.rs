//! Getting places in several queues at once.

use zk_client::{Client, MultiError, WriteError};

use super::{Line, Place};
use crate::{
    error::AcquireError,
    layout::{Role, Strangers},
};

impl Line {
    /// Joins several queues of one client in one transaction, and lists them behind it, all in one round trip.
    ///
    /// Of two contenders that do so, one is ahead of the other in all the queues that they share: so they never wait
    /// for each other.
    pub(crate) async fn join_all(lines: &[&Self], role: Role) -> Result<Vec<Place>, AcquireError> {
        let Some(first) = lines.first() else { return Ok(Vec::new()) };
        for line in lines {
            if line.settings.filter.strangers == Strangers::Refuse {
                line.refuse_strangers().await?;
            }
        }
        let mut may_rotate = true;
        loop {
            let said = |line: &&'_ Self| -> Result<_, AcquireError> {
                let (path, data) = line.node(role, line.settings.description.as_bytes())?;
                Ok((path, data.into_owned()))
            };
            let said = lines.iter().map(said).collect::<Result<Vec<_>, _>>()?;
            let client = &first.client;
            let epoch = client.session().epoch();
            let nodes = lines.iter().zip(&said);
            let creates =
                nodes.map(|(line, (path, data))| line.waiting(line.create(client, path, data)));
            let listed = |cork: &Client| -> Vec<_> {
                lines.iter().map(|line| cork.children(&line.path).packed().submit()).collect()
            };
            let created = client.create_all_protected(creates).followed_by(listed).await?;
            let (nodes, listings) = created.map_err(|MultiError { rejection, index }| {
                let line = lines.get(index).unwrap_or(first);
                line.refused(WriteError::Rejected(rejection))
            })?;
            if may_rotate && Self::are_worn(lines, &nodes) {
                Self::rotate_all(lines, nodes).await?;
                may_rotate = false;
                continue;
            }
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
    }
}
