//! What requests ask for, and their encoding.

use std::sync::Arc;

use zk_proto::{
    AclList, Str, WatcherType, Zxid,
    frame::RequestFrame,
    path::Naming,
    request::{
        AddWatchRequest, CheckWatchesRequest, DeleteRequest, GetDataRequest, GetEphemeralsRequest,
        ReconfigRequest, Request, SetAclRequest, SetDataRequest, WhoAmIRequest,
    },
    session::{OnLoss, WatchBy, WatchIntent},
};

use super::{
    answer::Instead, asked::Part, call_options::CallOptions, handle::Handle, ops::Ops,
    watch_stream::Attached, watch_stream::WatchStream,
};
use crate::{
    carry::version::expected,
    chroot::Chroot,
    driver::frames::Frames,
    error::{CallError, Cause},
    watch::{Listener, Watch, WatchMode},
};

/// The node where servers keep the configuration. The chroot does not apply to it.
const CONFIG_NODE: &str = "/zookeeper/config";

/// The version of the configuration that servers take as "any version".
const ANY_CONFIG: Zxid = Zxid(-1);

/// The destination and options of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) handle: &'a Handle,
    pub(crate) options: CallOptions,
}

/// What a request asks for.
#[derive(Clone, Debug)]
pub(crate) enum Ask<'a> {
    /// A read of a node.
    Node {
        frame: ReadFrame,
        path: &'a str,
        arm: Arm,
    },
    /// A read of the ensemble's configuration.
    Config(Arm),
    /// Whether the server has such a watch.
    HasWatch {
        path: &'a str,
        kind: WatcherType,
    },
    /// The session's nodes whose paths have this prefix.
    Ephemerals(&'a str),
    WhoAmI,
    /// A persistent watch.
    Watch {
        path: &'a str,
        mode: WatchMode,
        capacity: Option<usize>,
    },
    Set {
        path: &'a str,
        data: &'a [u8],
        version: Option<i32>,
    },
    SetAcl {
        path: &'a str,
        acl: Box<AclList>,
        version: Option<i32>,
    },
    Delete {
        path: &'a str,
        version: Option<i32>,
        on_loss: OnLoss,
    },
    Reconfig(Box<Members>),
    Several(Ops<'a>),
}

/// Encodes a read of a node: its path, and whether it arms a watch.
pub(crate) type ReadFrame = fn(&Frames, Str<'_>, bool) -> RequestFrame;

/// The watch that a read arms.
#[derive(Clone, Debug)]
pub(crate) enum Arm {
    Nothing,
    Once(WatchBy),
    /// One that reports to this listener.
    Heard(Box<(WatchBy, Listener)>),
}

/// A change of the ensemble's members.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    pub(crate) joining: Vec<String>,
    pub(crate) leaving: Vec<String>,
    pub(crate) all: Option<Vec<String>>,
    pub(crate) version: Option<Zxid>,
}

/// The watch that a request arms, for the session and for the caller.
pub(crate) type Armed = Option<(Box<WatchIntent<Listener>>, Attached)>;

/// An encoded request.
pub(crate) struct Call {
    pub(crate) frame: RequestFrame,
    pub(crate) on_loss: OnLoss,
    pub(crate) watch: Armed,
    /// The alternative if a server does not know this request: see [`Unresolved::Again`](super::answer::Unresolved::Again).
    pub(crate) instead: Option<Box<Instead>>,
    pub(crate) asked: Box<[Part]>,
}

impl Target<'_> {
    /// Encodes a request.
    pub(crate) fn frame<R: Request>(&self, request: &R) -> RequestFrame {
        self.handle.shared.frames.of(request)
    }

    /// The older request, if there is one.
    pub(crate) fn instead(
        self,
        frame: Option<RequestFrame>,
        on_loss: OnLoss,
    ) -> Option<Box<Instead>> {
        let Self { handle, options } = self;
        let handle = handle.clone();
        let connection = handle.shared.known().capabilities.connection();
        frame.map(|frame| Box::new(Instead { handle, options, frame, on_loss, connection }))
    }
}

