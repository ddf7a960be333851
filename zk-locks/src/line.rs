//! The queue under a path: joining, whom to watch, when a grant is proved, leaving.
//!
//! Every waiting node has a number, given out by the leader in the order of creation. Whoever has nobody
//! relevant in front holds the lock. Leaving is deleting one's node, which happens by itself when its
//! [`OwnedNode`] is dropped: so an acquire can be dropped at any point and leaves nothing behind.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::time::sleep;
use zk_client::{
    AclList, Cause, Client, CreateMode, EventType, NodeEvent, OwnedNode, ReadError, Rejection,
    SessionEnd, SessionId, Watch, WriteError, ancestors, join, planted,
};

use crate::{
    error::AcquireError,
    ticket::{EXCLUSIVE, Kind, SEQUENCE_MAX, Ticket},
};

/// Pause before asking again a server that is throttling.
const THROTTLE_PAUSE: Duration = Duration::from_millis(100);

/// How often a path may vanish between its creation and ours. Containers vanish when they have been
/// empty for a while; more than a few times in a row is somebody deleting them on purpose.
const PARENT_TRIES: usize = 5;

/// A queue under a path.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) acl: AclList,
    /// What our nodes carry: who we are, for people.
    pub(crate) description: String,
    /// How long to trust a watch without looking; `None` for ever.
    pub(crate) recheck: Option<Duration>,
    /// Whether the servers are too old for containers (before 3.5.1).
    pub(crate) without_containers: AtomicBool,
}

/// Our place in a queue. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) node: OwnedNode,
    ticket: Ticket,
    /// On our own node; tells if somebody deletes it.
    pub(crate) own_watch: Option<Watch>,
}

/// The queue as it was at some moment, as far as it is in front of us.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Whom we wait for, nearest first.
    ahead: Vec<Ticket>,
    /// Whether all the names are of exclusive locks that number their nodes by the server's counter. Only
    /// then can nobody appear in front of us later.
    closed: bool,
    /// The connection that it came over, or an earlier one.
    epoch: u64,
}

/// Why a wait for the one in front has ended.
enum Wake {
    /// The node in front is gone; whose it was, if known.
    Gone { owner: Option<SessionId> },
    /// Something else happened to it, or its watch has been trusted for long enough.
    LookAgain,
}

