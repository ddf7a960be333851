//! A request in flight, as its caller has it.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{
    sync::oneshot,
    time::{Instant, Sleep},
};
use zk_proto::{
    frame::RequestFrame,
    session::{OnLoss, Outcome, Outgoing, Patience, WatchIntent},
};

use crate::{
    driver::{
        command::{Command, Submission},
        token::{Caller, Token},
    },
    error::{CallError, Cause, SessionEnd},
    queue::{InLine, Ticket},
    request::{
        answer::{ReadAnswer, ReplyContext, Unread},
        call_options::{Admission, CallOptions},
        handle::Handle,
        target::Target,
    },
    watch::Listener,
};

/// A request in flight; resolves to its result.
///
/// Does not borrow anything. Dropping it does not withdraw a submitted request: the reply is discarded on arrival. A
/// builder that was awaited and waits for room has not submitted anything yet.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// zk.create("/a", b"1").await?;
/// // All three are in flight, in this order.
/// let before = zk.get("/a").submit();
/// let write = zk.set("/a", b"2").submit();
/// let after = zk.get("/a").submit();
/// assert_eq!(before.await?.0, "1");
/// assert_eq!(after.await?.0, "2");
/// write.await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a request that fails is only noticed here"]
pub struct Pending<T, E> {
    state: State<T, E>,
    /// Its place in the line, if it waits for room; `None` if it was submitted regardless of the caller.
    line: Option<Box<InLine<Command>>>,
    deadline: Option<Box<Deadline>>,
    /// The alternative if the server does not know the request.
    instead: Option<Box<Instead>>,
}

enum State<T, E> {
    Submitted(oneshot::Receiver<Outcome>, ReplyContext, ReadAnswer<T>),
    Failed(E),
    Finished,
}

/// The parts of a request to be submitted.
pub(crate) struct Start {
    pub(crate) frame: RequestFrame,
    pub(crate) on_loss: OnLoss,
    pub(crate) intent: Option<Box<WatchIntent<Listener>>>,
    pub(crate) instead: Option<RequestFrame>,
}

/// A caller's timeout.
struct Deadline {
    at: Instant,
    /// Created on the first wait: requests can be submitted outside of a runtime.
    sleep: Option<Pin<Box<Sleep>>>,
    ticket: Arc<Ticket>,
    handle: Handle,
    /// Whether the driver has been notified, and will answer with what is known.
    told: bool,
}

/// The older alternative.
struct Instead {
    handle: Handle,
    options: CallOptions,
    frame: RequestFrame,
    on_loss: OnLoss,
}

#[expect(private_bounds, reason = "only this crate makes requests")]
impl<T, E: CallError> Pending<T, E> {
    /// A request that never reached the driver.
    pub(crate) const fn failed(error: E) -> Self {
        Self { state: State::Failed(error), line: None, deadline: None, instead: None }
    }

    pub(crate) fn start(
        target: Target<'_>,
        start: Start,
        context: ReplyContext,
        read: ReadAnswer<T>,
        admission: Admission,
    ) -> Self {
        let Target { handle, options } = target;
        let Start { frame, on_loss, intent, instead } = start;
        let instead = instead
            .map(|frame| Box::new(Instead { handle: handle.clone(), options, frame, on_loss }));
        // A timeout beyond the range of clocks never expires.
        let end = options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let deadline = end.map(|at| {
            Box::new(Deadline {
                at,
                sleep: None,
                ticket: Arc::default(),
                handle: handle.clone(),
                told: false,
            })
        });
        let ticket = deadline.as_ref().map(|deadline| deadline.ticket.clone());
        let patience = options.patience;
        let (reply, outcome) = oneshot::channel();
        let (op, len) = (frame.op(), frame.len());
        let token = Token::Caller(Caller::new(op, reply, ticket));
        let submission =
            Submission::Request(Outgoing { frame, token, watch: intent, on_loss, patience });
        let mut line = None;
        let mut state = State::Submitted(outcome, context, read);
        if let Err(command) = handle.submit(submission, len) {
            let waits = admission == Admission::Waiting && patience != Patience::FailFast;
            if waits || options.in_turn {
                let place = handle.submit_in_turn(command, len);
                line = place
                    .filter(|_| waits)
                    .map(|place| Box::new(handle.shared.commands.in_line(place)));
            } else {
                state = State::Failed(E::not_sent(Cause::QueueFull));
            }
        }
        Self { state, line, deadline, instead }
    }
}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Submitted(..) => "Pending(submitted)",
            State::Failed(_) => "Pending(failed)",
            State::Finished => "Pending(finished)",
        })
    }
}

