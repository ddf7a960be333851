//! Changes that watches tell of.

use zk_client::{EventType, Rejection, Watch};
use zk_proto::path::parent;

use super::{Errands, Over, View, model::Change};

/// What has to come of a watch.
struct Due {
    watch: Watch,
    path: String,
    kind: EventType,
}

impl Errands {
    /// A change of a node that is watched, as the parent is: each tells of it before the change is answered, with the
    /// path of the client that watches.
    pub(super) async fn change_watched(&mut self) -> Result<(), Over> {
        let mut change = self.any_change();
        if let Change::Create { above, list, .. } = &mut change {
            // What is not there yet has no children to be watched.
            (*above, *list) = (None, 0);
        }
        let Some((next, Ok(path))) = self.after(&change) else { return Ok(()) };
        let kind = match &change {
            Change::Create { .. } => EventType::NODE_CREATED,
            Change::Set { .. } => EventType::NODE_DATA_CHANGED,
            Change::Delete { .. } => EventType::NODE_DELETED,
            Change::Check { .. } => return Ok(()),
        };
        let view = self.view();
        let was_armed = std::mem::replace(&mut self.is_armed, true);
        let Some(mut dues) = self.arm(&view, &path, kind).await? else { return Ok(()) };
        let writer = self.view();
        let what = format!("{change:?}, watched");
        let request = writer.client.multi();
        let absolute = writer.target(&change);
        let done = match &change {
            Change::Create { data, mode, .. } => request.create(&absolute, data, *mode),
            Change::Set { data, .. } => request.set(&absolute, data),
            Change::Delete { .. } | Change::Check { .. } => request.delete(&absolute),
        };
        let done = match done.await {
            // A server without a quorum may have been asked.
            Ok(Err(told)) if told.rejection == Rejection::ReadOnly => return Ok(()),
            Ok(Err(error)) => {
                self.surprised(format_args!("{what} is told {error:?}"));
                return Ok(());
            }
            Ok(Ok(_)) => Ok(()),
            Err(error) => Err(error),
        };
        if self.settle(what, &Ok(()), Some(next), done)?.is_none() {
            return Ok(());
        }
        // All of them fire.
        self.is_armed = was_armed;
        for due in &mut dues {
            self.worker.ctx.count("own changes watched");
            match due.watch.try_event() {
                // The session is over.
                Some(Err(_)) => {}
                Some(Ok(event)) if event.kind == due.kind && event.path == due.path => {}
                told => self.wrong(
                    "W1",
                    format_args!(
                        "{change:?}: a watch of {} for {:?} tells {told:?}",
                        due.path, due.kind
                    ),
                ),
            }
        }
        Ok(())
    }

    /// Arms a watch on a node, and if it is to come or go, on its parent.
    async fn arm(
        &self,
        view: &View,
        path: &str,
        kind: EventType,
    ) -> Result<Option<Vec<Due>>, Over> {
        let own = view.path(path);
        let exists = view.client.exists(&own).watch().await;
        let Some(Ok((_, watch))) = self.told(exists)? else { return Ok(None) };
        let mut dues = vec![Due { watch, path: own, kind }];
        if kind != EventType::NODE_DATA_CHANGED {
            let above = view.path(parent(path).unwrap_or("/"));
            let children = view.client.children(&above).watch().await;
            let Some(Ok((_, watch))) = self.told(children)? else { return Ok(None) };
            dues.push(Due { watch, path: above, kind: EventType::NODE_CHILDREN_CHANGED });
        }
        Ok(Some(dues))
    }
}