impl Call {
    /// A request that may be sent again if the connection is lost before the reply.
    fn read(frame: RequestFrame, watch: Armed) -> Self {
        Self { frame, on_loss: OnLoss::Resend, watch, instead: None, asked: Box::default() }
    }

    /// A request that changes something.
    fn write(frame: RequestFrame, on_loss: OnLoss) -> Self {
        Self { frame, on_loss, watch: None, instead: None, asked: Box::default() }
    }
}

impl<'a> Ask<'a> {
    pub(crate) const fn node(path: &'a str, frame: ReadFrame) -> Self {
        Self::Node { frame, path, arm: Arm::Nothing }
    }

    /// Sets the watch that a read arms.
    pub(super) fn arm(&mut self, with: Arm) {
        if let Self::Node { arm, .. } | Self::Config(arm) = self {
            *arm = with;
        }
    }

    /// Encodes the request. The error is why there is nothing to submit.
    #[inline(always)]
    pub(super) fn call<E: CallError>(self, target: Target<'_>) -> Result<Call, E> {
        match self {
            // Most requests are such reads.
            Self::Node { frame, path, arm } => {
                let handle = target.handle;
                let path = handle.chroot.resolve(path, Naming::Exact);
                let path = path.map_err(|error| E::not_sent(error.into()))?;
                let frame = frame(&handle.shared.frames, Str::from(&*path), arm.is_armed());
                Ok(Call::read(frame, arm.intent(&path, &handle.chroot)))
            }
            other => other.call_other(target),
        }
    }

    #[inline(never)]
    fn call_other<E: CallError>(self, target: Target<'_>) -> Result<Call, E> {
        let handle = target.handle;
        let refuse = |cause| E::not_sent(cause);
        let resolve = |path: &'a str| {
            handle.chroot.resolve(path, Naming::Exact).map_err(|error| E::not_sent(error.into()))
        };
        Ok(match self {
            Self::Node { frame, path, arm } => {
                let path = resolve(path)?;
                let frame = frame(&handle.shared.frames, Str::from(&*path), arm.is_armed());
                Call::read(frame, arm.intent(&path, &handle.chroot))
            }
            Self::Config(arm) => {
                let (path, watch) = (Str::from(CONFIG_NODE), arm.is_armed());
                let frame = target.frame(&GetDataRequest { path, watch });
                Call::read(frame, arm.intent(CONFIG_NODE, &Chroot::default()))
            }
            Self::HasWatch { path, kind } => {
                let path = resolve(path)?;
                let path = Str::from(&*path);
                Call::read(target.frame(&CheckWatchesRequest { path, kind }), None)
            }
            Self::Ephemerals(prefix) if !prefix.starts_with('/') => {
                return Err(refuse(Cause::InvalidArgument(
                    "a prefix of paths begins with a slash",
                )));
            }
            Self::Ephemerals(prefix) => {
                let absolute = handle.chroot.prefix(prefix);
                let prefix_path = Str::from(&*absolute);
                Call::read(target.frame(&GetEphemeralsRequest { prefix_path }), None)
            }
            Self::WhoAmI => Call::read(target.frame(&WhoAmIRequest), None),
            Self::Watch { path, mode, capacity } => {
                let (path, by) = (resolve(path)?, mode.by());
                let mode = mode.on_wire();
                let frame = target.frame(&AddWatchRequest { path: Str::from(&*path), mode });
                let items_max = capacity.unwrap_or(handle.shared.watch_items_max);
                let commands = handle.shared.commands.downgrade();
                let (stream, watcher) =
                    WatchStream::new(items_max, by, &path, handle.chroot.clone(), commands);
                let intent = WatchIntent { path: Arc::from(&*path), by, watcher };
                Call::read(frame, Some((Box::new(intent), Attached::Many(Box::new(stream)))))
            }
            Self::Set { path, data, version } => {
                let (version, path) = (expected(version).map_err(refuse)?, resolve(path)?);
                let (path, data) = (Str::from(&*path), Some(data));
                Call::write(target.frame(&SetDataRequest { path, data, version }), OnLoss::Report)
            }
            Self::SetAcl { path, acl, version } => {
                let (version, path) = (expected(version).map_err(refuse)?, resolve(path)?);
                let path = Str::from(&*path);
                let request = SetAclRequest { path, acl: *acl, version };
                Call::write(target.frame(&request), OnLoss::Report)
            }
            Self::Delete { path, version, on_loss } => {
                let (version, path) = (expected(version).map_err(refuse)?, resolve(path)?);
                let path = Str::from(&*path);
                Call::write(target.frame(&DeleteRequest { path, version }), on_loss)
            }
            Self::Reconfig(members) => {
                Call::write(members.frame(target).map_err(refuse)?, OnLoss::Report)
            }
            Self::Several(ops) => {
                let (frame, instead) = ops.frames(handle).map_err(refuse)?;
                let on_loss = if ops.write() { OnLoss::Report } else { OnLoss::Resend };
                let instead = target.instead(instead, on_loss);
                let asked = ops.asked(&handle.chroot);
                Call { frame, on_loss, watch: None, instead, asked }
            }
        })
    }
}

