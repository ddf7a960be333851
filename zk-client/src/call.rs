//! The one path from a typed request to its typed answer: encode, submit, await, decode.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};
use zk_proto::{
    AclList, ErrorCode, OpCode,
    frame::RequestFrame,
    jute::{Decode, DecodeError, decode_prefix},
    session::{self, Answer, Auth, Credentials, OnLoss, Outcome, Outgoing, WatchBy, WatchIntent},
};

use crate::{
    asked::{Asked, Mismatch},
    attempt::{Concluded, ProtectedCreate},
    call_options::CallOptions,
    chroot::Chroot,
    cleanup::{Cleanup, Purpose},
    error::{Cause, InDoubt, ReadError, Rejection, SessionEnd, WriteError},
    frames::Frames,
    ids::Ids,
    inbox::{Commands, Cost, Number, Unsent},
    level::Level,
    session::Published,
    stats::Counters,
    sweep::Sweep,
    ticket::Ticket,
    watch::{Attached, Listener},
};
pub(crate) use crate::{
    call_options::{Admission, Target},
    pending::{Pending, Start},
};

/// What callers send to the driver.
#[derive(Debug)]
pub(crate) enum Command {
    Submit(Purpose, Submission),
    /// To leave in one write.
    Batch(Purpose, Vec<Submission>),
    CleanupBegins,
    CleanupEnds,
    /// Its caller waits no longer.
    Withdraw(Arc<Ticket>),
    AddAuth(Auth, Token),
    /// Some listeners on an absolute path have gone.
    Unwatch {
        by: WatchBy,
        path: Arc<str>,
    },
    /// All listeners of some kinds on an absolute path are to go.
    RemoveWatches {
        kinds: &'static [WatchBy],
        path: Arc<str>,
    },
    /// Go on with these, each `host:port`.
    UpdateServers(Vec<Arc<str>>),
    /// Within so long, or in the usual time.
    Close(oneshot::Sender<()>, Option<Duration>),
    Detach(oneshot::Sender<Option<Credentials>>),
}

/// Something that ends up as a request, or as several.
#[derive(Debug)]
pub(crate) enum Submission {
    Request(Outgoing<Token, Listener>),
    Create(Box<ProtectedCreate>, Option<Cost>),
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
            Self::AddAuth(_, token) => token.refuse(end),
            // Whoever waits for these looks at the session itself.
            Self::Close(..)
            | Self::Detach(_)
            | Self::Withdraw(_)
            | Self::UpdateServers(_)
            | Self::Unwatch { .. }
            | Self::RemoveWatches { .. } => {}
        }
    }
}

impl Submission {
    /// It has room.
    pub(crate) fn pay(&mut self, cost: Option<Cost>) {
        match self {
            Self::Request(Outgoing { token: Token::Caller(caller), .. }) => caller.cost = cost,
            Self::Create(_, paid) => *paid = cost,
            Self::Request(_) | Self::Sweep(_) => {}
        }
    }

    /// The room that it takes up.
    pub(crate) const fn cost(&self) -> Option<Cost> {
        match self {
            Self::Request(Outgoing { token: Token::Caller(caller), .. }) => caller.cost,
            Self::Create(_, cost) => *cost,
            Self::Request(_) | Self::Sweep(_) => None,
        }
    }

    pub(crate) fn refuse(self, end: SessionEnd) {
        match self {
            Self::Request(Outgoing { token, .. }) => token.refuse(end),
            Self::Create(create, _) => {
                let nodes = Err(WriteError::NotApplied(Cause::SessionEnded(end)));
                // Whoever waited may have gone.
                let _ = create.done.send(Concluded::new(nodes, None));
            }
            Self::Sweep(_) => {}
        }
    }
}

/// What waits for a reply.
#[derive(Debug)]
pub(crate) enum Token {
    Caller(Caller),
    Closer(oneshot::Sender<()>),
    Attempt(u64),
    /// Apart, since it is larger than all others.
    Sweep(Box<Sweep>),
    Nobody,
}

