//! Getting a place in a queue.

use std::borrow::Cow;

use zk_client::{
    Cause, Client, Create, CreateMode, CreateProtected, ReadError, Rejection, join, planted,
};

use super::{IN_PLACE, Line, Place, Settings};
use crate::{
    entry::Kind,
    error::AcquireError,
    layout::{Role, Strangers},
};

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

    /// The same, with something else to ask `behind` the listing, in the same round trip: what that says is worth
    /// something if the place has a listing.
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
        let mut may_rotate = true;
        loop {
            let epoch = self.client.session().epoch();
            let (path, data) = self.node(role, data)?;
            let create = self.waiting(self.create(&self.client, &path, &data));
            let listed = |cork: &Client| {
                let children = cork.with(IN_PLACE).children(&self.path).packed().submit();
                (children, behind(cork))
            };
            let created = create.followed_by(listed).await;
            let (node, (children, behind)) = created.map_err(|error| self.refused(error))?;
            if may_rotate && self.is_worn(&node) {
                self.rotate(node).await?;
                // A path that is worn from the beginning always will be.
                may_rotate = false;
                continue;
            }
            let mut place = Place::new(node, besides.map(str::to_owned), &self.settings)?;
            match children.await {
                // An old listing, sent again over a new connection, may be from before the node, as one may be whose
                // create had to be asked for again.
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
    }

    /// The path of a new node, up to its number, and what it says: in one of them is an id that nobody else has ever used.
    pub(super) fn node<'a>(
        &self,
        role: Role,
        data: &'a [u8],
    ) -> Result<(String, Cow<'a, [u8]>), AcquireError> {
        let path = self.node_path(role)?;
        if self.settings.filter.has_ids() {
            return Ok((path, Cow::Borrowed(data)));
        }
        let id = self.client.unique_id()?;
        Ok((path, Cow::Owned([id.as_bytes(), b" ", data].concat())))
    }

    /// The creation of such a node, which is found again by its id.
    pub(super) fn waiting<'a>(&self, create: Create<'a>) -> CreateProtected<'a> {
        let create = create.mode(CreateMode::EphemeralSequential);
        match self.settings.filter.has_ids() {
            true => create.protected_by_its_name(),
            false => create.protected_by_its_data(),
        }
    }

    /// The path of a new node, up to its number. Nobody else has ever asked for it, if it has an id.
    pub(crate) fn node_path(&self, role: Role) -> Result<String, AcquireError> {
        self.check_path()?;
        self.settings.filter.check()?;
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
}
