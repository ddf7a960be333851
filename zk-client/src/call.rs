//! The one path from a typed request to its typed answer: encode, submit, await, decode.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use tokio::sync::{
    OwnedSemaphorePermit, Semaphore,
    mpsc::{self, error::SendError},
    oneshot, watch,
};
use zk_proto::{
    ErrorCode, OpCode,
    frame::RequestFrame,
    jute::{Decode, DecodeError, decode_prefix},
    session::{self, Answer, Credentials, OnLoss, Outcome, Outgoing, WatchBy, WatchIntent},
};

use crate::{
    attempt::{Concluded, ProtectedCreate},
    chroot::Chroot,
    cleanup::{Cleanup, Purpose},
    error::{Cause, InDoubt, ReadError, Rejection, SessionEnd, WriteError},
    ids::Ids,
    level::Level,
    session::Published,
    sweep::Sweep,
    watch::{Listener, Watch},
};

/// What callers send to the driver.
#[derive(Debug)]
pub(crate) enum Command {
    Submit(Purpose, Submission),
    /// To leave in one write.
    Batch(Purpose, Vec<Submission>),
    CleanupBegins,
    CleanupEnds,
    Close(oneshot::Sender<()>),
    Detach(oneshot::Sender<Option<Credentials>>),
}

/// Something that ends up as a request, or as several.
#[derive(Debug)]
pub(crate) enum Submission {
    Request(Outgoing<Token, Listener>),
    Create(Box<ProtectedCreate>),
    Sweep(Sweep),
}

impl Command {
    /// Answers what has found no driver any more.
    fn refuse(self, end: SessionEnd) {
        match self {
            Self::Submit(_, submission) => submission.refuse(end),
            Self::Batch(_, batch) => {
                batch.into_iter().for_each(|submission| submission.refuse(end));
            }
            Self::CleanupBegins | Self::CleanupEnds => {}
            // Whoever waits for these looks at the session itself.
            Self::Close(_) | Self::Detach(_) => {}
        }
    }
}

impl Submission {
    pub(crate) fn refuse(self, end: SessionEnd) {
        // Whoever waited may have gone.
        match self {
            Self::Request(Outgoing { token: Token::Caller { reply, .. }, .. }) => {
                let _ = reply.send(Outcome::NotSent(session::Cause::SessionOver(end.into())));
            }
            Self::Create(create) => {
                let nodes = Err(WriteError::NotApplied(Cause::SessionEnded(end)));
                let _ = create.done.send(Concluded { nodes, kept: None });
            }
            Self::Request(_) | Self::Sweep(_) => {}
        }
    }
}

/// What waits for a reply.
#[derive(Debug)]
pub(crate) enum Token {
    Caller {
        reply: oneshot::Sender<Outcome>,
        /// Gives room for another request once this one is answered.
        _permit: OwnedSemaphorePermit,
    },
    Closer(oneshot::Sender<()>),
    Attempt(u64),
    Sweep(Sweep),
    Nobody,
}

/// A caller's end of the channel to the driver.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) published: watch::Receiver<Published>,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) chroot: Chroot,
    pub(crate) level: Arc<Level>,
    pub(crate) ids: Arc<Ids>,
    /// Whether all of this is for cleaning up.
    pub(crate) cleanup: Option<Arc<Cleanup>>,
    /// Where submissions are held back, while they are.
    pub(crate) held: Option<Arc<Mutex<Vec<Submission>>>>,
}

impl Handle {
    /// Passes a submission on, or holds it back. If there is no driver any more, whoever waits for it is
    /// told so.
    pub(crate) fn send(&self, submission: Submission) {
        match &self.held {
            Some(held) => held.lock().unwrap_or_else(PoisonError::into_inner).push(submission),
            None => self.command(Command::Submit(self.purpose(), submission)),
        }
    }

