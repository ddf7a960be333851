//! Mistakes planted on purpose, to check that the simulator notices them.
//!
//! Each is a mistake that a client or a lock has really had, or that was made in this project, put back at the place
//! where it would be made here. They exist only in builds with `--cfg zk_bank`, and a process makes at most one at a
//! time: the one it was configured to make. In every other build [`planted!`](crate::planted!) is the constant `false`,
//! and neither the names below nor the mistakes are compiled.

/// Whether to make this mistake: one of the names of `planted::Bug`. The constant `false`, unless built with
/// `--cfg zk_bank`.
#[cfg(zk_bank)]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is($crate::planted::Bug::$bug)
    };
}

/// Whether to make this mistake: one of the names of `planted::Bug`. The constant `false`, unless built with
/// `--cfg zk_bank`.
#[cfg(not(zk_bank))]
#[doc(hidden)]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

#[cfg(zk_bank)]
pub use bank::{Bug, is, made, plant};

#[cfg(zk_bank)]
mod bank {
    use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    macro_rules! bugs {
        ($($name:ident: $what:literal, $origin:literal, $invariants:literal;)*) => {
            /// A planted mistake.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            pub enum Bug {
                $(#[doc = $what] $name,)*
            }

            impl Bug {
                /// All mistakes.
                pub const ALL: &[Self] = &[$(Self::$name),*];

                /// A description of the mistake.
                #[must_use]
                pub const fn what(self) -> &'static str {
                    match self { $(Self::$name => $what,)* }
                }

                /// Where it was made: an entry of a tracker, a client, or `own` if it was made or thought of here.
                #[must_use]
                pub const fn origin(self) -> &'static str {
                    match self { $(Self::$name => $origin,)* }
                }

                /// The promises that it breaks, by their names in `docs/simulation.md`.
                #[must_use]
                pub const fn invariants(self) -> &'static str {
                    match self { $(Self::$name => $invariants,)* }
                }
            }
        };
    }

    bugs! {
        // The session: requests.
        XidMismatchAccepted: "an answer is taken for the oldest request's whatever its number", "kazoo", "S8";
        XidsOverflow: "request numbers go on into the negative ones", "kazoo", "S8";
        PendingForgottenOnLoss: "what is unanswered when a connection is lost is never answered", "ZOOKEEPER-794", "S8 L2";
        BlindRetry: "whatever is unanswered when a connection is lost is sent again", "Netflix/curator #3", "S6 X1";
        SentReportedUnsent: "a request that was sent is reported as certainly not carried out", "own", "S9 X2";
        UnsentReportedLost: "what waits to be sent when a connection is lost is reported as in doubt", "own", "S9";
        AnswersInReverse: "what is answered at once is reported newest first", "own", "S8 W1";
        // The session: watches.
        ExistWatchAsData: "a watch is registered as one on an existing node whatever the answer", "own", "W3";
        WatchesNotRestored: "watches are not armed again on a new connection", "kazoo #151, rust-zookeeper #97", "W2 L2";
        RestoredSinceEver: "watches are armed again as of the beginning of time", "own", "W3";
        RestoreNotSplit: "all watches are armed again in one frame, however long", "ZOOKEEPER-706, go-zookeeper #167", "L1";
        RequestsBeforeWatches: "requests overtake the watches that a new connection is told of", "own", "W1";
        ZxidFromEvents: "an event counts as having seen its whole transaction", "ZOOKEEPER-4655, zookeeper-client-rust #82", "W2 W5";
        ZxidFromEarlyBatch: "the first batch of restored watches moves on where the second is restored from", "own", "W2";
        ChildWatchOutlivesNode: "watches on children are not told that their node is gone", "own", "W2";
        WatchersLeftWaiting: "watches are not told that the session is over", "ZOOKEEPER-137, go-zookeeper #83", "W2";
        // The session: connections.
        ZxidNotShown: "a handshake does not say what has been seen", "zookeeper-client-rust #39", "S7";
        OldPasswordKept: "a new session's password is not remembered", "own", "L1";
        AuthNotReplayed: "credentials are presented on the first connection only", "go-zookeeper #139, Curator #245", "L1";
        AuthFailureRetried: "refused credentials are a lost connection like any other", "own", "L4";
        ReadOnlyUnasked: "a server without a quorum will do although nobody has said so", "own", "S7";
        ExpiryTakenForLoss: "a session that the servers do not know is tried again", "own", "L1";
        LossTakenForExpiry: "a server that hangs up during the handshake ends the session", "own", "S4";
        HandshakeNotTimed: "connecting is timed, the handshake is not", "go-zookeeper", "L1";
        SilenceNotTimed: "a silent connection counts as alive", "kazoo #66, rust-zookeeper", "L1";
        PartialFrameDropped: "bytes of a frame that is not complete are dropped", "own", "L1 S8";
        OldBytesKept: "bytes of a lost connection are read as the next one's", "own", "L1 S8";
        AlwaysTheFirst: "the first server is dialed again and again", "tokio-zookeeper", "L1";
        BackoffOverflows: "the pause between attempts doubles without limit", "zookeeper-client-rust #79", "R3";
        // The session: time.
        LeaseFromReceipt: "the lease counts from when an answer came", "own", "S2 S4";
        WishedTimeoutKept: "the lease is as long as was wished and not as was granted", "own", "S2 S4";
        ExpiryNotTimed: "a session cannot expire while there is no connection", "ZOOKEEPER-4508, node-zookeeper-client #20", "L4";
        CloseWaitsForServer: "closing waits for a server however long that takes", "ZOOKEEPER-591", "L4";
        // The client.
        AdoptsOldNode: "a node found by its id is ours although an earlier session made it", "CURATOR-498, CURATOR-604", "X1 S2";
        ListsWithoutSync: "the search for a node whose reply was lost is not preceded by a sync", "Curator, kazoo", "X1";
        FindsAnyNode: "the search for a node whose reply was lost takes any protected node for ours", "zk-ruby #34", "X1 S2";
        CreatesAgain: "a create whose reply was lost is repeated without a search", "go-zookeeper #229", "X1";
        CancelLeavesNode: "the node of a create that nobody waits for any more stays", "CURATOR-79, CURATOR-205", "X2";
        DeleteNotRepeated: "a release whose reply was lost is not repeated", "CURATOR-486, kazoo #732", "X3";
        ClosingNotAnnounced: "locks count as held while their session is being closed", "own", "S2";
        LossNotPublished: "users are not told that a connection was lost", "own", "S4";
        AbandonedLivesOn: "a session that all clients have left is kept alive", "ZOOKEEPER-795", "R1 X2";
        DeadlineOverslept: "a deadline that comes nearer does not move the alarm", "own", "L1 L4";
        ChrootLeftOn: "paths in events are the servers' own", "ZOOKEEPER-2282", "W3";
        ChrootTakenOffTwice: "a root is taken off a path twice", "own", "W3";
        // The lock.
        WakeUpLost: "a node that is gone when it is to be watched is waited for", "CURATOR-527", "L2";
        GrantNotRechecked: "who was waited for is gone, so the lock is ours", "etcd, CURATOR-696", "S2";
        StrangersCount: "whatever lies under the lock's path stands in the queue", "kazoo", "L2";
        OrderedByName: "the queue is in the order of names, ids first", "own", "S2 S3";
        OwnNodeNotMissed: "a queue without our node has nobody in front of us", "etcd", "S2";
        WakesAll: "every waiter watches the holder", "the herd of simple recipes", "L3";
        WatchesItself: "a waiter stands in its own way", "own", "L2";
        TokenFromSuffix: "the token is the number in the node's name", "CURATOR-537", "S1";
        LeaseIgnored: "a lock is held until the session is known to be over", "CURATOR-206, go-zookeeper #20", "S2 S4";
        LossForgotten: "a lock that was lost is held again when the servers are back", "own", "S4";
        LossHeardLate: "who waits for the loss of a lock is not woken by the end of its lease", "CURATOR-206", "S4";
        DeletionUnheard: "who waits for the loss of a lock is not told that its node was deleted", "rust-zookeeper #77", "S4";
        // Other recipes.
        HerdHeardOnce: "who watches everybody hears of one change only", "own", "L2";
        DeletesUnlooked: "a lock without a queue is released whoever has it by now", "the simple recipes", "S9";
        TakesAnyForOurs: "whatever node is there after a lost create is ours", "the simple recipes", "S2";
        WritersPassReaders: "a writer does not wait for readers", "own", "S2 S3";
        DowngradeUnseen: "a writer does not see that the one in front goes on reading", "CURATOR-621", "S2";
        DowngradeWithNewToken: "who goes on reading has a token of its own", "own", "S1";
        UpgradesTogether: "two who read wait for each other to write", "own", "L2";
        OnePermitTooMany: "a semaphore gives out one more permit than it has", "own", "S3";
        CountNotChecked: "the number of permits may change before one is given out", "own", "S3";
        OneByOne: "several locks are taken one after the other, as given", "own", "L2 S3";
        LatchKeepsLead: "a latch leads until it knows of another leader", "CURATOR-696", "S2 S4";
        CohortKeepsLock: "tasks of a process pass a lock on for ever", "own", "L3";
        LocalTokensRepeat: "all tasks of a process have one token", "own", "S1";
        BarrierHalfOpen: "whoever has waited at a barrier for a while passes it", "CURATOR-233", "B1";
        ReadyOfLastRound: "a sign that is left from another round lets in", "own", "B2";
        LeavesAlone: "who leaves a double barrier does not wait for the others", "own", "B2";
        FollowsOnce: "who follows a group is told of one change only", "own", "W1";
        NodeNotRemade: "a node that is to come back does not if somebody has deleted it", "own", "L1";
    }

    /// A number that no bug has.
    const NONE: usize = usize::MAX;

    static PLANTED: AtomicUsize = AtomicUsize::new(NONE);
    static MADE: AtomicU64 = AtomicU64::new(0);

    /// Makes the whole process make this mistake from now on; or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(NONE, |bug| bug as usize), Ordering::Relaxed);
        MADE.store(0, Ordering::Relaxed);
    }

    /// Whether to make this mistake.
    #[must_use]
    pub fn is(bug: Bug) -> bool {
        let planted = PLANTED.load(Ordering::Relaxed) == bug as usize;
        if planted {
            MADE.fetch_add(1, Ordering::Relaxed);
        }
        planted
    }

    /// How often the planted mistake could be made so far.
    #[must_use]
    pub fn made() -> u64 {
        MADE.load(Ordering::Relaxed)
    }
}
