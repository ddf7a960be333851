//! What is not as it is by default: options of the session and of the recipes, other releases.

use zk_client::{Client, ConnectOptions};
use zk_locks::{Builder, ForeignNodes, Layout};
use zk_testkit::{real::Release, server::Config};

use crate::stages::play::BRIEF;

/// A difference. A page is played with one of them, or with none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// None.
    Default,
    /// Another release of the server.
    Release(Release),
    /// Three members that lag behind their leader, and a session with one of them.
    Follower,
    /// All paths are relative to another one, as the connection string says.
    Chroot,
    /// An option of the session.
    Session(fn(ConnectOptions) -> ConnectOptions),
    /// What is made of the client before anything is built on it.
    Client(fn(&Client) -> Client),
    /// Names of nodes, for all.
    Layout(Layout),
    /// An option of each recipe.
    Recipe(Recipe),
}

/// An option of each recipe.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recipe {
    ForeignNodes(ForeignNodes),
    Herd,
    LookAhead,
    MaxHold,
    MaxWaiters,
    NoRecheck,
    ReleaseAfter,
    RequirePath,
    RequireParent,
    RotateAt,
}

/// Makes a test of each.
macro_rules! settings {
    ($check:ident; $($detail:ident { $($name:ident: $setting:expr;)* })*) => {
        $($(#[test]
        fn $name() {
            $check(stringify!($name), $setting, Detail::$detail);
        })*)*

        /// The names of all.
        const SETTINGS: &[&str] = &[$($(stringify!($name)),*),*];
    };
}

pub(crate) use settings;

impl Setting {
    pub(crate) fn configure(self, config: &mut Config) {
        match self {
            Self::Release(release) => config.release = release,
            Self::Follower => {
                config.members = 3;
                config.lag = BRIEF / 5;
            }
            _ => {}
        }
    }

    /// The path that all others are relative to.
    pub(crate) const fn chroot(self) -> &'static str {
        if matches!(self, Self::Chroot) { "/root" } else { "" }
    }

    pub(crate) fn session(self, options: ConnectOptions) -> ConnectOptions {
        if let Self::Session(with) = self { with(options) } else { options }
    }

    pub(crate) fn client(self, client: Client) -> Client {
        if let Self::Client(with) = self { with(&client) } else { client }
    }

    /// What all who share a path have to agree on.
    pub(crate) fn shared<R>(self, builder: Builder<R>) -> Builder<R> {
        if let Self::Layout(layout) = self { builder.layout(layout) } else { builder }
    }

    pub(crate) fn recipe<R>(self, builder: Builder<R>) -> Builder<R> {
        let Self::Recipe(option) = self else { return self.shared(builder) };
        match option {
            Recipe::ForeignNodes(how) => builder.foreign_nodes(how),
            Recipe::Herd => builder.herd(),
            Recipe::LookAhead => builder.look_ahead(true),
            Recipe::MaxHold => builder.max_hold(BRIEF / 2),
            Recipe::MaxWaiters => builder.max_waiters(1),
            Recipe::NoRecheck => builder.recheck(None),
            Recipe::ReleaseAfter => builder.release_after(22 * BRIEF),
            Recipe::RequirePath => builder.require_path(),
            Recipe::RequireParent => builder.require_parent(),
            Recipe::RotateAt => builder.rotate_at(2),
        }
    }
}
