//! One write: made, and looked for when its answer is lost.

use bytes::Bytes;
use zk_client::{Client, CreateMode, OpResult, ReadError, Rejection, WriteError, Zxid, path::join};

use super::{
    layout,
    model::Model,
    shared::{Stop, count},
};

/// A write of one writer.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Of the writer's register, which its writer knows to have a certain version; whether or not it says so.
    Set { data: Vec<u8>, says_version: bool },
    /// Of a node that was never created before.
    Create { path: String, data: Vec<u8> },
    /// Of a node whose name the servers complete.
    Sequential { data: Vec<u8> },
    /// Of a single node, or of several, all or none.
    Delete { paths: Vec<String> },
    /// Writes a counter of this version and leaves an entry below it, both or neither.
    Count { counter: usize, version: i32, entry: String, data: Vec<u8> },
}

/// What was done.
#[derive(Clone, Debug)]
pub(super) enum Done {
    Set { version: i32, zxid: Zxid },
    Created { path: String },
    Deleted,
    Counted { zxid: Zxid },
}

/// What became of it when a server answered.
#[derive(Debug)]
pub(super) enum Made {
    Done(Done),
    /// Another client has written the counter meanwhile.
    Conflict,
}

impl Change {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Set { .. } => count::SET,
            Self::Create { .. } => count::CREATE,
            Self::Sequential { .. } => count::SEQUENTIAL,
            Self::Delete { paths } if paths.len() == 1 => count::DELETE,
            Self::Delete { .. } | Self::Count { .. } => count::MULTI,
        }
    }

    pub(super) async fn make(&self, zk: &Client, model: &Model) -> Result<Made, WriteError> {
        let register = layout::register(model.writer);
        Ok(Made::Done(match self {
            Self::Set { data, says_version } => {
                let set = zk.set(&register, data);
                let set = if *says_version { set.version(model.version()) } else { set };
                let stat = set.await?;
                Done::Set { version: stat.version, zxid: stat.mzxid }
            }
            Self::Create { path, data } => {
                Done::Created { path: zk.create(path, data).await?.path }
            }
            Self::Sequential { data } => {
                let path = format!("{}/q-", layout::directory(model.writer));
                let create = zk.create(&path, data).mode(CreateMode::PersistentSequential);
                Done::Created { path: create.await?.path }
            }
            Self::Delete { paths } => match &paths[..] {
                [path] => zk.delete(path).version(0).await.map(|()| Done::Deleted)?,
                paths => {
                    let all =
                        paths.iter().fold(zk.multi(), |all, path| all.delete_version(path, 0));
                    // No other client deletes them.
                    all.await?.map_err(|error| WriteError::Rejected(error.rejection))?;
                    Done::Deleted
                }
            },
            Self::Count { counter, version, entry, data } => {
                let counter = layout::counter(*counter);
                let multi = zk
                    .multi()
                    .check_version(&register, model.version())
                    .set_version(&counter, data, *version)
                    .create(entry, data, CreateMode::Persistent);
                match multi.await? {
                    Ok(results) => match results[1] {
                        OpResult::Set(stat) => Done::Counted { zxid: stat.mzxid },
                        _ => unreachable!("the second one sets"),
                    },
                    Err(error) if error.index == 1 && error.rejection == Rejection::BadVersion => {
                        return Ok(Made::Conflict);
                    }
                    Err(error) => return Err(WriteError::Rejected(error.rejection)),
                }
            }
        }))
    }

    /// Looks for it, when it cannot happen any more: what was done, or nothing.
    pub(super) async fn find(&self, zk: &Client, model: &Model) -> Result<Option<Done>, Stop> {
        match self {
            Self::Set { data, .. } => {
                let (found, stat) = zk.get(&layout::register(model.writer)).await?;
                if found == *data {
                    return Ok(Some(Done::Set { version: stat.version, zxid: stat.mzxid }));
                }
                let is_as_before = found == model.data && stat.version == model.version();
                is_as_before.then_some(None).ok_or_else(|| torn(self, &(found, stat)))
            }
            Self::Create { path, data } => match get(zk, path).await? {
                Some(found) if found == *data => Ok(Some(Done::Created { path: path.clone() })),
                Some(found) => Err(torn(self, &found)),
                None => Ok(None),
            },
            Self::Sequential { data } => {
                let directory = layout::directory(model.writer);
                let known = model.names();
                let (names, _) = zk.children(&directory).await?;
                let mut new = names.iter().filter(|name| !known.contains(name));
                let found = match (new.next(), new.next()) {
                    (None, _) => return Ok(None),
                    (Some(name), None) => join(&directory, name),
                    more => return Err(torn(self, &more)),
                };
                match get(zk, &found).await? {
                    Some(written) if written == *data => Ok(Some(Done::Created { path: found })),
                    other => Err(torn(self, &(found, other))),
                }
            }
            Self::Delete { paths } => {
                let mut left = 0;
                for path in paths {
                    left += usize::from(zk.exists(path).await?.is_some());
                }
                match left {
                    0 => Ok(Some(Done::Deleted)),
                    left if left == paths.len() => Ok(None),
                    left => Err(torn(self, &left)),
                }
            }
            Self::Count { entry, .. } => {
                let stat = zk.exists(entry).await?;
                Ok(stat.map(|stat| Done::Counted { zxid: stat.czxid }))
            }
        }
    }
}

/// A write has left something that is neither before nor behind it.
fn torn(change: &Change, found: &dyn std::fmt::Debug) -> Stop {
    Stop::Broken(format!("{change:?} in doubt, then found {found:?}"))
}

/// A node's data, if there is such a node.
async fn get(zk: &Client, path: &str) -> Result<Option<Bytes>, ReadError> {
    match zk.get(path).await {
        Ok((data, _)) => Ok(Some(data)),
        Err(ReadError::Rejected(Rejection::NoNode)) => Ok(None),
        Err(error) => Err(error),
    }
}
