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
    ErrorCode, OpCode,
    session::{Answer, Auth, Outcome, Outgoing, Patience},
};

use super::{
    answer::{Instead, ReadAnswer, Reading, ReplyContext, Unread, Unresolved},
    ask::{Call, Target},
    call_options::Admission,
    handle::Handle,
    span::RequestSpan,
    watch_stream::Attached,
};
use crate::{
    carry::{
        attempt::{Concluded, CreatedNodes, Started},
        node::OwnedNode,
    },
    driver::{
        command::{Command, Submission},
        token::{Caller, Token},
    },
    error::{CallError, Cause, MultiError, ReadError, SessionEnd, WriteError},
    queue::{PermitWait, Ticket, WeakCommandSender},
    report::stats::Counters,
    watch::Listener,
};

/// A request in flight; resolves to its result.
///
/// Does not borrow anything. Dropping it does not withdraw a submitted request: the reply is discarded on arrival. A
/// request that was awaited and waits for room has not been submitted yet.
///
/// Dropping a create does not undo it. A [protected](crate::Create::protected) one leaves no node nevertheless: the
/// session determines its outcome and deletes the node. Of one with [parents](crate::Create::parents), the parents
/// created so far stay.
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
    line: Option<Box<PermitWait<Command>>>,
    deadline: Option<Box<Deadline>>,
    span: RequestSpan,
}

enum State<T, E> {
    Submitted(oneshot::Receiver<Outcome>, OpCode, Reading<T>),
    /// Several requests. If there is a deadline, the session carries them out.
    Working(Work<T, E>),
    Failed(Box<E>),
    /// With the node that was to be replaced and was not, if there is one.
    Finished(Option<Box<OwnedNode>>),
}

/// What is done by several requests. The other result is the node that was to be replaced and was not.
pub(super) type Work<T, E> =
    Pin<Box<dyn Future<Output = (Result<T, E>, Option<OwnedNode>)> + Send + Sync>>;

/// A caller's timeout.
struct Deadline {
    at: Instant,
    /// Created on the first wait: requests can be submitted outside of a runtime.
    sleep: Option<Pin<Box<Sleep>>>,
    ticket: Arc<Ticket>,
    /// They keep no session alive.
    commands: WeakCommandSender<Command>,
    counters: Arc<Counters>,
    /// Whether the driver has been notified, and will answer with what is known.
    told: bool,
}

#[expect(private_bounds, reason = "only this crate makes requests")]
impl<T, E: CallError> Pending<T, E> {
    /// A request that never reached the driver.
    pub(crate) fn failed(error: E) -> Self {
        Self {
            state: State::Failed(Box::new(error)),
            line: None,
            deadline: None,
            span: RequestSpan::NONE,
        }
    }

    pub(super) fn start(
        target: Target<'_>,
        call: Call,
        read: ReadAnswer<T>,
        admission: Admission,
    ) -> Self {
        let Target { handle, options } = target;
        let Call { frame, on_loss, watch, instead, asked } = call;
        let (intent, watch) = match watch {
            Some((intent, watch)) => (Some(intent), watch),
            None => (None, Attached::Nothing),
        };
        let reading = match read {
            ReadAnswer::Alone(read) => Reading::Alone(read),
            ReadAnswer::InContext(read) => {
                let chroot = handle.chroot.clone();
                Reading::InContext(read, Box::new(ReplyContext { chroot, watch, asked, instead }))
            }
        };
        let request =
            Outgoing { frame, token: (), watch: intent, on_loss, patience: options.patience };
        Self::submit(target, request, reading, admission)
    }

    /// Ends this span with the request.
    pub(super) fn in_span(self, span: RequestSpan) -> Self {
        Self { span, ..self }
    }

    /// The older request, whose reply is read in the same context.
    fn instead(instead: Instead, reading: Reading<T>) -> Self {
        let Instead { handle, options, frame, on_loss, .. } = instead;
        let patience = options.patience;
        let request = Outgoing { frame, token: (), watch: None, on_loss, patience };
        let target = Target { handle: &handle, options };
        Self::submit(target, request, reading, Admission::Waiting)
    }

