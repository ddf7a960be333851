//! Creates missing parents.

use std::borrow::Cow;

use zk_proto::{
    AclList,
    path::{ancestors, parent},
    session::Patience,
};

use super::{
    mode::CreateMode,
    wish::{Created, Wish},
};
use crate::{
    carry::attempt::Concluded,
    chroot::Chroot,
    error::{Cause, MultiError, Rejection, WriteError},
    request::{call_options::CallOptions, client::Client, pending::Pending},
};

/// How often nodes are created again when another client or the server deletes them in between, such as empty
/// containers.
const ROUNDS_MAX: usize = 8;

/// The parents that nodes need.
#[derive(Debug, Default)]
pub(crate) struct Above {
    /// The nodes, without duplicates, each after its parent, with absolute paths.
    levels: Vec<(String, CreateMode, AclList)>,
    /// The options of their requests.
    options: CallOptions,
}

/// The outcome of a create.
pub(crate) trait Outcome {
    /// Whether it failed for want of a parent.
    fn is_missing(&self) -> bool;
    /// The same outcome with this error as the reason.
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
        // Checks and deletes come after the creates.
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
    /// The parents of these nodes; `None` if none are to be created. Without a valid path there will be no node.
    pub(crate) fn of<'a>(wishes: impl IntoIterator<Item = &'a Wish<'a>>) -> Option<Self> {
        let mut above = Self::default();
        for wish in wishes {
            let Wish { client, options, path, mode, floor, known_by, .. } = wish;
            let Some(wanted) = wish.above else { continue };
            let chroot = &client.handle.chroot;
            let Ok(path) = chroot.resolve(path, mode.naming()) else { continue };
            let floor = floor.map_or(Cow::Borrowed("/"), |floor| chroot.absolute(floor));
            let is_there = |path: &&str| ancestors(&floor).any(|there| there == *path);
            let mut levels: Vec<&str> = parent(&path).into_iter().flat_map(ancestors).collect();
            levels.retain(|path| *path != "/" && !is_there(path));
            for path in levels.into_iter().rev() {
                // Nodes of one transaction often have parents in common.
                if above.levels.iter().all(|(known, ..)| known != path) {
                    above.levels.push((path.to_owned(), wanted, wish.acl().clone()));
                }
            }
            above.options = match known_by {
                None => *options,
                // They have to be as patient as the protected node itself.
                Some(_) => CallOptions { patience: Patience::Throttling, ..*options },
            };
        }
        (!above.levels.is_empty()).then_some(above)
    }

    /// Continues from the outcome of a first attempt: while it fails for want of a parent, requests all parents and the
    /// node again, in one write. So anything submitted with an attempt comes after it.
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

    /// None of them is sent again if its reply is lost: the node is, and its reply shows whether they are needed. Nor do
    /// they ask for metadata, which would cost the connection of a server that cannot return any.
    fn submit(&self, client: &Client) -> Vec<Pending<Created, WriteError>> {
        let mut root = client.clone();
        root.handle.change(|view| view.chroot = Chroot::default());
        let create = |(path, mode, acl): &(String, CreateMode, AclList)| {
            let lacks = *mode == CreateMode::Container
                && client.handle.shared.known().capabilities.lacks_containers();
            let mode = if lacks { CreateMode::Persistent } else { *mode };
            let acl = Some(Box::new(acl.clone()));
            let wish = Wish { options: self.options, mode, acl, ..Wish::new(&root, path, b"") };
            wish.request_parent()
        };
        self.levels.iter().map(create).collect()
    }
}

/// Returns the error if the parent was refused for its content, or for want of time or room.
fn refused(level: Result<Created, WriteError>) -> Option<WriteError> {
    use Rejection::{NoNode, NodeExists, Unimplemented};
    let error = level.err()?;
    match error {
        // The parent exists, or the next attempt decides: it asks for another kind of node then.
        WriteError::Rejected(NodeExists | NoNode | Unimplemented) => None,
        WriteError::Rejected(_) | WriteError::NotApplied(Cause::Throttled | Cause::QueueFull) => {
            Some(error)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_without_room_are_the_reason() {
        for cause in [Cause::QueueFull, Cause::Throttled] {
            let error = WriteError::NotApplied(cause);
            assert_eq!(refused(Err(error.clone())), Some(error));
        }
        assert_eq!(refused(Err(WriteError::NotApplied(Cause::NotConnected))), None);
    }
}
