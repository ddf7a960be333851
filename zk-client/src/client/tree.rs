//! Deleting a node and everything below it.

use super::error::{DeleteRecursiveError, Error};
use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
};

use zk_proto::path;

use crate::{
    error::{Cause, ReadError, Rejection, WriteError},
    request::{
        call_options::CallOptions,
        handle::Handle,
        operations::{Children, Delete},
        target::Target,
    },
};

/// Concurrent requests: enough to fill a connection, few enough to leave room for other requests.
const AT_ONCE: usize = 256;

/// Deletes a node and everything below it: see [`Client::delete_recursive`](crate::Client::delete_recursive).
///
/// Resolves to the number of nodes it has deleted; 0 if there was no such node.
///
/// This takes many requests, and other clients see the result of each: nodes are deleted one by one, from the bottom
/// up, and if it fails or is dropped midway, the deleted nodes are gone. Nodes that other clients create in the
/// meantime are deleted too, so it continues as long as another client keeps creating them; to limit it, wrap it in a
/// [timeout](https://docs.rs/tokio/latest/tokio/time/fn.timeout.html). Nodes that another client deletes in the
/// meantime are no error.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct DeleteRecursive<'a> {
    target: Target<'a>,
    path: &'a str,
}

/// A recursive delete in progress. Dropping it leaves whatever has not been deleted yet.
#[must_use = "nothing happens until it is awaited"]
pub struct PendingDelete(Pin<Box<dyn Future<Output = Result<usize, DeleteRecursiveError>> + Send>>);

impl<'a> DeleteRecursive<'a> {
    pub(crate) const fn new(target: Target<'a>, path: &'a str) -> Self {
        Self { target, path }
    }
}

impl IntoFuture for DeleteRecursive<'_> {
    type Output = Result<usize, DeleteRecursiveError>;
    type IntoFuture = PendingDelete;
    fn into_future(self) -> PendingDelete {
        let Self { target: Target { handle, options }, path } = self;
        let mut handle = handle.clone();
        // It waits for its own replies.
        handle.change(|view| view.held = None);
        let work = Work { handle, options, deleted: 0 };
        PendingDelete(Box::pin(work.run(path.to_owned())))
    }
}

impl Future for PendingDelete {
    type Output = Result<usize, DeleteRecursiveError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for PendingDelete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingDelete")
    }
}

struct Work {
    handle: Handle,
    options: CallOptions,
    deleted: usize,
}

impl Work {
    const fn target(&self) -> Target<'_> {
        Target { handle: &self.handle, options: self.options }
    }

    fn failed(&self, path: &str, error: impl Into<Error>) -> DeleteRecursiveError {
        let error = error.into();
        DeleteRecursiveError { deleted: self.deleted, path: path.to_owned(), error }
    }

    async fn run(mut self, root: String) -> Result<usize, DeleteRecursiveError> {
        if self.handle.chroot.absolute(&root) == "/" {
            let cause = Cause::InvalidArgument("the servers' root cannot be deleted");
            return Err(self.failed(&root, WriteError::NotApplied(cause)));
        }
        loop {
            let levels = self.levels(&root).await?;
            let mut again = false;
            for level in levels.iter().rev() {
                again |= self.delete(level).await?;
            }
            if !again {
                return Ok(self.deleted);
            }
        }
    }

    /// The node, its children, their children, and so on, as far as they exist.
    async fn levels(&self, root: &str) -> Result<Vec<Vec<String>>, DeleteRecursiveError> {
        let mut levels = vec![vec![root.to_owned()]];
        while let Some(level) = levels.last().filter(|level| !level.is_empty()) {
            let mut below = Vec::new();
            for some in level.chunks(AT_ONCE) {
                let list = |path: &String| Children::new(self.target(), path).into_future();
                let lists: Vec<_> = some.iter().map(list).collect();
                for (path, list) in some.iter().zip(lists) {
                    match list.await {
                        Ok((names, _)) => {
                            below.extend(names.iter().map(|name| path::join(path, name)));
                        }
                        Err(ReadError::Rejected(Rejection::NoNode)) => {}
                        Err(error) => return Err(self.failed(path, error)),
                    }
                }
            }
            levels.push(below);
        }
        Ok(levels)
    }

    /// Deletes nodes. Returns whether some have children again.
    async fn delete(&mut self, level: &[String]) -> Result<bool, DeleteRecursiveError> {
        let mut again = false;
        for some in level.chunks(AT_ONCE) {
            let delete = |path: &String| Delete::new(self.target(), path).if_exists().into_future();
            let deletes: Vec<_> = some.iter().map(delete).collect();
            for (path, delete) in some.iter().zip(deletes) {
                match delete.await {
                    Ok(deleted) => self.deleted += usize::from(deleted),
                    Err(WriteError::Rejected(Rejection::NotEmpty)) => again = true,
                    Err(error) => return Err(self.failed(path, error)),
                }
            }
        }
        Ok(again)
    }
}