    #[inline(always)]
    pub(super) fn submit(
        target: Target<'_>,
        request: Outgoing<(), Listener>,
        reading: Reading<T>,
        admission: Admission,
    ) -> Self {
        let Outgoing { frame, watch, on_loss, patience, .. } = request;
        let (Target { handle, options }, deadline) = (target, Deadline::of(target));
        let ticket = deadline.as_ref().map(|deadline| deadline.ticket.clone());
        let (reply, outcome) = oneshot::channel();
        let (op, len) = (frame.op(), frame.len());
        let token = Token::Caller(Caller::new(op, reply, ticket));
        let submission = Submission::Request(Outgoing { frame, token, watch, on_loss, patience });
        let mut line = None;
        let mut state = State::Submitted(outcome, op, reading);
        if let Err(command) = handle.submit(submission, len) {
            let waits = admission == Admission::Waiting && patience != Patience::FailFast;
            if waits || options.in_turn {
                let place = handle.submit_in_turn(command, len);
                line = place
                    .filter(|_| waits)
                    .map(|place| Box::new(handle.shared.commands.permit_wait(place)));
            } else {
                handle.shared.counters.refused(op);
                state = State::Failed(Box::new(E::not_sent(Cause::QueueFull)));
            }
        }
        Self { state, line, deadline, span: RequestSpan::NONE }
    }

    /// Creates that the session carries out.
    pub(super) fn creating(
        target: Target<'_>,
        started: Started,
        made: fn(CreatedNodes) -> Result<T, E>,
    ) -> Self
    where
        T: 'static,
        E: 'static,
    {
        let work = Box::pin(async move {
            let Concluded { nodes, kept, .. } = started.await;
            (made(nodes), kept)
        });
        Self { deadline: Deadline::of(target), ..Self::working(work) }
    }

    /// What is done by several requests.
    pub(super) fn working(work: Work<T, E>) -> Self {
        Self { state: State::Working(work), line: None, deadline: None, span: RequestSpan::NONE }
    }
}

impl Pending<(), ReadError> {
    pub(crate) fn add_auth(handle: &Handle, auth: Auth) -> Self {
        let (op, (reply, outcome)) = (OpCode::AUTH, oneshot::channel());
        let token = Token::Caller(Caller::new(op, reply, None));
        handle.command_in_turn(Command::AddAuth(handle.purpose(), auth, token));
        let read: fn(&Answer) -> _ = |answer| match answer.code {
            ErrorCode::OK => Ok(()),
            code => Err(Unread::Code(code)),
        };
        let state = State::Submitted(outcome, op, Reading::Alone(read));
        Self { state, line: None, deadline: None, span: RequestSpan::NONE }
    }
}

impl Pending<Result<Vec<OwnedNode>, MultiError>, WriteError> {
    /// Returns the node that was to be [replaced](crate::CreateAllProtected::replacing) and was not, for another
    /// attempt: once this has resolved to an error, unless the session has ended. The error may be that this node is
    /// gone.
    ///
    /// If it is not taken back, it is deleted when this is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = zk_testkit::TestServer::start().await?;
    /// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
    /// use zk_client::CreateMode;
    ///
    /// let old = zk.create("/old", b"").mode(CreateMode::Ephemeral).protected().await?;
    /// let old = old.owned.ok_or("it is protected")?;
    /// let new = zk.create("/new", b"").mode(CreateMode::Ephemeral);
    /// // Moves, unless another client has closed the gate.
    /// let mut moving = zk.create_all_protected([new]).check("/gate").replacing(old).submit();
    /// let refused = (&mut moving).await?.is_err();
    /// let kept = moving.take_back().ok_or("it has moved")?;
    /// assert!(refused && zk.exists(kept.path()).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_back(&mut self) -> Option<OwnedNode> {
        match &mut self.state {
            State::Finished(kept) => kept.take().map(|kept| *kept),
            _ => None,
        }
    }
}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Submitted(..) | State::Working(_) => "Pending(submitted)",
            State::Failed(_) => "Pending(failed)",
            State::Finished(_) => "Pending(finished)",
        })
    }
}

// Nothing in it is pinned.
impl<T, E> Unpin for Pending<T, E> {}

impl<T, E: CallError> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = self.poll_result(cx);
        if let Poll::Ready(result) = &result {
            self.span.end(result.as_ref().err());
        }
        result
    }
}

