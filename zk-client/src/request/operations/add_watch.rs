//! Sets persistent watches.

use zk_proto::{
    Str,
    frame::RequestFrame,
    path::Naming,
    request::{AddWatchRequest, ErrorResponse},
};

use crate::{
    error::ReadError,
    request::{
        answer::{Unread, body},
        call_options::Admission,
        operations::builder::{awaitable, read_with},
        pending::Pending,
        target::Target,
        watch_stream::{Attached, WatchStream},
    },
    watch::WatchMode,
};

/// Sets a persistent watch: see [`Client::watch`](crate::Client::watch).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct AddWatch<'a> {
    pub(crate) target: Target<'a>,
    path: &'a str,
    mode: WatchMode,
    capacity: Option<usize>,
}

awaitable! {
    AddWatch: WatchStream, ReadError;
}

impl<'a> AddWatch<'a> {
    pub(crate) const fn new(target: Target<'a>, path: &'a str, mode: WatchMode) -> Self {
        Self { target, path, mode, capacity: None }
    }

    /// Sets how many events are kept for a busy reader, at least 1; one more replaces all of them by one
    /// [`Resync::Lagged`](crate::Resync::Lagged). In addition, the paths of the events kept are limited to 1 MiB.
    /// Default: [`ConnectOptions::watch_items_max`](crate::ConnectOptions::watch_items_max).
    pub const fn capacity(mut self, items: usize) -> Self {
        self.capacity = Some(items);
        self
    }

    fn start(self, admission: Admission) -> Pending<WatchStream, ReadError> {
        let Self { target, path, mode, capacity } = self;
        if target.handle.shared.level.lacks_add_watch() {
            return Pending::failed(ReadError::Rejected(crate::Rejection::Unimplemented));
        }
        let frame =
            |path: Str<'_>| RequestFrame::of(&AddWatchRequest { path, mode: mode.on_wire() });
        let items_max = capacity.unwrap_or(target.handle.shared.watch_items_max);
        let by = mode.by();
        let attach = |path: &str| {
            let (stream, listener) = WatchStream::new(
                items_max,
                by,
                path,
                target.handle.chroot.clone(),
                target.handle.shared.commands.downgrade(),
            );
            (Attached::Many(Box::new(stream)), by, listener)
        };
        read_with(
            target,
            path,
            Naming::Exact,
            Some(&attach),
            frame,
            admission,
            |answer, context| {
                context.learn(|level| level.note_add_watch(answer.code));
                let Attached::Many(mut stream) = context.watch else {
                    return Err(Unread::Code(zk_proto::ErrorCode::NO_WATCHER));
                };
                match body::<ErrorResponse>(&answer) {
                    Ok(_) => Ok(*stream),
                    Err(unread) => {
                        stream.forget();
                        Err(unread)
                    }
                }
            },
        )
    }
}
