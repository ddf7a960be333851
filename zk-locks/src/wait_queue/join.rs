//! Getting a place in a queue.

use std::borrow::Cow;

use zk_client::{
    Cause, ChildNames, Client, Create, CreateMode, Pending, ReadError, Rejection, Stat, path::join,
};

use super::{IN_PLACE, Pace, Position, Settings, WaitQueue, position::Names};
use crate::{
    entry::Kind,
    error::AcquireError,
    layout::{ForeignNodes, Role},
    quorum,
};

impl WaitQueue {
    /// Whether the queue has a contender that a newcomer would have to wait for: one read, no write.
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
    /// The listing is carried out after the create, on the same connection, so it shows our node and, since numbers
    /// follow the order of creation, every live node with a smaller one.
    pub(crate) async fn join(&self, role: Role, pace: Pace<'_>) -> Result<Position, AcquireError> {
        self.join_with(role, pace, self.settings.description.as_bytes()).await
    }

    /// As `join`, with the node's own data.
    pub(crate) async fn join_with(
        &self,
        role: Role,
        pace: Pace<'_>,
        data: &[u8],
    ) -> Result<Position, AcquireError> {
        let (position, ()) = self.join_and(role, pace, data, |_| ()).await?;
        Ok(position)
    }

    /// As `join_with`, with more requests submitted `behind` the listing, in the same round trip. Their answers are
    /// meaningful only if the place has a listing.
    pub(crate) async fn join_and<T>(
        &self,
        role: Role,
        pace: Pace<'_>,
        data: &[u8],
        behind: impl Fn(&Client) -> T,
    ) -> Result<(Position, T), AcquireError> {
        if self.settings.filter.foreign_nodes == ForeignNodes::Refuse {
            self.refuse_foreign_nodes().await?;
        }
        let mut may_rotate = true;
        loop {
            let epoch = self.client.session().epoch();
            let (path, data) = self.node(role, data)?;
            let create = self.waiting(self.create(&self.client, &path, &data));
            let listed = |cork: &Client| (self.list_behind(cork), behind(cork));
            let created = create.followed_by(listed).await;
            let (node, (mut children, behind)) = created.map_err(|error| self.refused(error))?;
            let node = node.owned.ok_or(AcquireError::NodeDeleted)?;
            let mut listed = None;
            if may_rotate && self.is_near_overflow(&node) {
                let listing = (&mut children).await;
                if let Some(renewal) = self.renewal(&node, &listing, pace) {
                    self.rotate(node, &renewal).await?;
                    // A path whose numbers have run out from the beginning stays so.
                    may_rotate = false;
                    continue;
                }
                listed = Some(listing);
            }
            let besides = pace.besides().map(str::to_owned);
            let mut position = Position::new(node, besides, &self.settings)?;
            let listed = match listed {
                Some(listed) => listed,
                None => children.await,
            };
            self.place(&mut position, listed, epoch)?;
            return Ok((self.unless_full(position).await?, behind));
        }
    }

    /// Submits a listing behind a create: it is carried out there, or not at all.
    pub(super) fn list_behind(&self, cork: &Client) -> Pending<Names, ReadError> {
        cork.with(IN_PLACE).children(&self.path).packed().submit()
    }

    /// Has a new node's position know what such a listing shows.
    pub(super) fn place(
        &self,
        position: &mut Position,
        listed: Result<(ChildNames, Stat), ReadError>,
        epoch: u64,
    ) -> Result<(), AcquireError> {
        match listed {
            // A listing repeated over a new connection may be older than the node, as may one whose create was
            // repeated.
            Ok(_) if quorum::may_be_missing(&self.client, epoch) => {}
            Ok((names, _)) => {
                position.listing = self.listing(names.iter(), position, epoch)?;
                position.span.ahead = position.ahead();
            }
            // The next listing would fail too, at the price of another connection.
            Err(error @ ReadError::Unavailable(Cause::ReplyTooLarge { .. })) => {
                return Err(error.into());
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// The path of a new node, up to its number, and its data: one of them contains a unique id.
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

    /// The create of such a node, which can be found again by its id.
    pub(super) fn waiting<'a>(&self, create: Create<'a>) -> Create<'a> {
        let create = create.mode(CreateMode::EphemeralSequential);
        match self.settings.filter.has_ids() {
            true => create.protected_by_its_name(),
            false => create.protected_by_its_data(),
        }
    }

    /// Checks that there is a name for nodes of this role, before anything is done for one.
    pub(crate) fn check_name(&self, role: Role) -> Result<(), AcquireError> {
        self.check_path()?;
        self.settings.filter.check()?;
        let Settings { layout, .. } = self.settings;
        self.node_name(role, "").map(drop).ok_or(AcquireError::NoSuchName { layout })
    }

    /// The path of a new node, up to its number. Unique, if it has an id.
    pub(crate) fn node_path(&self, role: Role) -> Result<String, AcquireError> {
        self.check_path()?;
        self.settings.filter.check()?;
        if self.settings.lock_delay.is_some() && self.path == "/" {
            let none = "a lock with a delay has a record beside its path, and the root has none";
            return Err(Cause::InvalidArgument(none).into());
        }
        let id = self.client.unique_id()?;
        let Settings { layout, .. } = self.settings;
        let name = self.node_name(role, &id).ok_or(AcquireError::NoSuchName { layout })?;
        Ok(join(&self.path, &name))
    }

    /// Gives the place up if too many contenders are ahead.
    pub(super) async fn unless_full(
        &self,
        mut position: Position,
    ) -> Result<Position, AcquireError> {
        let Some(most) = self.settings.max_waiters else { return Ok(position) };
        let is_known = position.ahead().is_some();
        let ahead = self.look(&mut position).await?.ahead();
        // The first of them is the holder.
        if ahead > most {
            return Err(AcquireError::QueueFull { ahead });
        }
        if !is_known {
            // What was submitted behind the first listing may be older than this one.
            position.forget();
        }
        Ok(position)
    }

    pub(super) async fn refuse_foreign_nodes(&self) -> Result<(), AcquireError> {
        let (names, _) = match self.client.children(&self.path).await {
            Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(()),
            children => children?,
        };
        let filter = &self.settings.filter;
        let stranger = names
            .into_iter()
            .find_map(|name| filter.read(name).err().filter(|name| filter.is_foreign(name)));
        stranger.map_or(Ok(()), |name| Err(AcquireError::Stranger { name }))
    }
}