    /// Passes on all that was held back, to leave in one write.
    pub(crate) fn send_held(&self) {
        let Some(held) = &self.held else { return };
        let batch = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
        if !batch.is_empty() {
            self.command(Command::Batch(self.purpose(), batch));
        }
    }

    const fn purpose(&self) -> Purpose {
        if self.cleanup.is_some() { Purpose::Cleanup } else { Purpose::Use }
    }

    fn command(&self, command: Command) {
        if let Err(SendError(refused)) = self.commands.send(command) {
            refused.refuse(self.published.borrow().end());
        }
    }

    /// Submits a request. Never waits, never fails: what goes wrong comes out of the [`Pending`].
    pub(crate) fn call<T, E: CallError>(&self, call: Call<'_, T>) -> Pending<T, E> {
        let Call { frame, on_loss, watch, read } = call;
        let (watch, intent) = match watch {
            Some((path, by)) => {
                let (watch, watcher) = Watch::new(self.chroot.clone());
                (Some(watch), Some(WatchIntent { path: Arc::from(path), by, watcher }))
            }
            None => (None, None),
        };
        let context = ReplyContext {
            op: frame.op(),
            chroot: self.chroot.clone(),
            level: self.level.clone(),
            watch,
        };
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            return Pending::failed(E::not_sent(Cause::QueueFull));
        };
        let (reply, outcome) = oneshot::channel();
        let submission = Submission::Request(Outgoing {
            frame,
            token: Token::Caller { reply, _permit: permit },
            watch: intent,
            on_loss,
        });
        self.send(submission);
        Pending { state: PendingState::Submitted { outcome, context, read } }
    }
}

/// A request and what to make of its answer.
pub(crate) struct Call<'a, T> {
    pub(crate) frame: RequestFrame,
    pub(crate) on_loss: OnLoss,
    /// The absolute path to watch, and how.
    pub(crate) watch: Option<(&'a str, WatchBy)>,
    pub(crate) read: ReadAnswer<T>,
}

/// Makes a typed result of an answer.
pub(crate) type ReadAnswer<T> = fn(Answer, ReplyContext) -> Result<T, Unread>;

/// What is known about a request when its answer comes.
#[derive(Debug)]
pub(crate) struct ReplyContext {
    pub(crate) op: OpCode,
    pub(crate) chroot: Chroot,
    pub(crate) level: Arc<Level>,
    pub(crate) watch: Option<Watch>,
}

/// An answer that gives no result.
pub(crate) enum Unread {
    Code(ErrorCode),
    Decode(DecodeError),
}

impl From<DecodeError> for Unread {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Decodes the body of an answer without error.
pub(crate) fn body<T: for<'a> Decode<'a>>(answer: &Answer) -> Result<T, Unread> {
    if answer.code.is_ok() {
        decode_prefix(&answer.body).map_err(Unread::Decode)
    } else {
        Err(Unread::Code(answer.code))
    }
}

/// A request under way; resolves to its result.
///
/// Does not borrow anything. Dropping it does not take the request back: the answer, when it comes, is
/// discarded.
#[must_use = "a request that fails is only noticed here"]
pub struct Pending<T, E> {
    state: PendingState<T, E>,
}

enum PendingState<T, E> {
    Submitted { outcome: oneshot::Receiver<Outcome>, context: ReplyContext, read: ReadAnswer<T> },
    Failed(E),
    Finished,
}

impl<T, E> Pending<T, E> {
    /// A request that never got as far as the driver.
    pub(crate) const fn failed(error: E) -> Self {
        Self { state: PendingState::Failed(error) }
    }
}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            PendingState::Submitted { .. } => "Pending(submitted)",
            PendingState::Failed(_) => "Pending(failed)",
            PendingState::Finished => "Pending(finished)",
        })
    }
}

// Nothing in it is pinned.
impl<T, E> Unpin for Pending<T, E> {}

