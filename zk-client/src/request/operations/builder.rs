//! The common parts of request builders.

use std::sync::Arc;

use zk_proto::{
    ErrorCode, Str,
    frame::RequestFrame,
    path::Naming,
    session::{OnLoss, WatchBy, WatchIntent},
};

use crate::{
    error::{CallError as _, Cause, ReadError, WriteError},
    request::{
        answer::{ReadAnswer, Unread},
        asked::Asked,
        call::Call,
        call_options::Admission,
        pending::Pending,
        target::Target,
        watch_stream::Attached,
    },
    watch::{Listener, Watch},
};

/// The common methods of all builders: awaiting, submitting, and options.
macro_rules! awaitable {
    ($($builder:ident: $output:ty, $error:ty;)*) => {$(
        impl std::future::IntoFuture for $builder<'_> {
            type Output = Result<$output, $error>;
            type IntoFuture = crate::request::pending::Pending<$output, $error>;
            fn into_future(self) -> Self::IntoFuture {
                self.start(crate::request::call_options::Admission::Waiting)
            }
        }

        impl $builder<'_> {
            /// Submits the request now, behind all earlier submissions: it is sent even if the returned future is
            /// dropped. Where awaiting the builder would wait for room, this fails with
            /// [`QueueFull`](crate::Cause::QueueFull).
            pub fn submit(self) -> crate::request::pending::Pending<$output, $error> {
                self.start(crate::request::call_options::Admission::Now)
            }

            /// Bounds the wait for the reply, from now on. A request that has not been sent by then never will be; if
            /// it has been sent, the reply is discarded, and its effect is unknown. Either way it fails with
            /// [`DeadlineExceeded`](crate::Cause::DeadlineExceeded), and the connection stays as it is.
            ///
            /// Takes effect when the result is awaited. Default: the client's [option](crate::Client::with), or no
            /// bound but the session's end.
            pub const fn timeout(mut self, timeout: std::time::Duration) -> Self {
                self.target.options.timeout = Some(timeout);
                self
            }

            /// Fails wherever the request would have to wait for a connection or for room, with
            /// [`NotConnected`](crate::Cause::NotConnected), [`Disconnected`](crate::Cause::Disconnected) or
            /// [`QueueFull`](crate::Cause::QueueFull). Otherwise requests outlive connections: unsent requests wait for
            /// the next one, and reads are sent again.
            pub const fn fail_fast(mut self) -> Self {
                self.target.options = self.target.options.fail_fast();
                self
            }
        }
    )*};
}
pub(crate) use awaitable;

/// Makes the watch that is armed with the reply, for this absolute path.
pub(crate) type Attach<'a> = &'a dyn Fn(&str) -> (Attached, WatchBy, Listener);

/// Submits a read. Reads are sent again if the connection is lost before the reply.
pub(crate) fn read_with<T>(
    target: Target<'_>,
    path: &str,
    naming: Naming,
    attach: Option<Attach<'_>>,
    frame: impl FnOnce(Str<'_>) -> RequestFrame,
    admission: Admission,
    read: ReadAnswer<T>,
) -> Pending<T, ReadError> {
    match target.handle.chroot.resolve(path, naming) {
        Ok(path) => {
            let frame = frame(Str::from(&*path));
            let watch = attach.map(|attach| {
                let (attached, by, watcher) = attach(&path);
                (Box::new(WatchIntent { path: Arc::from(&*path), by, watcher }), attached)
            });
            let call = Call { frame, on_loss: OnLoss::Resend, watch, instead: None, read };
            target.call(call, admission)
        }
        Err(error) => Pending::failed(ReadError::not_sent(Cause::InvalidPath(error))),
    }
}

/// Submits a read, which arms a one-shot watch of the kind `watch`, if given.
pub(crate) fn read<T>(
    target: Target<'_>,
    path: &str,
    watch: Option<WatchBy>,
    frame: impl FnOnce(Str<'_>) -> RequestFrame,
    admission: Admission,
    read: ReadAnswer<T>,
) -> Pending<T, ReadError> {
    let once = |by| {
        let chroot = target.handle.chroot.clone();
        move |_: &str| {
            let (watch, listener) = Watch::new(chroot.clone());
            (Attached::Once(watch), by, Listener::Once(listener))
        }
    };
    let once = watch.map(once);
    let attach = once.as_ref().map(|once| once as Attach<'_>);
    read_with(target, path, Naming::Exact, attach, frame, admission, read)
}

/// Submits a write. Writes are never sent twice unless `on_loss` asks for it.
pub(crate) fn write<T>(
    target: Target<'_>,
    (path, naming): (&str, Naming),
    on_loss: OnLoss,
    frame: impl FnOnce(Str<'_>) -> (RequestFrame, Option<RequestFrame>),
    admission: Admission,
    read: ReadAnswer<T>,
) -> Pending<T, WriteError> {
    match target.handle.chroot.resolve(path, naming) {
        Ok(path) => {
            let (frame, instead) = frame(Str::from(&*path));
            let asked = Asked::of_write(frame.op(), &path, naming);
            let call = Call { frame, on_loss, watch: None, instead, read };
            target.call_asking(call, asked, admission)
        }
        Err(error) => Pending::failed(WriteError::not_sent(Cause::InvalidPath(error))),
    }
}

/// Joins a watched read's result with its watch, which was made when the request was submitted.
pub(crate) fn armed<T>(result: T, watch: Attached) -> Result<(T, Watch), Unread> {
    watch.once().map(|watch| (result, watch)).ok_or(Unread::Code(ErrorCode::NO_WATCHER))
}
