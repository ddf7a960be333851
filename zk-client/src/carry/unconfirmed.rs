//! Deletes that no server has confirmed yet.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::watch;
use zk_proto::ErrorCode;

/// How many deletes are unconfirmed: counted by the driver, read by any task.
#[derive(Debug)]
pub(crate) struct Unconfirmed {
    count: AtomicUsize,
    /// The ones that servers refuse, by absolute path. They are retried nevertheless.
    refused: watch::Sender<BTreeMap<Arc<str>, ErrorCode>>,
}

impl Default for Unconfirmed {
    fn default() -> Self {
        Self { count: AtomicUsize::new(0), refused: watch::Sender::default() }
    }
}

impl Unconfirmed {
    pub(crate) fn begun(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn concluded(&self, path: &str) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.refused.send_if_modified(|refused| refused.remove(path).is_some());
    }

    pub(super) fn refused(&self, path: &Arc<str>, code: ErrorCode) {
        self.refused.send_if_modified(|refused| refused.insert(path.clone(), code) != Some(code));
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many are worth waiting for: those that are not refused.
    pub(crate) fn hopeful(&self) -> usize {
        self.count().saturating_sub(self.refused.borrow().len())
    }

    /// Waits until the delete of the node at the path `absolute` is refused.
    pub(crate) async fn until_refused(&self, absolute: &str) -> ErrorCode {
        let mut refused = self.refused.subscribe();
        loop {
            let code = refused.borrow_and_update().get(absolute).copied();
            if let Some(code) = code {
                return code;
            }
            // The sender lives as long as `self`.
            let _ = refused.changed().await;
        }
    }
}