/// A caller as the driver knows it.
#[derive(Debug)]
pub(crate) struct Caller {
    /// `None` once it has been answered, while its request still has its place.
    pub(crate) reply: Option<oneshot::Sender<Outcome>>,
    /// Of a caller that does not wait for ever.
    pub(crate) ticket: Option<Arc<Ticket>>,
    pub(crate) op: OpCode,
    /// When the driver has heard of it.
    pub(crate) since: Duration,
    /// The room that it takes up, until its request has no place any more.
    pub(crate) cost: Option<Cost>,
}

impl Token {
    /// Whoever waited may have gone.
    fn refuse(self, end: SessionEnd) {
        if let Self::Caller(mut caller) = self {
            caller.answer(Outcome::NotSent(session::Cause::SessionOver(end.into())));
        }
    }
}

impl Caller {
    pub(crate) const fn new(
        op: OpCode,
        reply: oneshot::Sender<Outcome>,
        ticket: Option<Arc<Ticket>>,
    ) -> Self {
        Self { reply: Some(reply), ticket, op, since: Duration::ZERO, cost: None }
    }

    /// Tells the caller, unless that has been done.
    pub(crate) fn answer(&mut self, outcome: Outcome) {
        if let Some(reply) = self.reply.take() {
            // It may have gone; the answer goes with it.
            let _ = reply.send(outcome);
        }
    }
}

/// A caller's end of the way to the driver.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) commands: Commands,
    pub(crate) published: watch::Receiver<Published>,
    pub(crate) chroot: Chroot,
    pub(crate) level: Arc<Level>,
    pub(crate) ids: Arc<Ids>,
    /// Whether all of this is for cleaning up.
    pub(crate) cleanup: Option<Arc<Cleanup>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) options: CallOptions,
    /// The same as they were before the client was made patient.
    pub(crate) told: CallOptions,
    /// Of nodes that are created without a list of their own.
    pub(crate) acl: AclList,
    /// Events kept for a listener, unless it wants otherwise.
    pub(crate) watch_items_max: usize,
    /// Where submissions are held back, while they are.
    pub(crate) held: Option<Arc<Held>>,
}

/// Submissions that are held back; none once they have been let go.
pub(crate) type Held = Mutex<Option<Vec<Submission>>>;

impl Handle {
    /// Passes a submission on, or holds it back. If there is no driver any more, whoever waits for it is
    /// told so.
    pub(crate) fn send(&self, submission: Submission) {
        if let Some(held) = &self.held {
            if let Some(held) = &mut *held.lock().unwrap_or_else(PoisonError::into_inner) {
                held.push(submission);
                return;
            }
        }
        self.command(Command::Submit(self.purpose(), submission));
    }

    /// The same, of one of `len` bytes. It comes back if there is no room for it.
    pub(crate) fn submit(&self, mut submission: Submission, len: usize) -> Result<(), Submission> {
        if self.held.is_some() {
            let Some(cost) = self.commands.take_room(len) else { return Err(submission) };
            submission.pay(Some(cost));
            self.send(submission);
            return Ok(());
        }
        match self.commands.submit(self.purpose(), submission, len) {
            Ok(()) => Ok(()),
            Err(Unsent::NoRoom(submission)) => Err(submission),
            Err(Unsent::Closed(submission)) => {
                submission.refuse(self.published.borrow().end());
                Ok(())
            }
        }
    }

    /// Passes on a protected create, as soon as there is room for it.
    pub(crate) fn create(&self, create: Box<ProtectedCreate>) {
        let len = create.len();
        let mut submission = Submission::Create(create, None);
        if self.held.is_some() {
            if let Some(cost) = self.commands.take_room(len) {
                submission.pay(Some(cost));
                return self.send(submission);
            }
        }
        self.submit_in_turn(submission, len);
    }

    /// Passes on a submission of `len` bytes as soon as there is room for it, behind all that wait for some. Returns its
    /// place among them, if it waits.
    pub(crate) fn submit_in_turn(&self, submission: Submission, len: usize) -> Option<Number> {
        let submitted = self.commands.submit_in_turn(self.purpose(), submission, len);
        submitted.unwrap_or_else(|refused| {
            refused.refuse(self.published.borrow().end());
            None
        })
    }

