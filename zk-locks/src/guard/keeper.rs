//! The task that watches a node that stands for a lock.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::watch, time::timeout};
use zk_client::{Cause, ReadError, Rejection, Watch};

use super::node::{HeldNode, Known};
use crate::{contender::REVOKE, error::Lost};

/// Pause before a failed read is repeated; it grows up to `PAUSE_MAX`.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl HeldNode {
    /// Spawns a task that watches the node, unless there is one.
    pub(super) fn keep(self: &Arc<Self>) {
        if !self.has_keeper.swap(true, Ordering::Relaxed) {
            self.client.spawn(keep(self.clone(), self.known.subscribe()));
        }
    }
}

/// Watches a node until its lock is lost for a known reason, or until it is put away.
async fn keep(node: Arc<HeldNode>, mut known: watch::Receiver<Known>) {
    let lost = async {
        tokio::select! {
            biased;
            _ = node.out_of_touch() => {}
            () = watch(&node) => {}
        }
        node.reason().await;
    };
    tokio::select! {
        biased;
        _ = known.wait_for(|known| known.is_put_away) => {}
        () = lost => {}
    }
}

/// The outcome of a read of the node.
enum Seen {
    /// It is watched. A request for the lock back was seen too.
    All(Watch),
    /// It is watched, but its data was not read. To be read again after a while if that could help.
    Existence { watch: Watch, again: bool },
    /// The node or the session is gone.
    Lost(Lost),
    /// The read failed.
    Nothing,
}

/// Keeps a watch on the node until that is gone. No error ends this: a failed read is repeated.
async fn watch(node: &HeldNode) {
    let (mut pause, mut again) = (PAUSE, false);
    loop {
        if !node.is_watched() || again {
            let seen = look(node).await;
            // What was not read yet stays to be read if this read has failed too.
            again = matches!(seen, Seen::Nothing | Seen::Existence { again: true, .. });
            match seen {
                Seen::Lost(lost) => {
                    node.lose(lost);
                    return;
                }
                Seen::All(watch) | Seen::Existence { watch, .. } => node.watched_by(Some(watch)),
                Seen::Nothing => {
                    tokio::time::sleep(pause).await;
                    pause = PAUSE_MAX.min(pause * 2);
                    continue;
                }
            }
        }
        let wait = if again { pause } else { Duration::from_secs(1 << 30) };
        let Ok(event) = timeout(wait, node.event()).await else {
            pause = PAUSE_MAX.min(pause * 2);
            continue;
        };
        (pause, again) = (PAUSE, false);
        event.into_iter().for_each(|event| node.hear(event));
        if node.loss().is_some() {
            return;
        }
    }
}

async fn look(node: &HeldNode) -> Seen {
    let error = match node.client.get(&node.path).watch().await {
        Ok(((_, stat), _)) if node.is_another(&stat) => return Seen::Lost(Lost::NodeDeleted),
        Ok(((data, _), watch)) => {
            if data == REVOKE {
                node.revoke();
            }
            return Seen::All(watch);
        }
        Err(error) => error,
    };
    // Neither permissions nor lengths change often, and a reply that is too long costs a connection.
    let again = !matches!(
        error,
        ReadError::Rejected(_) | ReadError::Unavailable(Cause::ReplyTooLarge { .. })
    );
    if let Some(lost) = loss_of(&error) {
        return Seen::Lost(lost);
    }
    // `exists` works even if the data cannot be read, for lack of permission or for its length.
    match node.client.exists(&node.path).watch().await {
        Ok((Some(stat), watch)) if !node.is_another(&stat) => Seen::Existence { watch, again },
        Ok(_) => Seen::Lost(Lost::NodeDeleted),
        Err(error) => loss_of(&error).map_or(Seen::Nothing, Seen::Lost),
    }
}

const fn loss_of(error: &ReadError) -> Option<Lost> {
    match error {
        ReadError::Rejected(Rejection::NoNode) => Some(Lost::NodeDeleted),
        ReadError::Unavailable(Cause::SessionEnded(end)) => Some(Lost::SessionEnded(*end)),
        _ => None,
    }
}