impl<'a> Ask<'a> {
    /// The path, as the caller has named it.
    pub(super) const fn path(&self) -> Option<&'a str> {
        match self {
            Self::Node { path, .. }
            | Self::HasWatch { path, .. }
            | Self::Ephemerals(path)
            | Self::Watch { path, .. }
            | Self::Set { path, .. }
            | Self::SetAcl { path, .. }
            | Self::Delete { path, .. } => Some(path),
            Self::Config(_) | Self::WhoAmI | Self::Reconfig(_) | Self::Several(_) => None,
        }
    }
}

impl Arm {
    const fn is_armed(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// The watch that the reply arms on an absolute path, for the session and for the caller.
    #[inline(always)]
    fn intent(self, path: &str, chroot: &Chroot) -> Armed {
        let absolute = || Arc::<str>::from(path);
        let (path, by, watcher, attached) = match self {
            Self::Nothing => return None,
            Self::Once(by) => {
                let path = absolute();
                let (watch, sender) = Watch::new(path.clone(), chroot.clone());
                (path, by, Listener::Once(sender), Attached::Once(watch))
            }
            Self::Heard(heard) => (absolute(), heard.0, heard.1, Attached::Nothing),
        };
        Some((Box::new(WatchIntent { path, by, watcher }), attached))
    }
}

impl Members {
    fn frame(&self, target: Target<'_>) -> Result<RequestFrame, Cause> {
        let changes = !self.joining.is_empty() || !self.leaving.is_empty();
        match (self.all.as_deref(), changes) {
            (Some(_), true) => {
                return Err(Cause::InvalidArgument("either all members or changes of them"));
            }
            (Some([]), _) => return Err(Cause::InvalidArgument("no members")),
            (None, false) => return Err(Cause::InvalidArgument("no change of members")),
            _ if self.version == Some(ANY_CONFIG) => {
                return Err(Cause::InvalidArgument("version -1 would stand for any"));
            }
            _ => {}
        }
        // Null is "not used"; an empty string is not.
        let list = |list: &[String]| (!list.is_empty()).then(|| list.join(","));
        let (joining, leaving) = (list(&self.joining), list(&self.leaving));
        let all = self.all.as_deref().and_then(list);
        Ok(target.frame(&ReconfigRequest {
            joining_servers: joining.as_deref().map_or(Str::NULL, Str::from),
            leaving_servers: leaving.as_deref().map_or(Str::NULL, Str::from),
            new_members: all.as_deref().map_or(Str::NULL, Str::from),
            cur_config_id: self.version.unwrap_or(ANY_CONFIG),
        }))
    }
}
