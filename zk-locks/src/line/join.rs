//! Getting a place in a queue.

use std::sync::atomic::Ordering;

use tokio::time::sleep;
use zk_client::{
    Cause, Client, CreateMode, Created, OwnedNode, Pending, ReadError, Rejection, WriteError,
    ancestors, join, planted,
};

use super::{Line, Place, Settings, THROTTLE_PAUSE};
use crate::{
    entry::Kind,
    error::AcquireError,
    layout::{Role, Strangers},
};

/// How often a path may vanish between its creation and ours. Containers vanish when they have been
/// empty for a while; more than a few times in a row is somebody deleting them on purpose.
pub(crate) const PARENT_TRIES: usize = 5;

impl Line {
    /// Whether anybody is in the queue for whom a newcomer would have to wait: one read, no write.
    pub(crate) async fn is_busy(&self, role: Role) -> Result<bool, AcquireError> {
        let relevant = |kind| role != Role::Read || kind != Kind::Read;
        match self.client.children(&self.path).packed().await {
            Ok((names, _)) => Ok(names
                .iter()
                .filter_map(|name| self.settings.filter.read(name).ok())
                .any(|entry| relevant(entry.kind))),
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Joins the queue: creates our node and lists the queue behind it, in one round trip.
    ///
    /// The listing is carried out after the create, on the same connection, so it shows our node and, since
    /// numbers are given out in the order of creation, every living node with a smaller one.
    pub(crate) async fn join(
        &self,
        role: Role,
        besides: Option<&str>,
    ) -> Result<Place, AcquireError> {
        self.join_with(role, besides, self.settings.description.as_bytes()).await
    }

    /// The same, with data of the node's own.
    pub(crate) async fn join_with(
        &self,
        role: Role,
        besides: Option<&str>,
        data: &[u8],
    ) -> Result<Place, AcquireError> {
        let (place, ()) = self.join_and(role, besides, data, |_| ()).await?;
        Ok(place)
    }

    /// The same, with something else to ask `behind` the listing, in the same round trip.
    pub(crate) async fn join_and<T>(
        &self,
        role: Role,
        besides: Option<&str>,
        data: &[u8],
        behind: impl Fn(&Client) -> T,
    ) -> Result<(Place, T), AcquireError> {
        if self.settings.filter.strangers == Strangers::Refuse {
            self.refuse_strangers().await?;
        }
        let mut with_parents = false;
        let mut tries = PARENT_TRIES;
        let mut may_rotate = true;
        loop {
            let epoch = self.client.session().epoch();
            let cork = self.client.cork();
            let parents = if with_parents { self.create_parents(&cork) } else { Vec::new() };
            let create = self.create(&cork, role, data)?;
            let children = cork.children(&self.path).packed().submit();
            let behind = behind(&cork);
            drop(cork);

            let refusal = self.parents_refused(parents).await;
            match create.await {
                Ok(node) if may_rotate && self.is_worn(&node) => {
                    may_rotate = self.rotate(node).await?;
                }
                Ok(node) => {
                    let mut place = Place::new(node, besides.map(str::to_owned), &self.settings)?;
                    match children.await {
                        // An old listing, sent again over a new connection, may be from before the node.
                        Ok((names, _)) => {
                            place.listing = self.listing(names.iter(), &place, epoch)?;
                            place.story.ahead = place.ahead();
                        }
                        // It would be the next time too, at the price of another connection.
                        Err(error @ ReadError::Unavailable(Cause::ReplyTooLarge { .. })) => {
                            return Err(error.into());
                        }
                        Err(_) => {}
                    }
                    return Ok((self.unless_full(place)?, behind));
                }
                Err(WriteError::Rejected(Rejection::NoNode)) if tries > 0 => {
                    if let Some(refusal) = refusal {
                        return Err(refusal.into());
                    }
                    with_parents = true;
                    tries -= 1;
                }
                Err(WriteError::NotApplied(Cause::Throttled)) => sleep(THROTTLE_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Submits the creation of a node with a place in the queue.
    fn create(
        &self,
        client: &Client,
        role: Role,
        data: &[u8],
    ) -> Result<impl Future<Output = Result<OwnedNode, WriteError>> + use<>, AcquireError> {
        Ok(client
            .create(&self.node_path(role)?, data)
            .mode(CreateMode::EphemeralSequential)
            .acl(&self.settings.acl)
            .protected_by_its_name()
            .submit())
    }

    /// The path of a new node, up to its number. Nobody else has ever asked for it.
    pub(crate) fn node_path(&self, role: Role) -> Result<String, AcquireError> {
        let Settings { description, layout, .. } = &self.settings;
        let id = match planted!(AdoptsOldNode) {
            true => description.clone(),
            false => self.client.unique_id()?,
        };
        let name = self.node_name(role, &id).ok_or(AcquireError::NoSuchName { layout: *layout })?;
        Ok(join(&self.path, &name))
    }

    /// Gives the place up if too many are in front.
    pub(super) fn unless_full(&self, place: Place) -> Result<Place, AcquireError> {
        match (place.ahead(), self.settings.max_waiters) {
            // The first of them has the lock.
            (Some(ahead), Some(most)) if ahead > most => Err(AcquireError::QueueFull { ahead }),
            _ => Ok(place),
        }
    }

    pub(super) async fn refuse_strangers(&self) -> Result<(), AcquireError> {
        let (names, _) = match self.client.children(&self.path).await {
            Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(()),
            children => children?,
        };
        let filter = &self.settings.filter;
        let stranger = names
            .into_iter()
            .find_map(|name| filter.read(name).err().filter(|name| filter.is_strange(name)));
        stranger.map_or(Ok(()), |name| Err(AcquireError::Stranger { name }))
    }

    /// Submits the creation of the path, level by level from the top: the path may be new, or have been
    /// reaped for being idle.
    pub(crate) fn create_parents(&self, client: &Client) -> Vec<Pending<Created, WriteError>> {
        self.create_levels(client, &self.path)
    }

    /// The same for another path.
    pub(super) fn create_levels(
        &self,
        client: &Client,
        path: &str,
    ) -> Vec<Pending<Created, WriteError>> {
        let old_servers = self.without_containers.load(Ordering::Relaxed);
        let mode = if old_servers { CreateMode::Persistent } else { CreateMode::Container };
        let levels: Vec<&str> = ancestors(path).take_while(|path| *path != "/").collect();
        let acl = &self.settings.acl;
        let create = |path| client.create(path, b"").mode(mode).acl(acl).submit();
        levels.into_iter().rev().map(create).collect()
    }

    /// The first refusal that matters among the creations of the path's levels.
    pub(crate) async fn parents_refused(
        &self,
        parents: Vec<Pending<Created, WriteError>>,
    ) -> Option<WriteError> {
        let mut refusal = None;
        for parent in parents {
            match parent.await {
                Ok(_) | Err(WriteError::Rejected(Rejection::NodeExists)) => {}
                Err(WriteError::Rejected(Rejection::Unimplemented)) => {
                    self.without_containers.store(true, Ordering::Relaxed);
                }
                Err(error @ WriteError::Rejected(_)) => refusal = refusal.or(Some(error)),
                // Lost, perhaps: the next try will tell.
                Err(_) => {}
            }
        }
        refusal
    }
}
