//! What a listing of a queue means for one who waits in it.

use crate::{
    entry::{Entry, Kind},
    error::AcquireError,
    layout::{Filter, Strangers},
    line::Downgrades,
};

use zk_client::planted;

/// How many of those in front are remembered: the one to watch, and the one behind whom that one waits.
pub(super) const SIGHT: usize = 2;

/// The queue as it was at some moment, as far as it is in front of us. Small: thousands may wait at once.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Whom we wait for, nearest first; not those whose end we have heard of since.
    nearest: Vec<Entry>,
    /// How many more we wait for.
    beyond: usize,
    /// Whether any of those in front wants more than to read.
    behind_writer: bool,
    /// Whether anybody was behind us.
    followed: bool,
    /// Whether the end of all these will prove the grant: see [`Listing::proves_grant`].
    closed: bool,
    /// The connection that it came over, or an earlier one.
    epoch: u64,
}

/// How many of these nodes of an exclusive lock one of them has to wait for; `None` if it is not among them.
///
/// For the benchmark of what a listing costs that nobody can do without.
#[doc(hidden)]
#[must_use]
pub fn ahead_in_line<'a>(names: impl IntoIterator<Item = &'a str>, own: &str) -> Option<usize> {
    let own = Entry::parse(own.to_owned()).ok()?;
    let by = (&Filter::default(), Downgrades::default());
    Listing::new(names, &own, None, by, 0).ok()?.as_ref().map(Listing::ahead)
}

impl Listing {
    /// What a list of names means for `own`; `None` if that is not on it. `besides` is not waited for.
    ///
    /// # Errors
    /// [`AcquireError::Stranger`] if the filter says so.
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
            closed: true,
            epoch,
        };
        let mut nearest = Vec::with_capacity(SIGHT + 1);
        let mut is_there = false;
        for name in names {
            match filter.read(name) {
                Ok(entry) => {
                    is_there |= entry.sequence == own.sequence && entry.name.as_ref() == own.name;
                    listing.followed |= own.is_ahead_of(&entry);
                    listing.closed &= cannot_be_joined_in_front(own.kind, entry.kind, downgrades);
                    if entry.blocks(own) && besides != Some(entry.name.as_ref()) {
                        listing.behind_writer |= entry.kind != Kind::Read;
                        listing.beyond += usize::from(add(&mut nearest, entry));
                    }
                }
                Err(name) if filter.is_strange(name.as_ref()) => match filter.strangers {
                    Strangers::Refuse => {
                        return Err(AcquireError::Stranger { name: name.into() });
                    }
                    Strangers::Wait | Strangers::Ignore => {
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
        Ok((is_there || planted!(OwnNodeNotMissed)).then_some(listing))
    }

    /// How many are in front whom we have to wait for.
    pub(crate) fn ahead(&self) -> usize {
        self.nearest.len() + self.beyond
    }

    /// The connection that it came over, or an earlier one.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether any of them wants more than to read.
    pub(crate) const fn is_behind_writer(&self) -> bool {
        self.behind_writer
    }

    /// Whether anybody is behind us, as far as is known: most come later.
    pub(super) const fn is_followed(&self) -> bool {
        self.followed
    }

    /// The nearest of them, at most two.
    pub(super) fn nearest(&self) -> &[Entry] {
        &self.nearest
    }

    /// Takes out one whose end we have heard of.
    pub(super) fn without(&mut self, name: &str, was_of_own_session: bool) {
        self.nearest.retain(|entry| entry.name != name);
        self.closed &= !was_of_own_session;
    }

    /// Whether hearing of the end of the nearest, as many as that, may [prove a grant](Listing::proves_grant).
    pub(super) fn may_prove_grant(&self, sight: usize) -> bool {
        self.closed && self.beyond == 0 && self.nearest.len() <= sight
    }

    /// Whether hearing of the end of all in front proves that we hold the lock, without another look, if our
    /// own node has been watched all the time and nothing has happened to it.
    ///
    /// It does if nobody can have come in between since. In detail, with what would go wrong otherwise:
    ///
    /// * only some were heard of: the nearest may have given up while the holder holds;
    /// * a writer, if others might hold a write lock: a Curator writer that takes a read lock under its write
    ///   lock puts a new node *in front* of us;
    /// * names of unknown kinds: nobody knows where their next nodes will be;
    /// * there was a reconnect: events that were missed come in no particular order, and our own node may
    ///   be gone;
    /// * our own node is not watched, or its watch has fired: somebody may have deleted it, and whoever is
    ///   behind us is watching the one in front of us by now;
    /// * one in front was of our own session: when that is closed, all its nodes go at once, ours too, and
    ///   the events of the others may be heard first. (Without an owner the node was missed by a read, and
    ///   our own was read after it.)
    pub(super) fn proves_grant(&self, epoch: u64, own_is_there: bool) -> bool {
        planted!(GrantNotRechecked)
            || self.ahead() == 0 && self.closed && self.epoch == epoch && own_is_there
    }
}

/// Adds one to the nearest. Returns whether there is one too many, who is not among them any more.
fn add<N: AsRef<str>>(nearest: &mut Vec<Entry<N>>, entry: Entry<N>) -> bool {
    let place = nearest.partition_point(|nearer| entry.is_ahead_of(nearer));
    nearest.insert(if planted!(WakesAll) { nearest.len() - place } else { place }, entry);
    nearest.len() > SIGHT && nearest.pop().is_some()
}

/// Whether one that wants `own` can go without another look although `other` is in the queue: no node will
/// appear in front of it that it has to wait for.
fn cannot_be_joined_in_front(own: Kind, other: Kind, downgrades: Downgrades) -> bool {
    match (own, other, downgrades) {
        (_, Kind::Unknown | Kind::Lease, _) => false,
        // What appears in front of a reader is a writer that goes on as a reader.
        (Kind::Read, _, _) | (_, _, Downgrades::Never) => true,
        (_, _, Downgrades::Possible) => planted!(DowngradeUnseen),
        (_, Kind::Exclusive | Kind::Lead, Downgrades::AsNamed) => true,
        // Among them is `own`, if that wants to write.
        (_, Kind::Read | Kind::Write, Downgrades::AsNamed) => planted!(DowngradeUnseen),
    }
}