// Nothing in it is pinned.
impl<T, E> Unpin for Pending<T, E> {}

impl<T, E: CallError> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            match this.step(cx) {
                Poll::Ready(Some(result)) => return Poll::Ready(result),
                Poll::Ready(None) => {}
                Poll::Pending if !this.gives_up(cx) => return Poll::Pending,
                Poll::Pending => {
                    (this.state, this.line) = (State::Finished, None);
                    return Poll::Ready(Err(E::not_sent(Cause::DeadlineExceeded)));
                }
            }
        }
    }
}

#[expect(private_bounds, reason = "only this crate makes requests")]
impl<T, E: CallError> Pending<T, E> {
    /// Advances by one step: returns the result, or nothing yet.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, E>>> {
        let outcome = match &mut self.state {
            State::Submitted(outcome, ..) => match Pin::new(outcome).poll(cx) {
                Poll::Ready(outcome) => outcome.ok(),
                Poll::Pending => return Poll::Pending,
            },
            State::Failed(_) | State::Finished => None,
        };
        Poll::Ready(match mem::replace(&mut self.state, State::Finished) {
            State::Submitted(_, context, read) => self.finish(outcome, context, read),
            State::Failed(error) => Some(Err(error)),
            State::Finished => panic!("a request was polled after it had finished"),
        })
    }

    /// Whether the timeout has passed and the request will certainly not be carried out. If it may be, asks the driver
    /// what is known.
    fn gives_up(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = &mut self.deadline else { return false };
        if deadline.told {
            return false;
        }
        let at = deadline.at;
        let sleep = deadline.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.as_mut().poll(cx).is_pending() {
            return false;
        }
        if deadline.ticket.withdraw() {
            return true;
        }
        deadline.told = true;
        deadline.handle.command(Command::Withdraw(deadline.ticket.clone()));
        false
    }

    /// Turns an outcome into a result, unless there is an alternative request. No outcome means that the driver was
    /// dropped with its runtime.
    fn finish(
        &mut self,
        outcome: Option<Outcome>,
        context: ReplyContext,
        read: ReadAnswer<T>,
    ) -> Option<Result<T, E>> {
        let op = context.op;
        Some(match outcome {
            Some(Outcome::Answered(answer)) => {
                let code = answer.code;
                match read(answer, context) {
                    Ok(result) => Ok(result),
                    Err(Unread::Code(code)) => Err(E::answered(op, code)),
                    Err(Unread::Decode(error)) => Err(E::unknown(op, Cause::Undecodable(error))),
                    Err(Unread::Mismatch(what)) => Err(E::unknown(op, Cause::Mismatch(what))),
                    Err(Unread::Again(context)) => match self.instead.take() {
                        Some(instead) => {
                            *self = instead.submit(context, read);
                            return None;
                        }
                        None => Err(E::answered(op, code)),
                    },
                }
            }
            Some(Outcome::NotSent(cause)) => Err(E::not_sent(cause.into())),
            Some(Outcome::Unknown(cause)) => Err(E::unknown(op, cause.into())),
            None => Err(E::unknown(op, Cause::SessionEnded(SessionEnd::Closed))),
        })
    }
}

impl Instead {
    fn submit<T, E: CallError>(self, context: ReplyContext, read: ReadAnswer<T>) -> Pending<T, E> {
        let Self { handle, options, frame, on_loss } = self;
        let context = ReplyContext { op: frame.op(), has_alternative: false, ..context };
        let target = Target { handle: &handle, options };
        let start = Start { frame, on_loss, intent: None, instead: None };
        Pending::start(target, start, context, read, Admission::Waiting)
    }
}
