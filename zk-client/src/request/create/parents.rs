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
    /// The nodes, without duplicates, each after its parent.
    levels: Vec<Level>,
    /// Of each create, whether its parent is one of them.
    needs: Vec<bool>,
    /// The options of their requests.
    options: CallOptions,
}

/// A parent.
#[derive(Debug)]
struct Level {
    /// Absolute.
    path: String,
    mode: CreateMode,
    acl: AclList,
    /// Whether what is above it is not to be created.
    is_lowest: bool,
}

/// The outcome of a create.
pub(crate) trait Outcome {
    /// Which of the creates failed for want of a parent.
    fn missing(&self) -> Option<usize>;
    /// The same outcome with this error as the reason.
    fn because(self, error: WriteError) -> Self;
}

impl<T> Outcome for Result<T, WriteError> {
    fn missing(&self) -> Option<usize> {
        matches!(self, Err(WriteError::Rejected(Rejection::NoNode))).then_some(0)
    }
    fn because(self, error: WriteError) -> Self {
        Err(error)
    }
}

impl Outcome for Concluded {
    fn missing(&self) -> Option<usize> {
        match self.nodes {
            // Checks and deletes come after the creates.
            Ok(Err(MultiError { index, rejection: Rejection::NoNode })) if index < self.creates => {
                Some(index)
            }
            _ => None,
        }
    }
    fn because(mut self, error: WriteError) -> Self {
        self.nodes = Err(error);
        self
    }
}

impl<B> Outcome for (Concluded, B) {
    fn missing(&self) -> Option<usize> {
        self.0.missing()
    }
    fn because(self, error: WriteError) -> Self {
        (self.0.because(error), self.1)
    }
}

/// A node requested behind its parents.
pub(crate) struct Round<F> {
    /// Each with whether what is above it is not to be created.
    above: Vec<(Pending<Created, WriteError>, bool)>,
    node: F,
}

impl<F: Future<Output: Outcome>> Round<F> {
    /// Without parents.
    pub(crate) const fn alone(node: F) -> Self {
        Self { above: Vec::new(), node }
    }

    /// Returns the outcome; as an error if there is no use in another round.
    pub(crate) async fn ended(self) -> Result<F::Output, F::Output> {
        let (mut refusal, mut is_vain) = (None, false);
        for (level, is_lowest) in self.above {
            let created = level.await;
            is_vain |= is_lowest && created.missing().is_some();
            refusal = refusal.or_else(|| refused(created));
        }
        let outcome = self.node.await;
        match refusal.filter(|_| outcome.missing().is_some()) {
            Some(why) => Err(outcome.because(why)),
            None if is_vain => Err(outcome),
            None => Ok(outcome),
        }
    }
}

impl Above {
    /// The parents of these nodes; `None` if none are to be created. Without a valid path there will be no node.
    pub(crate) fn of<'a>(
        wishes: impl IntoIterator<Item = &'a Wish<'a>, IntoIter: Clone>,
    ) -> Option<Self> {
        let (wishes, mut above) = (wishes.into_iter(), Self::default());
        wishes.clone().for_each(|wish| above.add(wish));
        if above.levels.is_empty() {
            return None;
        }
        // What one node needs may be above what another does.
        above.levels.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let is_level = |levels: &[Level], path: Option<&str>| {
            path.is_some_and(|path| levels.iter().any(|level| level.path == path))
        };
        for index in 0..above.levels.len() {
            let has_parent = is_level(&above.levels, parent(&above.levels[index].path));
            above.levels[index].is_lowest &= !has_parent;
        }
        above.needs = wishes
            .map(|Wish { client, path, mode, .. }| {
                let path = client.handle.chroot.resolve(path, mode.naming());
                path.is_ok_and(|path| is_level(&above.levels, mode.parent(&path)))
            })
            .collect();
        Some(above)
    }

    fn add(&mut self, wish: &Wish<'_>) {
        let Wish { client, options, path, mode, floor, known_by, .. } = wish;
        let Some(wanted) = wish.above else { return };
        let chroot = &client.handle.chroot;
        let Ok(path) = chroot.resolve(path, mode.naming()) else { return };
        let has_floor = floor.is_some();
        let floor = floor.map_or(Cow::Borrowed("/"), |floor| chroot.absolute(floor));
        let is_there = |path: &&str| ancestors(&floor).any(|there| there == *path);
        let mut levels: Vec<&str> = mode.parent(&path).into_iter().flat_map(ancestors).collect();
        levels.retain(|path| *path != "/" && !is_there(path));
        for (index, path) in levels.into_iter().rev().enumerate() {
            // Nodes of one transaction often have parents in common.
            if self.levels.iter().all(|known| known.path != path) {
                let (path, acl) = (path.to_owned(), wish.acl().clone());
                let is_lowest = has_floor && index == 0;
                self.levels.push(Level { path, mode: wanted, acl, is_lowest });
            }
        }
        self.options = match known_by {
            None => *options,
            // They have to be as patient as the protected node itself.
            Some(_) => CallOptions { patience: Patience::Throttling, ..*options },
        };
    }

    /// Continues from the outcome of a first attempt: while it fails for want of a parent, requests all parents and the
    /// node again. Anything submitted with an attempt comes after it.
    pub(crate) async fn climb<F: Future<Output: Outcome>>(
        &self,
        client: &Client,
        mut outcome: F::Output,
        mut again: impl FnMut(&Client, F::Output) -> F,
    ) -> F::Output {
        for _ in 0..ROUNDS_MAX {
            if !self.lifts(&outcome) {
                break;
            }
            // In one write.
            let cork = client.cork();
            let round = self.begin(&cork, |client| again(client, outcome));
            drop(cork);
            match round.ended().await {
                Ok(next) => outcome = next,
                Err(last) => return last,
            }
        }
        outcome
    }

    /// Whether a create has failed for want of a parent that is to be created.
    fn lifts(&self, outcome: &impl Outcome) -> bool {
        outcome.missing().is_some_and(|index| self.needs.get(index) == Some(&true))
    }

    /// Requests all parents, and the node behind them.
    pub(crate) fn begin<F>(&self, client: &Client, node: impl FnOnce(&Client) -> F) -> Round<F> {
        Round { above: self.submit(client), node: node(client) }
    }

    /// None of them is sent again if its reply is lost: the node is, and its reply shows whether they are needed. Nor do
    /// they ask for metadata, which would cost the connection of a server that cannot return any.
    fn submit(&self, client: &Client) -> Vec<(Pending<Created, WriteError>, bool)> {
        let mut root = client.clone();
        root.handle.change(|view| view.chroot = Chroot::default());
        let create = |Level { path, mode, acl, is_lowest }: &Level| {
            let lacks = *mode == CreateMode::Container
                && client.handle.shared.known().capabilities.lacks_containers();
            let mode = if lacks { CreateMode::Persistent } else { *mode };
            let acl = Some(Box::new(acl.clone()));
            let wish = Wish { options: self.options, mode, acl, ..Wish::new(&root, path, b"") };
            (wish.request_parent(), *is_lowest)
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
