//! Reads of single nodes that arm watches, on servers before 3.6.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    answers::there,
    copy_state::Stop,
    costly::Part,
    flight::Dirty,
    source::{Reads, Source, Wants},
    work::Work,
};

impl Work<'_> {
    /// Awaits the reads of a node.
    pub(super) async fn finish_watched(
        &mut self,
        source: &mut Source,
        path: Arc<str>,
        wants: Wants,
        reads: Reads,
    ) -> Result<(), Stop> {
        let Reads { existence, data, children } = reads;
        let was_refused = self.refused.contains_key(&path);
        let mut node = None;
        if let Some(existence) = existence {
            let answer = existence.await;
            source.armed(&path, answer.is_ok() && wants.watch_node, false);
            node = Some(answer.map(|stat| stat.map(|stat| (Bytes::new(), stat))));
        }
        if let Some(data) = data {
            let answer = data.await;
            // Either of the two watches.
            source.armed(&path, answer.is_ok() && wants.watch_node && !wants.existence, false);
            node = Some(match (node, there(answer)) {
                (None, answer) => answer,
                // The watched read is authoritative: the other may be older, if a busy server turned away the first
                // one.
                (Some(Ok(Some((_, known)))), Ok(data)) => {
                    if data.as_ref().is_none_or(|(_, stat)| stat.mzxid < known.mzxid) {
                        self.dirty.entry(path.clone()).or_default().node = true;
                    }
                    Ok(data)
                }
                (Some(Ok(Some(_))), error) => error,
                (Some(missing_or_error), _) => missing_or_error,
            });
        }
        let is_there = match node {
            // Whether it is there is asked below, and until then it stays in the copy.
            Some(Err(error)) if !self.of.with_data && !wants.existence => {
                self.not_read(path.clone(), Part::Node, error)?;
                false
            }
            Some(node) => self.found(source, &path, Dirty::NEW, node)?,
            None => false,
        };
        if wants.data && !wants.existence && self.refused.contains_key(&path) {
            // Nothing would report a change to it: once more, with a watch on its existence.
            self.again(path.clone(), Dirty { node: true, children: false, alone: false });
        }
        if let Some(children) = children {
            let answer = children.await;
            source.armed(&path, false, answer.is_ok() && wants.watch_children);
            match there(answer) {
                // If a busy server turned one away, either may be the older.
                Ok(None) if is_there => self.again(path, Dirty::NEW),
                Ok(None) => self.gone(source, &path),
                Ok(Some((names, _))) => self.listed(source, &path, names.iter()),
                Err(error) => self.not_read(path, Part::Children, error)?,
            }
        } else if is_there && self.goes_below(&path) && (was_refused || source.lacks(&path).1) {
            // The node is back, and no events of its children were received: another node has replaced it, and the old
            // watches are gone, or it was not readable until now.
            self.dirty.entry(path).or_default().children = true;
        }
        Ok(())
    }
}
