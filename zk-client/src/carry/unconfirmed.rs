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

/// How many deletes are unconfirmed: counted when a node loses its owner, or by the driver; read by any task.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed {
    count: AtomicUsize,
    /// The ones that servers refuse, by absolute path. They are retried nevertheless. Hardly any session has one: they
    /// are made room for when one is, or is waited for.
    refused: OnceLock<watch::Sender<BTreeMap<Arc<str>, Refused>>>,
}

/// Deletes of nodes of one name, which were there one after the other.
#[derive(Debug)]
struct Refused {
    code: ErrorCode,
    count: usize,
}

impl Unconfirmed {
    pub(crate) fn begun(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets a delete, and that it was refused, if it was.
    pub(super) fn concluded(&self, path: &str, was_refused: bool) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(refused) = self.refused.get().filter(|_| was_refused) {
            refused.send_modify(|refused| {
                let Some(of_path) = refused.get_mut(path) else { return };
                of_path.count -= 1;
                if of_path.count == 0 {
                    refused.remove(path);
                }
            });
        }
    }

    /// Records that a delete is refused, for the first time or once more.
    pub(super) fn refused(&self, path: &Arc<str>, code: ErrorCode, was_refused: bool) {
        let refused = self.refused.get_or_init(watch::Sender::default);
        refused.send_modify(|refused| {
            let of_path = refused.entry(path.clone()).or_insert(Refused { code, count: 0 });
            of_path.code = code;
            of_path.count += usize::from(!was_refused);
        });
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many are worth waiting for: those that are not refused.
    pub(crate) fn hopeful(&self) -> usize {
        let refused = self
            .refused
            .get()
            .map_or(0, |refused| refused.borrow().values().map(|of_path| of_path.count).sum());
        self.count().saturating_sub(refused)
    }

    /// Waits until the delete of the node at the path `absolute` is refused.
    pub(crate) async fn until_refused(&self, absolute: &str) -> ErrorCode {
        let mut refused = self.refused.get_or_init(watch::Sender::default).subscribe();
        loop {
            let code = refused.borrow_and_update().get(absolute).map(|of_path| of_path.code);
            if let Some(code) = code {
                return code;
            }
            // The sender lives as long as `self`.
            let _ = refused.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others remove the node of a refused delete, and the next one of its name is refused too.
    #[test]
    fn refused_deletes_of_one_name_are_counted() {
        let (all, path) = (Unconfirmed::default(), Arc::from("/lock"));
        let expect = |count, hopeful| assert_eq!((all.count(), all.hopeful()), (count, hopeful));
        for _ in 0..2 {
            all.begun();
            all.refused(&path, ErrorCode::NO_AUTH, false);
            all.refused(&path, ErrorCode::NO_AUTH, true);
        }
        all.begun();
        expect(3, 1);
        all.concluded(&path, true);
        expect(2, 1);
        all.concluded(&path, false);
        expect(1, 0);
        all.concluded(&path, true);
        expect(0, 0);
    }
}