impl Line {
    /// Whether anybody is in the queue: one read, no write.
    pub(crate) async fn is_busy(&self) -> Result<bool, AcquireError> {
        match self.client.children(&self.path).await {
            Ok((names, _)) => Ok(names.iter().any(|name| Ticket::parse(name).is_some())),
            Err(ReadError::Rejected(Rejection::NoNode)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Joins the queue: creates our node and lists the queue behind it, in one round trip.
    ///
    /// The listing is carried out after the create, on the same connection, so it shows our node and, since
    /// numbers are given out in the order of creation, every living node with a smaller one.
    pub(crate) async fn join(&self) -> Result<(Place, Option<Listing>), AcquireError> {
        let mut with_parents = false;
        let mut tries = PARENT_TRIES;
        loop {
            let epoch = self.client.session().epoch();
            let node_path = join(&self.path, EXCLUSIVE);
            let cork = self.client.cork();
            let parents = if with_parents { self.create_parents(&cork) } else { Vec::new() };
            let create = cork
                .create(&node_path, self.description.as_bytes())
                .mode(CreateMode::EphemeralSequential)
                .acl(&self.acl)
                .protected()
                .submit();
            let children = cork.children(&self.path).submit();
            drop(cork);

            let refusal = self.parents_refused(parents).await;
            match create.await {
                Ok(node) => {
                    let place = Place::new(node)?;
                    // An old listing, sent again over a new connection, may be from before the node.
                    let listing = match children.await {
                        Ok((names, _)) => Listing::new(&names, &place.ticket, epoch),
                        Err(_) => None,
                    };
                    return Ok((place, listing));
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

    /// Submits the creation of the path, level by level from the top: the path may be new, or have been
    /// reaped for being idle.
    fn create_parents(
        &self,
        client: &Client,
    ) -> Vec<zk_client::Pending<zk_client::Created, WriteError>> {
        let old_servers = self.without_containers.load(Ordering::Relaxed);
        let mode = if old_servers { CreateMode::Persistent } else { CreateMode::Container };
        let levels: Vec<&str> = ancestors(&self.path).take_while(|path| *path != "/").collect();
        let create = |path| client.create(path, b"").mode(mode).acl(&self.acl).submit();
        levels.into_iter().rev().map(create).collect()
    }

    /// The first refusal that matters among the creations of the path's levels.
    async fn parents_refused(
        &self,
        parents: Vec<zk_client::Pending<zk_client::Created, WriteError>>,
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

    /// Waits until nobody is in front of us.
    pub(crate) async fn wait(
        &self,
        place: &mut Place,
        listing: Option<Listing>,
    ) -> Result<(), AcquireError> {
        let mut listing = match listing {
            Some(listing) => listing,
            None => self.list(place).await?,
        };
        while let Some(nearest) = listing.nearest() {
            match self.wait_for(place, nearest).await? {
                Wake::Gone { owner } if listing.proves_grant(owner, place, &self.client) => {
                    tracing::trace!(path = self.path, "granted without listing");
                    return Ok(());
                }
                Wake::Gone { .. } | Wake::LookAgain => listing = self.list(place).await?,
            }
        }
        Ok(())
    }

    /// Whether nobody is in front of us now.
    pub(crate) async fn is_first(
        &self,
        place: &Place,
        listing: Option<Listing>,
    ) -> Result<bool, AcquireError> {
        let listing = match listing {
            Some(listing) => listing,
            None => self.list(place).await?,
        };
        Ok(listing.ahead.is_empty())
    }

    /// Lists the queue anew.
    async fn list(&self, place: &Place) -> Result<Listing, AcquireError> {
        loop {
            // Taken first: a listing that is sent again over a new connection must not pass for one of it.
            let epoch = self.client.session().epoch();
            match self.client.children(&self.path).await {
                Ok((names, _)) => {
                    return Listing::new(&names, &place.ticket, epoch)
                        .ok_or(AcquireError::NodeDeleted);
                }
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(AcquireError::NodeDeleted);
                }
                Err(ReadError::Unavailable(Cause::Throttled)) => sleep(THROTTLE_PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Watches a node in front of us, and our own, until something happens.
    ///
    /// Watched by reading, not by asking for existence: a read of a node that is gone leaves no watch
    /// behind on the server.
    async fn wait_for(&self, place: &mut Place, nearest: &Ticket) -> Result<Wake, AcquireError> {
        let nearest_path = join(&self.path, &nearest.name);
        let own_path = place.node.path().to_owned();
        let cork = self.client.cork();
        let ahead = cork.get(&nearest_path).watch().submit();
        let own = place.own_watch.is_none().then(|| cork.get(&own_path).watch().submit());
        drop(cork);

        let ahead = ahead.await;
        if let Some(own) = own {
            place.own_watch = match own.await {
                Ok((_, watch)) => Some(watch),
                Err(ReadError::Rejected(Rejection::NoNode)) => {
                    return Err(AcquireError::NodeDeleted);
                }
                // Then a listing will have to do.
                Err(_) => None,
            };
        }
        let ((_, stat), mut watch) = match ahead {
            Ok(watched) => watched,
            Err(ReadError::Rejected(Rejection::NoNode)) if planted!(WakeUpLost) => {
                pause(self.recheck).await;
                return Ok(Wake::LookAgain);
            }
            Err(ReadError::Rejected(Rejection::NoNode)) => return Ok(Wake::Gone { owner: None }),
            Err(ReadError::Unavailable(Cause::Throttled)) => {
                sleep(THROTTLE_PAUSE).await;
                return Ok(Wake::LookAgain);
            }
            Err(error) => return Err(error.into()),
        };
        tracing::debug!(path = self.path, behind = nearest.name, "waiting");
        let recheck = self.recheck.map(|pause| place.jitter(pause));
        tokio::select! {
            biased;
            own = own_event(&mut place.own_watch) => {
                place.own_watch = None;
                // If it was deleted, the next listing tells by whom: a session that ends takes its nodes
                // along, and is not answered any more.
                own.map(|_| Wake::LookAgain)
            }
            event = &mut watch => match event.map_err(AcquireError::SessionEnded)? {
                NodeEvent { kind: EventType::NODE_DELETED, .. } => {
                    Ok(Wake::Gone { owner: Some(stat.ephemeral_owner) })
                }
                _ => Ok(Wake::LookAgain),
            },
            () = pause(recheck) => Ok(Wake::LookAgain),
        }
    }
}

/// The next event of our own node; never, if it is not watched.
async fn own_event(watch: &mut Option<Watch>) -> Result<NodeEvent, AcquireError> {
    match watch {
        Some(watch) => watch.await.map_err(AcquireError::SessionEnded),
        None => std::future::pending().await,
    }
}

async fn pause(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}

impl Place {
    fn new(node: OwnedNode) -> Result<Self, AcquireError> {
        let ticket = Ticket::parse(node.name()).ok_or(AcquireError::NodeDeleted)?;
        let sequence = ticket.sequence;
        if !(0..=SEQUENCE_MAX).contains(&sequence) {
            return Err(AcquireError::SequenceExhausted { sequence });
        }
        Ok(Self { node, ticket, own_watch: None })
    }

    /// A part of a pause that differs from waiter to waiter, two thirds of it at least.
    fn jitter(&self, pause: Duration) -> Duration {
        let sixteenths = u32::try_from(self.node.stat().czxid.0.rem_euclid(16)).unwrap_or_default();
        pause - pause * sixteenths / 48
    }

    /// Whether our own node is watched, and nothing has happened to it since. A watch that has fired is
    /// used up.
    fn is_undisturbed(&mut self) -> bool {
        let undisturbed = self.own_watch.as_mut().is_some_and(|watch| watch.try_event().is_none());
        if !undisturbed {
            self.own_watch = None;
        }
        undisturbed
    }
}

impl Listing {
    /// What a list of names means for us; `None` if we are not on it.
    fn new(names: &[String], own: &Ticket, epoch: u64) -> Option<Self> {
        let mut tickets = Vec::with_capacity(names.len());
        for name in names {
            match Ticket::parse(name) {
                Some(ticket) => tickets.push(ticket),
                None => tracing::warn!(name, "a node under the lock's path is no contender"),
            }
        }
        let is_there = tickets.iter().any(|ticket| ticket.name == own.name);
        if !is_there && !planted!(OwnNodeNotMissed) {
            return None;
        }
        let closed = tickets.iter().all(|ticket| ticket.kind == Kind::Exclusive);
        let mut ahead = tickets;
        ahead.retain(|ticket| ticket.is_ahead_of(own));
        ahead.sort_by(|a, b| b.order(a));
        Some(Self { ahead, closed, epoch })
    }

    /// Whom to watch: one for each, or a release would wake everybody.
    fn nearest(&self) -> Option<&Ticket> {
        if planted!(WakesAll) { self.ahead.last() } else { self.ahead.first() }
    }

    /// Whether the end of the nearest one in front proves that we hold the lock, without another look.
    ///
    /// It does if the nearest was the only one in front, nobody can have come in between since, and our own
    /// node is still there. In detail, with what would go wrong otherwise:
    ///
    /// * others were in front as well: the nearest may only have given up;
    /// * names of other kinds of locks: a Curator writer that takes a read lock under its write lock puts a
    ///   new node *in front* of us;
    /// * there was a reconnect: events that were missed come in no particular order, and our own node may
    ///   be gone;
    /// * our own node is not watched, or its watch has fired: somebody may have deleted it, and whoever is
    ///   behind us is watching the one in front of us by now;
    /// * the nearest was of our own session: when that is closed, all its nodes go at once, ours too, and
    ///   the events of the others may be heard first. (Without an owner the node was missed by a read, and
    ///   our own was read after it.)
    fn proves_grant(&self, owner: Option<SessionId>, place: &mut Place, client: &Client) -> bool {
        let session = client.session();
        let own_is_there = place.is_undisturbed();
        planted!(GrantNotRechecked)
            || self.ahead.len() == 1
                && self.closed
                && self.epoch == session.epoch()
                && own_is_there
                && owner != Some(session.id())
    }
}

/// Sessions end for waiters as for holders.
impl From<SessionEnd> for AcquireError {
    fn from(end: SessionEnd) -> Self {
        Self::SessionEnded(end)
    }
}
