//! Creating what is missing above nodes.

use std::borrow::Cow;

use zk_proto::{
    AclList,
    path::{ancestors, parent},
    session::OnLoss,
};

use crate::{
    attempt::{Concluded, KnownBy},
    call::{Admission, Pending},
    call_options::CallOptions,
    chroot::Chroot,
    client::Client,
    create::{Create, Created, Wish, read_created},
    create_mode::CreateMode,
    error::{Rejection, WriteError},
    transaction::MultiError,
};

/// How often nodes are created again that somebody deletes under our hands, such as empty containers.
const ROUNDS_MAX: usize = 8;

/// What there has to be above nodes.
#[derive(Debug, Default)]
pub(crate) struct Above {
    /// The nodes, each behind the one above it, with their paths from the servers' root.
    levels: Vec<(String, CreateMode, AclList)>,
    /// How they are asked for.
    options: CallOptions,
}

/// What comes of a create, as far as it matters here.
pub(crate) trait Outcome {
    /// Whether it has failed for want of a node above.
    fn is_missing(&self) -> bool;
    /// The same with the reason for that.
    fn because(self, error: WriteError) -> Self;
}

impl<T> Outcome for Result<T, WriteError> {
    fn is_missing(&self) -> bool {
        matches!(self, Err(WriteError::Rejected(Rejection::NoNode)))
    }
    fn because(self, error: WriteError) -> Self {
        Err(error)
    }
}

impl Outcome for Concluded {
    fn is_missing(&self) -> bool {
        // Checks and deletes are behind the creates.
        matches!(self.nodes, Ok(Err(MultiError { index, rejection: Rejection::NoNode }))
            if index < self.creates)
    }
    fn because(mut self, error: WriteError) -> Self {
        self.nodes = Err(error);
        self
    }
}

impl<B> Outcome for (Concluded, B) {
    fn is_missing(&self) -> bool {
        self.0.is_missing()
    }
    fn because(self, error: WriteError) -> Self {
        (self.0.because(error), self.1)
    }
}

impl Above {
    /// What there has to be above these nodes; `None` if nothing is to be done about it. With a path that is none
    /// there will be no node.
    pub(crate) fn of<'a>(wishes: impl IntoIterator<Item = &'a Wish<'a>>) -> Option<Self> {
        let mut above = Self::default();
        for Wish { client, options, path, mode, acl, above: wanted, floor, .. } in wishes {
            let chroot = &client.handle.chroot;
            let path = chroot.resolve(path, mode.naming());
            let (Some(wanted), Ok(path)) = (*wanted, path) else { continue };
            let floor = floor.map_or(Cow::Borrowed("/"), |floor| chroot.absolute(floor));
            let is_there = |path: &&str| ancestors(&floor).any(|there| there == *path);
            let mut levels: Vec<&str> = parent(&path).into_iter().flat_map(ancestors).collect();
            levels.retain(|path| *path != "/" && !is_there(path));
            let levels = levels.into_iter().rev();
            let level = |path: &str| (path.to_owned(), wanted, acl.clone());
            above.levels.extend(levels.map(level));
            above.options = *options;
        }
        (!above.levels.is_empty()).then_some(above)
    }

    /// Goes on from the outcome of a first try: as long as that is for want of a node above, asks for all of them and
    /// for the node once more, in one write. So whatever is submitted with a try is behind it.
    pub(crate) async fn climb<F: Future<Output: Outcome>>(
        &self,
        client: &Client,
        mut outcome: F::Output,
        mut again: impl FnMut(&Client, F::Output) -> F,
    ) -> F::Output {
        for _ in 0..ROUNDS_MAX {
            if self.levels.is_empty() || !outcome.is_missing() {
                break;
            }
            let cork = client.cork();
            let above = self.submit(&cork);
            let next = again(&cork, outcome);
            drop(cork);
            let mut refusal = None;
            for level in above {
                refusal = refusal.or(refused(level.await));
            }
            outcome = next.await;
            if let Some(why) = refusal.filter(|_| outcome.is_missing()) {
                return outcome.because(why);
            }
        }
        outcome
    }

    /// None of them is sent again if its reply is lost: the node is, and tells whether they are needed.
    fn submit(&self, client: &Client) -> Vec<Pending<Created, WriteError>> {
        let mut root = client.clone();
        root.handle.chroot = Chroot::default();
        let create = |(path, mode, acl): &(String, CreateMode, AclList)| {
            let lacks = *mode == CreateMode::Container && client.handle.level.lacks_containers();
            let mode = if lacks { CreateMode::Persistent } else { *mode };
            let Create { wish, .. } = Create::new(&root, path, b"").mode(mode).acl(acl);
            let wish = Wish { options: self.options, ..wish };
            wish.request(OnLoss::Report, Admission::Waiting, read_created)
        };
        self.levels.iter().map(create).collect()
    }
}

/// Why there is no node, if it was refused for what it is.
fn refused(level: Result<Created, WriteError>) -> Option<WriteError> {
    use Rejection::{NoNode, NodeExists, Unimplemented};
    let error = level.err()?;
    match error {
        // There is one, or the next try will tell: another kind of node is asked for then.
        WriteError::Rejected(NodeExists | NoNode | Unimplemented) => None,
        WriteError::Rejected(_) => Some(error),
        _ => None,
    }
}

/// What is to be created, on its own feet.
pub(crate) struct OwnedWish {
    pub(crate) client: Client,
    options: CallOptions,
    path: String,
    data: Vec<u8>,
    mode: CreateMode,
    acl: AclList,
    known_by: KnownBy,
}

impl OwnedWish {
    pub(crate) fn of(wish: &Wish<'_>) -> Self {
        let Wish { client, options, path, data, mode, ref acl, known_by, .. } = *wish;
        let (path, data, acl) = (path.to_owned(), data.to_vec(), acl.clone());
        let client = Self::uncorked(client);
        Self { client, options, path, data, mode, acl, known_by }
    }

    pub(crate) fn of_create<T>(create: &Create<'_, T>) -> Self {
        Self::of(&create.wish)
    }

    /// What goes on later is not to wait for a cork.
    pub(crate) fn uncorked(client: &Client) -> Client {
        let mut client = client.clone();
        client.handle.held = None;
        client
    }

    /// The same once more.
    pub(crate) fn wish<'a>(&'a self, client: &'a Client) -> Wish<'a> {
        let Self { options, path, data, mode, acl, known_by, .. } = self;
        let (options, mode, known_by) = (*options, *mode, *known_by);
        let (above, floor) = (None, None);
        Wish { client, options, path, data, mode, acl: acl.clone(), above, floor, known_by }
    }
}
