//! What servers know of this session.

use bytes::Bytes;
use tokio::sync::oneshot;
use zk_proto::{
    ClientInfo, ErrorCode, OpCode, Secret, Str,
    frame::RequestFrame,
    request::{GetEphemeralsRequest, GetEphemeralsResponse, WhoAmIRequest, WhoAmIResponse},
    session::{Auth, OnLoss, Outcome},
};

use super::builder::awaitable;
use crate::{
    driver::{
        command::Command,
        token::{Caller, Token},
    },
    error::{CallError as _, Cause, ReadError, SessionEnd},
    request::{
        answer::body, call::Call, call_options::Admission, pending::Pending, target::Target,
    },
};

awaitable! {
    Ephemerals: Vec<String>, ReadError;
    WhoAmI: Vec<ClientInfo>, ReadError;
}

/// Lists this session's ephemeral nodes: see [`Client::ephemerals`](crate::Client::ephemerals).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Ephemerals<'a> {
    target: Target<'a>,
    prefix: &'a str,
}

impl<'a> Ephemerals<'a> {
    pub(crate) const fn new(target: Target<'a>, prefix: &'a str) -> Self {
        Self { target, prefix }
    }

    fn start(self, admission: Admission) -> Pending<Vec<String>, ReadError> {
        let Self { target, prefix } = self;
        // Not a path: a prefix of one.
        if !prefix.starts_with('/') {
            let cause = Cause::InvalidArgument("a prefix of paths begins with a slash");
            return Pending::failed(ReadError::not_sent(cause));
        }
        let absolute = target.handle.chroot.prefix(prefix);
        let frame = RequestFrame::of(&GetEphemeralsRequest { prefix_path: Str::from(&*absolute) });
        let read = |answer, context: crate::request::answer::ReplyContext| {
            let GetEphemeralsResponse { ephemerals } = body(&answer)?;
            // A chroot is a prefix of its siblings' names too.
            let inside = |path: &std::borrow::Cow<'_, str>| context.chroot.contains(path);
            let relative =
                |path: std::borrow::Cow<'_, str>| context.chroot.relative(&path).to_owned();
            Ok(ephemerals.strs().filter(inside).map(relative).collect())
        };
        let call = Call { frame, on_loss: OnLoss::Resend, watch: None, instead: None, read };
        target.call(call, admission)
    }
}

/// Asks for the session's identities: see [`Client::who_am_i`](crate::Client::who_am_i).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct WhoAmI<'a> {
    target: Target<'a>,
}

impl<'a> WhoAmI<'a> {
    pub(crate) const fn new(target: Target<'a>) -> Self {
        Self { target }
    }

    fn start(self, admission: Admission) -> Pending<Vec<ClientInfo>, ReadError> {
        let call = Call {
            frame: RequestFrame::of(&WhoAmIRequest),
            on_loss: OnLoss::Resend,
            watch: None,
            instead: None,
            read: |answer, _| {
                let WhoAmIResponse { client_info } = body(&answer)?;
                Ok(client_info.iter().collect())
            },
        };
        self.target.call(call, admission)
    }
}

/// Proves another identity: see [`Client::add_auth`](crate::Client::add_auth).
#[derive(Debug)]
#[must_use = "an identity that is refused is only noticed here"]
pub struct AddAuth {
    outcome: oneshot::Receiver<Outcome>,
}

impl AddAuth {
    pub(crate) fn start(target: Target<'_>, scheme: &str, auth: Bytes) -> Self {
        let (reply, outcome) = oneshot::channel();
        let auth = Auth { scheme: scheme.into(), auth: Secret(auth) };
        let token = Token::Caller(Caller::new(OpCode::AUTH, reply, None));
        target.handle.command(Command::AddAuth(auth, token));
        Self { outcome }
    }
}

impl Future for AddAuth {
    type Output = Result<(), ReadError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.outcome).poll(cx).map(|outcome| match outcome {
            Ok(Outcome::Answered(answer)) if answer.code == ErrorCode::OK => Ok(()),
            Ok(Outcome::Answered(answer)) => Err(ReadError::answered(OpCode::AUTH, answer.code)),
            Ok(Outcome::NotSent(cause) | Outcome::Unknown(cause)) => {
                Err(ReadError::not_sent(cause.into()))
            }
            Err(_) => Err(ReadError::not_sent(Cause::SessionEnded(SessionEnd::Closed))),
        })
    }
}
