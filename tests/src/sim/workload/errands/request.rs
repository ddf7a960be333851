//! The request for a change.

use std::pin::Pin;

use zk_client::{Client, Create, CreateMode, Created, Request, Stat, WriteError};

use super::{lists, model::Change};

/// What a change is answered with.
pub(super) enum Done {
    Created(Created),
    Set(Stat),
    Deleted,
}

pub(super) type Answer = Pin<Box<dyn Future<Output = Result<Done, WriteError>> + Send>>;

/// What is sent for one.
pub(super) enum Sent<'a> {
    Create(Create<'a>),
    Set(Request<'a, Stat, WriteError>),
    Delete(Request<'a, (), WriteError>),
}

impl<'a> Sent<'a> {
    /// `None` for a condition: there is none by itself.
    pub(super) fn of(client: &'a Client, path: &'a str, change: &'a Change) -> Option<Self> {
        Some(match change {
            Change::Create { data, mode, list, above, .. } => {
                Self::Create(wanted(client.create(path, data).mode(*mode), *list, *above))
            }
            Change::Set { data, version, .. } => {
                let set = client.set(path, data);
                Self::Set(match version {
                    Some(version) => set.version(*version),
                    None => set,
                })
            }
            Change::Delete { version, .. } => {
                let delete = client.delete(path);
                Self::Delete(match version {
                    Some(version) => delete.version(*version),
                    None => delete,
                })
            }
            Change::Check { .. } => return None,
        })
    }

    pub(super) async fn answered(self) -> Result<Done, WriteError> {
        match self {
            Self::Create(create) => create.await.map(Done::Created),
            Self::Set(set) => set.await.map(Done::Set),
            Self::Delete(delete) => delete.await.map(|()| Done::Deleted),
        }
    }

    /// Sent whenever the answer is asked for.
    pub(super) fn submitted(self) -> Answer {
        match self {
            Self::Create(create) => {
                let created = create.submit();
                Box::pin(async move { created.await.map(Done::Created) })
            }
            Self::Set(set) => {
                let set = set.submit();
                Box::pin(async move { set.await.map(Done::Set) })
            }
            Self::Delete(delete) => {
                let deleted = delete.submit();
                Box::pin(async move { deleted.await.map(|()| Done::Deleted) })
            }
        }
    }
}

/// The request for a node with these permissions, and with the parents that are missing.
pub(super) fn wanted<'a>(create: Create<'a>, list: usize, above: Option<CreateMode>) -> Create<'a> {
    let create = match list {
        0 => create,
        _ => create.acl(&lists()[list]),
    };
    match above {
        None => create,
        Some(CreateMode::Container) => create.containers(),
        Some(_) => create.parents(),
    }
}
