//! What a listing of a queue means for a waiter in it.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    entry::{Entry, Kind},
    error::AcquireError,
    layout::{Filter, ForeignNodes},
    wait_queue::Downgrades,
};

/// How many predecessors are remembered: the one to watch, and its own predecessor.
pub(super) const SIGHT: usize = 2;

/// The part of the queue ahead of us, as it was at some moment. Small: thousands may wait at once.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The contenders we wait for, nearest first, without those whose end was reported since.
    nearest: Vec<Entry>,
    /// The number of further contenders we wait for.
    beyond: usize,
    /// Whether any contender ahead wants more than to read.
    behind_writer: bool,
    /// Whether there was a contender behind us.
    followed: bool,
    /// Whether the node that is not waited for was there, if there is to be one.
    besides_is_there: bool,
    /// Whether the end of all these will prove the grant: see [`Listing::proves_grant`].
    closed: bool,
    /// The epoch of the connection that it was read over, or of an earlier one.
    epoch: u64,
    /// When it was evaluated.
    at: Instant,
    /// Whether the node of our name on it is known to be ours.
    pub(super) is_confirmed: bool,
}

impl Listing {
    /// Evaluates a list of names for `own`; `None` if that is not on it. `besides` is not waited for.
    ///
    /// # Errors
    /// [`AcquireError::Stranger`] if the filter refuses strangers.
    pub(crate) fn new<N: AsRef<str> + Into<String>>(
        names: impl IntoIterator<Item = N>,
        own: &Entry,
        besides: Option<&str>,
        (filter, downgrades): (&Filter, Downgrades),
        epoch: u64,
    ) -> Result<Option<Self>, AcquireError> {
        let mut listing = Self {
            nearest: Vec::new(),
            beyond: 0,
            behind_writer: false,
            followed: false,
            besides_is_there: besides.is_none(),
            closed: true,
            epoch,
            at: Instant::now(),
            is_confirmed: false,
        };
        let mut nearest = Vec::with_capacity(SIGHT + 1);
        let mut is_there = false;
        for name in names {
            match filter.read(name) {
                Ok(entry) => {
                    is_there |= entry.sequence == own.sequence && entry.name.as_ref() == own.name;
                    listing.followed |= own.is_ahead_of(&entry);
                    listing.besides_is_there |= besides == Some(entry.name.as_ref());
                    listing.closed &= cannot_be_joined_in_front(own.kind, entry.kind, downgrades);
                    if entry.blocks(own) && besides != Some(entry.name.as_ref()) {
                        listing.behind_writer |= entry.kind != Kind::Read;
                        listing.beyond += usize::from(add(&mut nearest, entry));
                    }
                }
                Err(name) if filter.is_foreign(name.as_ref()) => match filter.foreign_nodes {
                    ForeignNodes::Refuse => {
                        return Err(AcquireError::Stranger { name: name.into() });
                    }
                    ForeignNodes::Wait | ForeignNodes::Ignore => {
                        // Each listing meets it, and a busy lock is listed many times a second.
                        tracing::debug!(
                            name = name.as_ref(),
                            "a node under the lock's path is no contender"
                        );
                    }
                },
                Err(_) => {}
            }
        }
        listing.nearest = nearest.into_iter().map(Entry::into_owned).collect();
        Ok(is_there.then_some(listing))
    }

    /// The number of contenders ahead that we have to wait for.
    pub(crate) fn ahead(&self) -> usize {
        self.nearest.len() + self.beyond
    }

    /// The epoch of the connection that it was read over, or of an earlier one.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether any of them wants more than to read.
    pub(crate) const fn is_behind_writer(&self) -> bool {
        self.behind_writer
    }

    /// Whether the node that is not waited for was there.
    pub(crate) const fn has_besides(&self) -> bool {
        self.besides_is_there
    }

    /// Whether there is a contender behind us, as far as is known: most join later.
    pub(super) const fn is_followed(&self) -> bool {
        self.followed
    }

    /// How long ago that was.
    pub(super) fn age(&self) -> Duration {
        self.at.elapsed()
    }

    /// The nearest of them, at most two.
    pub(super) fn nearest(&self) -> &[Entry] {
        &self.nearest
    }

    /// Removes a contender whose end was reported.
    pub(super) fn without(&mut self, name: &str, was_of_own_session: bool) {
        self.nearest.retain(|entry| entry.name != name);
        self.closed &= !was_of_own_session;
    }

    /// Whether news of the end of the nearest `sight` contenders may [prove a grant](Listing::proves_grant).
    pub(super) fn may_prove_grant(&self, sight: usize) -> bool {
        self.closed && self.beyond == 0 && self.nearest.len() <= sight
    }

    /// Whether news of the end of all contenders ahead proves that we hold the lock, without another listing, if our
    /// own node has been watched all the time and nothing has happened to it.
    ///
    /// It does if no contender can have got in between since. It does not if:
    ///
    /// * news came of some only: the nearest may have given up while the holder holds;
    /// * we are a writer, and others might hold a write lock: a Curator writer that takes a read lock under its write
    ///   lock puts a new node *in front* of us;
    /// * there are names of unknown kinds: where their next nodes will be is unknown;
    /// * there was a reconnect: missed events arrive in no particular order, and our own node may be gone;
    /// * our own node is not watched, or its watch has fired: another client may have deleted it, and the contender
    ///   behind us watches our predecessor by now;
    /// * one of them was of our own session: when that is closed, all its nodes are deleted at once, ours too, and the
    ///   events of the others may arrive first. (A node without a known owner was missed by a read, and our own was
    ///   read after it.)
    pub(super) fn proves_grant(&self, epoch: u64, own_is_there: bool) -> bool {
        self.ahead() == 0 && self.closed && self.epoch == epoch && own_is_there
    }
}

/// Adds a contender to the nearest. Returns whether that pushes one out.
fn add<N: AsRef<str>>(nearest: &mut Vec<Entry<N>>, entry: Entry<N>) -> bool {
    let position = nearest.partition_point(|nearer| entry.is_ahead_of(nearer));
    nearest.insert(position, entry);
    nearest.len() > SIGHT && nearest.pop().is_some()
}

/// Whether a contender of kind `own` may skip another listing although `other` is in the queue: no node that it has to
/// wait for will appear in front of it.
fn cannot_be_joined_in_front(own: Kind, other: Kind, downgrades: Downgrades) -> bool {
    match (own, other, downgrades) {
        (_, Kind::Unknown | Kind::Lease, _) => false,
        // A node that appears in front of a reader is that of a writer that downgrades.
        (Kind::Read, _, _) | (_, _, Downgrades::Never) => true,
        (_, _, Downgrades::Possible) => false,
        (_, Kind::Exclusive | Kind::Lead, Downgrades::AsNamed) => true,
        // `own` is among them, if it wants to write.
        (_, Kind::Read | Kind::Write, Downgrades::AsNamed) => false,
    }
}
