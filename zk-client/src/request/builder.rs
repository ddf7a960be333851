//! Requests that have not been submitted.

use std::{fmt, future::IntoFuture, marker::PhantomData, time::Duration};

use zk_proto::{
    ErrorCode,
    session::{Answer, WatchBy},
};

use super::{
    answer::{ReadAnswer, ReadInContext, Unread},
    ask::{Arm, Ask, Target},
    call_options::Admission,
    pending::Pending,
    span::RequestSpan,
};
use crate::{
    error::{CallError, ReadError},
    watch::{Listener, Watch},
};

/// A request of a [`Client`](crate::Client): await it for its result, a `T`.
///
/// Its options are methods. Those of one operation exist for its result only; the method of
/// [`Client`](crate::Client) that makes the request lists them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// use std::time::Duration;
///
/// let (there, changed) = zk.exists("/ready").timeout(Duration::from_secs(5)).watch().await?;
/// zk.create("/ready", b"").await?;
/// assert!(there.is_none());
/// println!("{}", changed.await?.kind);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Request<'a, T, E> {
    pub(super) target: Target<'a>,
    pub(super) ask: Ask<'a>,
    read: ReadAnswer<T>,
    error: PhantomData<fn() -> E>,
}

impl<'a, T, E> Request<'a, T, E> {
    pub(crate) const fn new(
        target: Target<'a>,
        ask: Ask<'a>,
        read: fn(&Answer) -> Result<T, Unread>,
    ) -> Self {
        Self { target, ask, read: ReadAnswer::Alone(read), error: PhantomData }
    }

    /// A request whose reply is read together with what was asked for.
    pub(crate) const fn in_context(
        target: Target<'a>,
        ask: Ask<'a>,
        read: ReadInContext<T>,
    ) -> Self {
        Self { target, ask, read: ReadAnswer::InContext(read), error: PhantomData }
    }

    /// The same request, whose reply is read in another way.
    pub(super) fn read_as<U>(self, read: fn(&Answer) -> Result<U, Unread>) -> Request<'a, U, E> {
        Request::new(self.target, self.ask, read)
    }
}

#[expect(private_bounds, reason = "only this crate makes requests")]
impl<T, E: CallError> Request<'_, T, E> {
    /// Submits the request now, behind all earlier submissions: it is sent even if the returned future is dropped.
    /// Where awaiting the request would wait for room, this fails with [`QueueFull`](crate::Cause::QueueFull).
    pub fn submit(self) -> Pending<T, E> {
        self.start(Admission::Now)
    }

    /// Bounds the wait for the reply, from now on. A request that has not been sent by then never will be; if it has
    /// been sent, the reply is discarded, and its effect is unknown. Either way it fails with
    /// [`DeadlineExceeded`](crate::Cause::DeadlineExceeded), and the connection stays as it is.
    ///
    /// Takes effect when the result is awaited. Default: the client's [option](crate::Client::with), or no bound but
    /// the session's end.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.target.options.timeout = Some(timeout);
        self
    }

    /// Fails wherever the request would have to wait for a connection or for room, with
    /// [`NotConnected`](crate::Cause::NotConnected), [`Disconnected`](crate::Cause::Disconnected) or
    /// [`QueueFull`](crate::Cause::QueueFull). Otherwise requests outlive connections: unsent requests wait for the
    /// next one, and reads are sent again.
    pub const fn fail_fast(mut self) -> Self {
        self.target.options = self.target.options.fail_fast();
        self
    }

    fn start(self, admission: Admission) -> Pending<T, E> {
        let Self { target, ask, read, .. } = self;
        let path = ask.path();
        match ask.call(target) {
            Ok(call) => {
                let span = RequestSpan::begin(target.handle, call.frame.op(), path);
                Pending::start(target, call, read, admission).in_span(span)
            }
            Err(error) => Pending::failed(error),
        }
    }
}

impl<T, E: CallError> IntoFuture for Request<'_, T, E> {
    type Output = Result<T, E>;
    type IntoFuture = Pending<T, E>;
    fn into_future(self) -> Pending<T, E> {
        self.start(Admission::Waiting)
    }
}

/// The result of a read that can arm a watch.
pub(crate) trait Watchable: Sized {
    const BY: WatchBy;
    fn read(answer: &Answer) -> Result<Self, Unread>;
}

#[expect(private_bounds, reason = "only this crate makes requests")]
impl<'a, T: Watchable> Request<'a, T, ReadError> {
    pub(crate) const fn watchable(target: Target<'a>, ask: Ask<'a>) -> Self {
        Self::new(target, ask, T::read)
    }

    /// Also arms a [`Watch`], in the same step on the server: no change falls in between.
    pub fn watch(mut self) -> Request<'a, (T, Watch), ReadError> {
        self.ask.arm(Arm::Once(T::BY));
        Request::in_context(self.target, self.ask, |answer, context| {
            let result = T::read(&answer)?;
            let watch = context.watch.once().ok_or(Unread::Code(ErrorCode::NO_WATCHER))?;
            Ok((result, watch))
        })
    }

    /// Also arms a watch for this listener, if there is one.
    pub(crate) fn heard_by(mut self, listener: Option<Listener>) -> Self {
        if let Some(listener) = listener {
            self.ask.arm(Arm::Heard(Box::new((T::BY, listener))));
        }
        self
    }
}

impl<T, E> Clone for Request<'_, T, E> {
    fn clone(&self) -> Self {
        Self { target: self.target, ask: self.ask.clone(), read: self.read, error: PhantomData }
    }
}

impl<T, E> fmt::Debug for Request<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.ask).finish()
    }
}