#[expect(private_bounds, reason = "only this crate makes requests")]
impl<T, E: CallError> Pending<T, E> {
    #[inline(always)]
    fn poll_result(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = self;
        loop {
            let State::Submitted(outcome, op, reading) = &mut this.state else {
                return this.poll_rare(cx);
            };
            let Poll::Ready(outcome) = Pin::new(outcome).poll(cx) else { return this.wait(cx) };
            let (op, reading) = (*op, reading.take());
            this.state = State::Finished(None);
            let answer = match outcome {
                Ok(Outcome::Answered(answer)) => answer,
                Ok(Outcome::NotSent(cause)) => return Poll::Ready(Err(E::not_sent(cause.into()))),
                Ok(Outcome::Unknown(cause)) => {
                    return Poll::Ready(Err(E::unknown(op, cause.into())));
                }
                // The driver was dropped with its runtime.
                Err(_) => {
                    let cause = Cause::SessionEnded(SessionEnd::Closed);
                    return Poll::Ready(Err(E::unknown(op, cause)));
                }
            };
            let result = match reading {
                Reading::Alone(read) => read(&answer),
                Reading::InContext(read, context) => match read(answer, context) {
                    Ok(result) => Ok(result),
                    Err(Unresolved::Unread(unread)) => Err(unread),
                    Err(Unresolved::Again(instead, context)) => {
                        this.go_on_with(*instead, Reading::InContext(read, context));
                        continue;
                    }
                },
                Reading::Created(read, requested) => match read(op, answer, requested) {
                    Ok(result) => Ok(result),
                    Err(Unresolved::Unread(unread)) => Err(unread),
                    Err(Unresolved::Again(instead, requested)) => {
                        this.go_on_with(*instead, Reading::Created(read, requested));
                        continue;
                    }
                },
            };
            return Poll::Ready(result.map_err(|unread| unread.of(op)));
        }
    }

    fn go_on_with(&mut self, instead: Instead, reading: Reading<T>) {
        let span = mem::replace(&mut self.span, RequestSpan::NONE);
        let at = self.deadline.as_ref().map(|deadline| deadline.at);
        *self = Self::instead(instead, reading).in_span(span);
        if let (Some(deadline), Some(at)) = (&mut self.deadline, at) {
            // The caller's time counts from the first request.
            deadline.at = at;
        }
    }

    /// What is not one submitted request.
    fn poll_rare(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        if let State::Working(work) = &mut self.state {
            let Poll::Ready((result, kept)) = work.as_mut().poll(cx) else { return self.wait(cx) };
            self.state = State::Finished(kept.map(Box::new));
            return Poll::Ready(result);
        }
        match mem::replace(&mut self.state, State::Finished(None)) {
            State::Failed(error) => Poll::Ready(Err(*error)),
            _ => panic!("a request was polled after it had finished"),
        }
    }

    /// Waits on, unless the timeout has passed.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        if !self.gives_up(cx) {
            return Poll::Pending;
        }
        let cause = Cause::DeadlineExceeded;
        let error = match self.state {
            // The session sees to it that no node is left.
            State::Working(_) => E::unknown(OpCode::CREATE2, cause),
            _ => E::not_sent(cause),
        };
        (self.state, self.line) = (State::Finished(None), None);
        Poll::Ready(Err(error))
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
        match self.state {
            // The session counts what it carries on with.
            State::Working(_) => return true,
            State::Submitted(_, op, _) if deadline.ticket.withdraw() => {
                deadline.counters.refused(op);
                return true;
            }
            _ => {}
        }
        deadline.told = true;
        if let Some(commands) = deadline.commands.upgrade() {
            // Without a driver there will be an answer too.
            let _ = commands.send(Command::Withdraw(deadline.ticket.clone()));
        }
        false
    }
}

impl Deadline {
    /// The request's timeout, if it has one. One beyond the range of clocks never expires.
    fn of(Target { handle, options }: Target<'_>) -> Option<Box<Self>> {
        let timeout = options.timeout?;
        let at = Instant::now().checked_add(timeout)?;
        let (ticket, commands) = (Arc::default(), handle.shared.commands.downgrade());
        let counters = handle.shared.counters.clone();
        Some(Box::new(Self { at, sleep: None, ticket, commands, counters, told: false }))
    }
}
