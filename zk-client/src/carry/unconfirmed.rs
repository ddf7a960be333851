//! Deletes that no server has confirmed yet.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::watch;
use zk_proto::ErrorCode;

/// How many deletes are unconfirmed: counted by the driver, read by any task.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed {
    count: AtomicUsize,
    /// The ones that servers refuse, by absolute path. They are retried nevertheless. Hardly any session has one: they
    /// are made room for when one is, or is waited for.
    refused: OnceLock<watch::Sender<BTreeMap<Arc<str>, ErrorCode>>>,
}

impl Unconfirmed {
    pub(crate) fn begun(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn concluded(&self, path: &str) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(refused) = self.refused.get() {
            refused.send_if_modified(|refused| refused.remove(path).is_some());
        }
    }

    pub(super) fn refused(&self, path: &Arc<str>, code: ErrorCode) {
        let refused = self.refused.get_or_init(watch::Sender::default);
        refused.send_if_modified(|refused| refused.insert(path.clone(), code) != Some(code));
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many are worth waiting for: those that are not refused.
    pub(crate) fn hopeful(&self) -> usize {
        let refused = self.refused.get().map_or(0, |refused| refused.borrow().len());
        self.count().saturating_sub(refused)
    }

    /// Waits until the delete of the node at the path `absolute` is refused.
    pub(crate) async fn until_refused(&self, absolute: &str) -> ErrorCode {
        let mut refused = self.refused.get_or_init(watch::Sender::default).subscribe();
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
