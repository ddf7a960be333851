//! One combination: what is played, how it is asked for, and what goes wrong.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use zk_client::ConnectOptions;
use zk_testkit::real::Release;
use zk_tests::{paused, share::hash};

use crate::combinations::{
    scene::Scene,
    trouble::{Met, Troubles},
};

/// How the subject asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Default,
    RequestTimeout,
    FailFast,
    Both,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::Default, Self::RequestTimeout, Self::FailFast, Self::Both];
}

/// What else may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// The subject's lease counts by what the leader has confirmed.
    pub(crate) margin: bool,
    /// All paths are relative to a node.
    pub(crate) chroot: bool,
    /// The path is there before it is used.
    pub(crate) prepared: bool,
    /// The subject has room for one request at a time.
    pub(crate) narrow: bool,
}

impl Variant {
    pub(crate) const COUNT: u64 = 16;

    pub(crate) fn nth(number: u64) -> Self {
        let bit = |bit: u64| number >> bit & 1 == 1;
        Self { margin: bit(0), chroot: bit(1), prepared: bit(2), narrow: bit(3) }
    }

    pub(crate) fn apply(self, options: ConnectOptions) -> ConnectOptions {
        let options =
            if self.margin { options.lease_margin(Duration::from_secs(2)) } else { options };
        if self.narrow { options.requests_max(1) } else { options }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { margin, chroot, prepared, narrow } = *self;
        for (is_so, name) in
            [(margin, "margin"), (chroot, "chroot"), (prepared, "prepared"), (narrow, "narrow")]
        {
            if is_so {
                write!(f, "+{name}")?;
            }
        }
        Ok(())
    }
}

/// What comes of a play: which promise was broken, if any.
pub(crate) type Act<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// Something that is done with a recipe, and what must come of it.
pub(crate) struct Play {
    pub(crate) recipe: &'static str,
    pub(crate) name: &'static str,
    pub(crate) act: Box<dyn for<'a> Fn(&'a Scene) -> Act<'a> + Send + Sync>,
}

/// The same as a line of a list: of which recipe, what is done with it, and how that goes.
pub(crate) type Named = (&'static str, &'static str, for<'a> fn(&'a Scene) -> Act<'a>);

impl Play {
    pub(crate) fn named(&(recipe, name, act): &Named) -> Self {
        Self { recipe, name, act: Box::new(act) }
    }
}

/// One combination.
#[derive(Clone)]
pub(crate) struct Cell<'a> {
    pub(crate) play: &'a Play,
    pub(crate) way: Way,
    pub(crate) variant: Variant,
    pub(crate) release: Release,
    pub(crate) troubles: Troubles,
}

/// What has come of a cell.
pub(crate) struct Outcome {
    pub(crate) met: Met,
    pub(crate) promises: Result<(), String>,
}

impl Cell<'_> {
    /// Where chance comes from: the name, without the troubles.
    pub(crate) fn seed(&self) -> u64 {
        let Self { play, way, variant, release, .. } = self;
        hash(&format!("{} {} {way:?} {variant} {release}", play.recipe, play.name))
    }

    /// Plays it, on a runtime of its own whose clock moves on when all tasks sleep.
    pub(crate) fn run(&self) -> Outcome {
        paused::block_on(async {
            let scene = Scene::new(self).await;
            let promises = (self.play.act)(&scene).await;
            Outcome { met: scene.met(), promises }
        })
    }
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { play, way, variant, release, troubles } = self;
        write!(f, "{}/{}/{way:?}{variant}@{release}", play.recipe, play.name)?;
        if let Some((point, trouble)) = troubles.first {
            write!(f, "/{point}/{trouble:?}")?;
        }
        if let Some((after, trouble)) = troubles.second {
            write!(f, "/+{after}/{trouble:?}")?;
        }
        Ok(())
    }
}
