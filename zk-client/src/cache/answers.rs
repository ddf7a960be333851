//! What answers say of the nodes.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use zk_proto::{Stat, path};

use super::{
    contents::subtree,
    copy_state::Stop,
    costly::Part,
    flight::{CHILDREN_TOGETHER_MAX, Dirty, Reading, Results},
    source::{Reads, Source},
    work::{Work, still_following},
};
use crate::{
    error::{ReadError, Rejection},
    request::ReadResult,
};

/// What was read of a node; `None` if there is none.
pub(super) type NodeAnswer = Result<Option<(Bytes, Stat)>, ReadError>;

impl Work<'_> {
    /// Awaits reads, and takes what they say into the copy.
    pub(super) async fn finish(
        &mut self,
        source: &mut Source,
        reading: Reading,
    ) -> Result<(), Stop> {
        match reading {
            Reading::Alone { path, wants, reads, .. } if source.is_of_singles() => {
                self.flight.end(&path);
                self.finish_watched(source, path, wants, reads).await
            }
            Reading::Alone { path, dirty, reads, .. } => {
                self.flight.end(&path);
                self.finish_alone(source, path, dirty, reads).await
            }
            Reading::Together { nodes, results } => {
                nodes.iter().for_each(|(path, _)| self.flight.end(path));
                match results.await {
                    Ok(results) => self.finish_together(source, nodes, results),
                    Err(error) => {
                        still_following(error)?;
                        self.flight.refuse_together();
                        nodes.into_iter().for_each(|(path, dirty)| self.again(path, dirty));
                        Ok(())
                    }
                }
            }
        }
    }

    /// Several reads, each of which has succeeded or failed on its own.
    fn finish_together(
        &mut self,
        source: &mut Source,
        nodes: Vec<(Arc<str>, Dirty)>,
        results: Results,
    ) -> Result<(), Stop> {
        let longest = results.iter().map(len).max();
        self.flight.answered(results.len(), longest.unwrap_or_default());
        for ((path, dirty), result) in nodes.into_iter().zip(results) {
            match there(result.map_err(ReadError::Rejected)) {
                Ok(Some(ReadResult::Data(data, stat))) => {
                    self.has_read(source, path, dirty, Ok(Some((data, stat))))?;
                }
                Ok(Some(ReadResult::Children(names))) => {
                    self.listed(source, &path, names.iter().map(String::as_str));
                }
                Ok(None) => self.gone(source, &path),
                Err(error) if dirty.node => self.has_read(source, path, dirty, Err(error))?,
                Err(error) => self.not_read(path, Part::Children, error)?,
            }
        }
        Ok(())
    }

    /// One read of a node, without a watch.
    async fn finish_alone(
        &mut self,
        source: &mut Source,
        path: Arc<str>,
        dirty: Dirty,
        reads: Reads,
    ) -> Result<(), Stop> {
        let Reads { existence, data, children } = reads;
        if let Some(existence) = existence {
            let answer = existence.await.map(|stat| stat.map(|stat| (Bytes::new(), stat)));
            self.has_read(source, path, dirty, answer)
        } else if let Some(data) = data {
            let answer = data.await;
            if let Ok((data, _)) = &answer {
                self.flight.answered(1, data.len());
            }
            self.has_read(source, path, dirty, there(answer))
        } else if let Some(children) = children {
            match there(children.await) {
                Ok(Some((names, _))) => self.listed(source, &path, names.iter()),
                Ok(None) => self.gone(source, &path),
                Err(error) => self.not_read(path, Part::Children, error)?,
            }
            Ok(())
        } else {
            Ok(())
        }
    }

    /// A node has been read, without a watch. Its metadata tell whether there are children to be listed: of those that
    /// come later, the watch of the whole subtree tells one by one.
    fn has_read(
        &mut self,
        source: &mut Source,
        path: Arc<str>,
        dirty: Dirty,
        answer: NodeAnswer,
    ) -> Result<(), Stop> {
        let children = match &answer {
            Ok(Some((_, stat))) => usize::try_from(stat.num_children).unwrap_or_default(),
            _ => 0,
        };
        // It was not readable until now, and no events of its children were received.
        let lists = dirty.children || self.refused.contains_key(&path);
        let is_there = self.found(source, &path, dirty, answer)?;
        if is_there && lists && self.goes_below(&path) {
            if children == 0 {
                self.listed(source, &path, [""; 0].into_iter());
            } else {
                let alone = children > CHILDREN_TOGETHER_MAX;
                self.again(path, Dirty { node: false, children: true, alone });
            }
        }
        Ok(())
    }

    /// Returns whether it is in the copy.
    pub(super) fn found(
        &mut self,
        source: &mut Source,
        path: &Arc<str>,
        dirty: Dirty,
        node: NodeAnswer,
    ) -> Result<bool, Stop> {
        match node {
            Ok(Some((data, stat))) => {
                self.answered = true;
                self.refused.remove(path);
                let is_root = *path == self.of.root;
                if !is_root && !path::parent(path).is_some_and(|it| self.of.contents.has(it)) {
                    // Its parent was created only after that read, of which there will be an event, or may not be
                    // read; or is to be read once more, and this behind it.
                    if path::ancestors(path).skip(1).any(|above| self.is_to_be_read(above)) {
                        self.again(path.clone(), dirty);
                    }
                    return Ok(false);
                }
                if let Some(unseen) = &mut self.loading {
                    unseen.remove(path);
                }
                let data = if self.of.with_data { &*data } else { &[] };
                if self.replaces {
                    self.of.contents.replace(path, data, &stat);
                } else {
                    self.of.contents.put(path, data, &stat);
                }
                return Ok(true);
            }
            Ok(None) => self.gone(source, path),
            Err(error) => {
                self.not_read(path.clone(), Part::Node, error)?;
                self.of.contents.remove(path);
            }
        }
        Ok(false)
    }

    pub(super) fn listed<N: AsRef<str>>(
        &mut self,
        source: &mut Source,
        path: &Arc<str>,
        names: impl Iterator<Item = N>,
    ) {
        self.answered = true;
        let now = names.map(|name| path::join(path, name.as_ref()).into());
        if self.loading.is_some() {
            // What is not there any more is removed in the end.
            now.for_each(|path| self.again(path, Dirty::NEW));
            return;
        }
        let now: BTreeSet<Arc<str>> = now.collect();
        let before: BTreeSet<_> = self.of.contents.paths_of_children(path).into_iter().collect();
        for path in before.difference(&now) {
            self.gone(source, path);
        }
        self.refused
            .retain(|refused, _| path::parent(refused) != Some(&**path) || now.contains(refused));
        for path in now.difference(&before) {
            self.again(path.clone(), Dirty::NEW);
        }
    }

    /// A server refuses to have a part of a node read.
    pub(super) fn not_read(
        &mut self,
        path: Arc<str>,
        part: Part,
        error: ReadError,
    ) -> Result<(), Stop> {
        let error = still_following(error)?;
        self.costly.failed(&path, part, &error);
        self.refused.insert(path, error);
        Ok(())
    }

    pub(super) fn gone(&mut self, source: &mut Source, path: &Arc<str>) {
        self.answered = true;
        for path in self.of.contents.paths_from(path).iter().chain([path]) {
            // The watch on the copy's own root waits for the node to be created again.
            if *path != self.of.root {
                source.forget(path);
            }
        }
        // What is refused is not in the copy, and no event may tell that it has gone.
        let refused: Vec<_> = subtree(&self.refused, path).map(|(path, _)| path.clone()).collect();
        for path in refused {
            self.refused.remove(&path);
        }
        self.of.contents.remove(path);
    }

    fn is_to_be_read(&self, path: &str) -> bool {
        self.dirty.contains_key(path) || self.flight.reads(path)
    }

    /// Something is to be read, besides what already is; unless that has cost too many connections.
    pub(super) fn again(&mut self, path: Arc<str>, what: Dirty) {
        let part = if what.node { Part::Node } else { Part::Children };
        if let Some(error) = self.costly.spared(&path, part) {
            self.refused.insert(path, error.clone());
            return;
        }
        let dirty = self.dirty.entry(path).or_default();
        dirty.node |= what.node;
        dirty.children |= what.children;
        dirty.alone |= what.alone;
    }
}

/// Bytes that a result is long, about.
fn len(result: &Result<ReadResult, Rejection>) -> usize {
    match result {
        Ok(ReadResult::Data(data, _)) => data.len(),
        Ok(ReadResult::Children(names)) => names.iter().map(String::len).sum(),
        Err(_) => 0,
    }
}

/// Treats a missing node as an answer.
pub(super) fn there<T>(answer: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
        Err(error) => Err(error),
    }
}
