//! Deleting a node and everything below it.

use super::error::Error;
use std::{
    future::{Future, IntoFuture as _},
    mem,
};

use zk_proto::path;

use crate::{
    error::{Cause, ReadError, Rejection, WriteError},
    request::client::Client,
};

/// Concurrent requests: enough to fill a connection, few enough to leave room for other requests.
const AT_ONCE: usize = 256;

impl Client {
    /// Deletes a node and everything below it, from the bottom up; not atomically. Resolves to the number of nodes it
    /// has deleted, as far as replies have told; 0 if there was no such node.
    ///
    /// This takes many requests, and other clients see the result of each: nodes are deleted one by one, and if it
    /// fails or is dropped midway, the deleted nodes are gone. Nodes that other clients create in the meantime are
    /// deleted too, so it continues as long as another client keeps creating them; to limit it, wrap it in a
    /// [timeout](https://docs.rs/tokio/latest/tokio/time/fn.timeout.html). Nodes that another client deletes in the
    /// meantime are no error. Up to 256 requests are under way at once: a client that fails fast needs room for them, or
    /// fails with [`QueueFull`](crate::Cause::QueueFull).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::Error> {
    /// println!("{} nodes deleted", zk.delete_recursive("/jobs").await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DeleteRecursive`] with the node that could not be deleted, and the number of those that were, behind the
    /// answers to all that was under way.
    pub fn delete_recursive(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<usize, Error>> + Send + 'static {
        let mut client = self.clone();
        // It comes behind what is held back, and waits for its own replies.
        client.handle.send_held_so_far();
        client.handle.change(|view| view.held = None);
        Work { client, deleted: 0 }.run(path.to_owned())
    }
}

struct Work {
    client: Client,
    deleted: usize,
}

impl Work {
    fn failed(&self, path: &str, error: impl Into<Error>) -> Error {
        let error = Box::new(error.into());
        Error::DeleteRecursive { deleted: self.deleted, path: path.to_owned(), error }
    }

    async fn run(mut self, root: String) -> Result<usize, Error> {
        if self.client.handle.chroot.absolute(&root) == "/" {
            let cause = Cause::InvalidArgument("the servers' root cannot be deleted");
            return Err(self.failed(&root, WriteError::NotApplied(cause)));
        }
        let mut is_synced = false;
        loop {
            let levels = self.levels(&root).await?;
            if levels.is_empty() && !mem::replace(&mut is_synced, true) {
                // The server may lag. A delete would show it, but may be forbidden where there is nothing to delete.
                self.client.sync(&root).await.map_err(|error| self.failed(&root, error))?;
                continue;
            }
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
    async fn levels(&self, root: &str) -> Result<Vec<Vec<String>>, Error> {
        let (mut levels, mut named) = (Vec::new(), vec![root.to_owned()]);
        while !named.is_empty() {
            let (mut level, mut below) = (Vec::new(), Vec::new());
            for some in named.chunks_mut(AT_ONCE) {
                let list = |path: &String| self.client.children(path).into_future();
                let lists: Vec<_> = some.iter().map(list).collect();
                for (path, list) in some.iter_mut().zip(lists) {
                    match list.await {
                        Ok((names, _)) => {
                            below.extend(names.iter().map(|name| path::join(path, name)));
                            level.push(mem::take(path));
                        }
                        Err(ReadError::Rejected(Rejection::NoNode)) => {}
                        Err(error) => return Err(self.failed(path, error)),
                    }
                }
            }
            if !level.is_empty() {
                levels.push(level);
            }
            named = below;
        }
        Ok(levels)
    }

    /// Deletes nodes. Returns whether some have children again. What is under way is counted also behind a failure.
    async fn delete(&mut self, level: &[String]) -> Result<bool, Error> {
        let mut again = false;
        let mut failed = None;
        for some in level.chunks(AT_ONCE) {
            let delete = |path: &String| self.client.delete(path).if_exists().into_future();
            let deletes: Vec<_> = some.iter().map(delete).collect();
            for (path, delete) in some.iter().zip(deletes) {
                match delete.await {
                    Ok(deleted) => self.deleted += usize::from(deleted),
                    Err(WriteError::Rejected(Rejection::NotEmpty)) => again = true,
                    // A doubt is not to be hidden by what is certain.
                    Err(error @ WriteError::InDoubt { .. }) => failed = Some((path, error)),
                    Err(error) => drop(failed.get_or_insert((path, error))),
                }
            }
            if let Some((path, error)) = failed {
                return Err(self.failed(path, error));
            }
        }
        Ok(again)
    }
}