    /// Passes on all that was held back, to leave in one write.
    pub(crate) fn send_held(&self) {
        let Some(held) = &self.held else { return };
        let batch = held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(batch) = batch.filter(|batch| !batch.is_empty()) {
            self.command(Command::Batch(self.purpose(), batch));
        }
    }

    const fn purpose(&self) -> Purpose {
        if self.cleanup.is_some() { Purpose::Cleanup } else { Purpose::Use }
    }

    pub(crate) fn command(&self, command: Command) {
        if let Err(refused) = self.commands.send(command) {
            refused.refuse(self.published.borrow().end());
        }
    }
}

/// A request and what to make of its answer.
pub(crate) struct Call<T> {
    pub(crate) frame: RequestFrame,
    pub(crate) on_loss: OnLoss,
    pub(crate) watch: Option<(Box<WatchIntent<Listener>>, Attached)>,
    /// What to ask for if a server does not know this: see [`Unread::Again`].
    pub(crate) instead: Option<RequestFrame>,
    pub(crate) read: ReadAnswer<T>,
}

impl Target<'_> {
    /// Submits a request. Never blocks, never fails: what goes wrong comes out of the [`Pending`].
    pub(crate) fn call<T, E: CallError>(
        self,
        call: Call<T>,
        admission: Admission,
    ) -> Pending<T, E> {
        self.call_asking(call, Asked::default(), admission)
    }

    /// The same, of a request whose answer is held against what it asks for.
    #[inline(always)]
    pub(crate) fn call_asking<T, E: CallError>(
        self,
        call: Call<T>,
        asked: Asked,
        admission: Admission,
    ) -> Pending<T, E> {
        let Call { frame, on_loss, watch, instead, read } = call;
        let (intent, watch) = match watch {
            Some((intent, watch)) => (Some(intent), watch),
            None => (None, Attached::Nothing),
        };
        let context = ReplyContext {
            op: frame.op(),
            chroot: self.handle.chroot.clone(),
            level: Level::is_told_by(frame.op()).then(|| self.handle.level.clone()),
            watch,
            has_alternative: instead.is_some(),
            asked,
        };
        Pending::start(self, Start { frame, on_loss, intent, instead }, context, read, admission)
    }
}

/// Makes a typed result of an answer.
pub(crate) type ReadAnswer<T> = fn(Answer, ReplyContext) -> Result<T, Unread>;

/// What is known about a request when its answer comes.
#[derive(Debug)]
pub(crate) struct ReplyContext {
    pub(crate) op: OpCode,
    pub(crate) chroot: Chroot,
    /// Of requests that tell something of the servers.
    pub(crate) level: Option<Arc<Level>>,
    pub(crate) watch: Attached,
    /// Whether there is something else to ask for.
    pub(crate) has_alternative: bool,
    pub(crate) asked: Asked,
}

impl ReplyContext {
    /// Notes what the answer tells of the servers.
    pub(crate) fn learn(&self, note: impl FnOnce(&Level)) {
        if let Some(level) = &self.level {
            note(level);
        }
    }
}

/// An answer that gives no result.
pub(crate) enum Unread {
    Code(ErrorCode),
    Decode(DecodeError),
    /// It is the answer to something else.
    Mismatch(&'static str),
    /// The server does not know what it was asked for, and has certainly not done it. There is an older way to ask.
    Again(ReplyContext),
}

impl From<Mismatch> for Unread {
    fn from(Mismatch(what): Mismatch) -> Self {
        Self::Mismatch(what)
    }
}

impl From<DecodeError> for Unread {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Decodes the body of an answer without error.
pub(crate) fn body<'a, T: Decode<'a>>(answer: &'a Answer) -> Result<T, Unread> {
    if answer.code.is_ok() {
        decode_prefix(&answer.body).map_err(Unread::Decode)
    } else {
        Err(Unread::Code(answer.code))
    }
}

/// Data up to this long is copied out of the buffer that it was read into, which it would otherwise keep
/// from being reused.
const COPY_LEN_MAX: usize = 4 << 10;

/// A part of an answer's body, as something that does not keep more memory than it needs.
pub(crate) fn detached(body: &Bytes, part: &[u8]) -> Bytes {
    if part.len() <= COPY_LEN_MAX { Bytes::copy_from_slice(part) } else { body.slice_ref(part) }
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
