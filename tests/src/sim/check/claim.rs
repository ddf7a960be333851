//! What was granted, in one shape whatever the recipe.

use std::{sync::Arc, time::Duration};

use zk_locks::{
    CheckError, CohortGuard, FencingToken, Guard, Guards, LeaderLatch, Leadership, Lost, ReadGuard,
    ReleaseError, SimpleGuard, Status, WriteGuard,
};

use crate::sim::pass;

/// Something that was granted, and says of itself whether it still is.
pub(crate) trait Claim: Send + Sync {
    fn token(&self) -> FencingToken;
    fn status(&self) -> Status;
    /// The node that stands for it, where that is known.
    fn path(&self) -> Option<&str>;
    /// Whether it stands for what it stood for at first.
    fn is_the_same(&self) -> bool {
        true
    }
}

/// A claim that a worker holds, and gives back.
pub(crate) trait Grip: Claim + Sized + 'static {
    /// Works for so long, unless it is lost before.
    fn work(&self, millis: u64) -> impl Future<Output = Result<(), Lost>> + Send;
    fn check(&self) -> impl Future<Output = Result<(), CheckError>> + Send;
    fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static;
}

/// A type that is a guard, or has one inside.
macro_rules! grip {
    ($grip:ty, $guard:ty, $release:ident) => {
        impl Claim for $grip {
            fn token(&self) -> FencingToken {
                <$guard>::token(self)
            }

            fn status(&self) -> Status {
                <$guard>::status(self)
            }

            fn path(&self) -> Option<&str> {
                Some(<$guard>::path(self))
            }
        }

        impl Grip for $grip {
            fn work(&self, millis: u64) -> impl Future<Output = Result<(), Lost>> + Send {
                <$guard>::scope(self, pass(millis))
            }

            fn check(&self) -> impl Future<Output = Result<(), CheckError>> + Send {
                <$guard>::check(self)
            }

            fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + 'static {
                <$grip>::$release(self)
            }
        }
    };
}

grip!(Guard, Guard, release);
grip!(ReadGuard, Guard, release);
grip!(WriteGuard, Guard, release);
grip!(CohortGuard, Guard, release);
grip!(Leadership, Guard, resign);
grip!(SimpleGuard, SimpleGuard, release);

/// One of several that were granted together.
pub(crate) struct Part {
    pub(crate) all: Arc<Guards>,
    pub(crate) index: usize,
}

impl Part {
    fn guard(&self) -> &Guard {
        self.all.iter().nth(self.index).expect("there are as many parts as guards")
    }
}

impl Claim for Part {
    fn token(&self) -> FencingToken {
        self.guard().token()
    }

    fn status(&self) -> Status {
        self.guard().status()
    }

    fn path(&self) -> Option<&str> {
        Some(self.guard().path())
    }
}

/// The lead that a latch had once.
pub(crate) struct Latched {
    pub(crate) latch: Arc<LeaderLatch>,
    pub(crate) token: FencingToken,
}

impl Claim for Latched {
    fn token(&self) -> FencingToken {
        self.token
    }

    fn status(&self) -> Status {
        match self.is_the_same() {
            true => Status::Suspect { lease_left: Duration::ZERO },
            false => Status::Lost(Lost::NodeDeleted),
        }
    }

    fn path(&self) -> Option<&str> {
        None
    }

    fn is_the_same(&self) -> bool {
        self.latch.token() == Some(self.token)
    }
}