impl<T, E: CallError> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.state {
            PendingState::Submitted { outcome, .. } => match Pin::new(outcome).poll(cx) {
                Poll::Ready(outcome) => outcome.ok(),
                Poll::Pending => return Poll::Pending,
            },
            PendingState::Failed(_) | PendingState::Finished => None,
        };
        Poll::Ready(match std::mem::replace(&mut self.state, PendingState::Finished) {
            PendingState::Submitted { context, read, .. } => finish(outcome, context, read),
            PendingState::Failed(error) => Err(error),
            PendingState::Finished => panic!("a request was polled after it had finished"),
        })
    }
}

/// Turns an outcome into a result. No outcome at all means that the driver has gone with its runtime.
fn finish<T, E: CallError>(
    outcome: Option<Outcome>,
    context: ReplyContext,
    read: ReadAnswer<T>,
) -> Result<T, E> {
    let op = context.op;
    match outcome {
        Some(Outcome::Answered(answer)) => match read(answer, context) {
            Ok(result) => Ok(result),
            Err(Unread::Code(code)) => Err(E::answered(op, code)),
            Err(Unread::Decode(error)) => Err(E::unknown(op, Cause::Undecodable(error))),
        },
        Some(Outcome::NotSent(cause)) => Err(E::not_sent(cause.into())),
        Some(Outcome::Unknown(cause)) => Err(E::unknown(op, cause.into())),
        None => Err(E::unknown(op, Cause::SessionEnded(SessionEnd::Closed))),
    }
}

/// How the two kinds of errors tell an outcome.
pub(crate) trait CallError: Sized {
    fn answered(op: OpCode, code: ErrorCode) -> Self;
    fn not_sent(cause: Cause) -> Self;
    fn unknown(op: OpCode, cause: Cause) -> Self;
}

impl CallError for ReadError {
    fn answered(_: OpCode, code: ErrorCode) -> Self {
        match Verdict::of(code) {
            Verdict::Rejected => Self::Rejected(code.into()),
            Verdict::NotApplied(cause) | Verdict::InDoubt(cause) => Self::Unavailable(cause),
        }
    }
    fn not_sent(cause: Cause) -> Self {
        Self::Unavailable(cause)
    }
    fn unknown(_: OpCode, cause: Cause) -> Self {
        Self::Unavailable(cause)
    }
}

impl CallError for WriteError {
    fn answered(op: OpCode, code: ErrorCode) -> Self {
        match Verdict::of(code) {
            Verdict::Rejected => Self::Rejected(Rejection::from(code)),
            Verdict::NotApplied(cause) => Self::NotApplied(cause),
            Verdict::InDoubt(cause) => Self::unknown(op, cause),
        }
    }
    fn not_sent(cause: Cause) -> Self {
        Self::NotApplied(cause)
    }
    fn unknown(op: OpCode, cause: Cause) -> Self {
        Self::InDoubt(InDoubt { op, cause })
    }
}

/// What an error code of a server means for the request.
pub(crate) enum Verdict {
    Rejected,
    NotApplied(Cause),
    InDoubt(Cause),
}

impl Verdict {
    pub(crate) fn of(code: ErrorCode) -> Self {
        let lost = || Cause::Disconnected(session::LinkError::Other(code.to_string()));
        match code {
            ErrorCode::THROTTLED_OP => Self::NotApplied(Cause::Throttled),
            code if code.ends_session() => {
                Self::NotApplied(Cause::SessionEnded(SessionEnd::Expired))
            }
            ErrorCode::AUTH_FAILED => Self::NotApplied(Cause::SessionEnded(SessionEnd::AuthFailed)),
            // Made by clients; what a proxy in between may mean by them is open.
            ErrorCode::CONNECTION_LOSS
            | ErrorCode::OPERATION_TIMEOUT
            | ErrorCode::REQUEST_TIMEOUT => Self::InDoubt(lost()),
            _ => Self::Rejected,
        }
    }
}
