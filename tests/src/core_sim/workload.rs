//! What users ask for.

use std::sync::Arc;

use zk_proto::{
    Acl, AclList, AddWatchMode, CreateFlags,
    frame::RequestFrame,
    request::{
        AddWatchRequest, CloseSession, Create2Request, CreateRequest, DeleteRequest, ExistsRequest,
        GetChildrenRequest, GetDataRequest, MultiOp, MultiRequest, SetDataRequest, SyncRequest,
    },
    session::{OnLoss, Outgoing, Patience, WatchBy, WatchIntent},
};
use zk_testkit::{real::Release, sim::Rng};

use super::{change_log::mark, watching::Watching};

/// Nodes that come and go, and one that is always there to be written in multis.
const PATHS: [&str; 6] = ["/a", "/b", "/a/x", "/b/x", "/b/y", "/log"];

/// Watches of one session above which it asks for no more, and how many of them may be persistent.
pub(crate) const WATCHES_MAX: (usize, usize) = (12, 3);

/// One thing to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Create(&'static str, CreateFlags),
    Set(&'static str),
    Delete(&'static str),
    /// A delete that leaves a mark.
    DeleteMarked(&'static str),
    Get(&'static str, bool),
    Exists(&'static str, bool),
    Children(&'static str, bool),
    /// Persistent watches, also of both kinds on one node.
    Follow(&'static str, AddWatchMode),
    Sync,
    /// The end of the session.
    Close,
}

impl Wish {
    /// For a client with so many watches, and so many persistent ones, of servers of a release.
    pub(crate) fn any(
        rng: &mut Rng,
        (watches, persistent): (usize, usize),
        release: Release,
    ) -> Self {
        let path = *rng.pick(&PATHS);
        let watch = watches < WATCHES_MAX.0 && rng.per_mille(400);
        let follow = persistent < WATCHES_MAX.1 && release >= Release::V3_6;
        match rng.below(100) {
            0..=14 => Self::Create(path, CreateFlags::PERSISTENT),
            15..=24 => Self::Create(path, CreateFlags::EPHEMERAL),
            25..=27 => Self::Create("/b/s-", CreateFlags::EPHEMERAL_SEQUENTIAL),
            28..=44 => Self::Set(path),
            45..=52 => Self::Delete(path),
            53..=57 => Self::DeleteMarked(rng.pick::<&str>(&PATHS[..5])),
            58..=69 => Self::Get(path, watch),
            70..=81 => Self::Exists(path, watch),
            82..=91 => Self::Children(rng.pick::<&str>(&["/", "/a", "/b"]), watch),
            92..=96 if follow => {
                let modes = [AddWatchMode::PERSISTENT, AddWatchMode::PERSISTENT_RECURSIVE];
                Self::Follow(rng.pick::<&str>(&["/a", "/a", "/b", "/b", "/"]), *rng.pick(&modes))
            }
            _ => Self::Sync,
        }
    }

    /// What a session reads to know that it has missed nothing: behind a sync, everything.
    pub(crate) fn last() -> Vec<Self> {
        let reads = PATHS.iter().flat_map(|path| {
            [Self::Get(path, false), Self::Exists(path, false), Self::Children(path, false)]
        });
        [Self::Sync].into_iter().chain(reads).collect()
    }

    /// Whether it leaves a mark.
    pub(crate) const fn is_marked(self) -> bool {
        matches!(self, Self::Create(..) | Self::Set(_) | Self::DeleteMarked(_))
    }

    /// The request to servers of a release, and the watch that it may arm. The token is also the mark.
    pub(crate) fn request(
        self,
        token: u64,
        release: Release,
    ) -> (Outgoing<u64, u64>, Option<Watching>) {
        let mark = mark(token);
        let data = Some(&mark[..]);
        let (frame, by) = match self {
            Self::Create(path, flags) => {
                let acl: AclList = [Acl::open_unsafe()].into_iter().collect();
                let create = CreateRequest { path: path.into(), data, acl, flags };
                let frame = match release {
                    Release::V3_4 => RequestFrame::of(&create),
                    _ => RequestFrame::of(&Create2Request(create)),
                };
                (frame, None)
            }
            Self::Set(path) => {
                let set = SetDataRequest { path: path.into(), data, version: -1 };
                (RequestFrame::of(&set), None)
            }
            Self::Delete(path) => {
                let delete = DeleteRequest { path: path.into(), version: -1 };
                (RequestFrame::of(&delete), None)
            }
            Self::DeleteMarked(path) => {
                let set = SetDataRequest { path: "/log".into(), data, version: -1 };
                let delete = DeleteRequest { path: path.into(), version: -1 };
                let multi: MultiRequest =
                    [MultiOp::SetData(set), MultiOp::Delete(delete)].into_iter().collect();
                (RequestFrame::of(&multi), None)
            }
            Self::Get(path, watch) => {
                let get = GetDataRequest { path: path.into(), watch };
                let by = watch.then_some((WatchBy::Data, path));
                (RequestFrame::of(&get), by)
            }
            Self::Exists(path, watch) => {
                let exists = ExistsRequest { path: path.into(), watch };
                let by = watch.then_some((WatchBy::Exists, path));
                (RequestFrame::of(&exists), by)
            }
            Self::Children(path, watch) => {
                let list = GetChildrenRequest { path: path.into(), watch };
                let by = watch.then_some((WatchBy::Children, path));
                (RequestFrame::of(&list), by)
            }
            Self::Follow(path, mode) => {
                let follow = AddWatchRequest { path: path.into(), mode };
                let by = match mode {
                    AddWatchMode::PERSISTENT => WatchBy::Persistent,
                    _ => WatchBy::Recursive,
                };
                (RequestFrame::of(&follow), Some((by, path)))
            }
            Self::Sync => (RequestFrame::of(&SyncRequest { path: "/log".into() }), None),
            Self::Close => (RequestFrame::of(&CloseSession), None),
        };
        let is_harmless = !self.is_marked() && !matches!(self, Self::Delete(_));
        let on_loss = if is_harmless { OnLoss::Resend } else { OnLoss::Report };
        let watch = by
            .map(|(by, path)| Box::new(WatchIntent { path: Arc::from(path), by, watcher: token }));
        let patience = Patience::Connections;
        let watching = by.map(|(by, path)| Watching::new(by, path));
        (Outgoing { frame, token, watch, on_loss, patience }, watching)
    }
}
