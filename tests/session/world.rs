//! A session and the hand that drives it.
//!
//! Unless a script says otherwise the driver writes at once whatever the session wants written.
//! After each command the outputs are shown, then the frames that the session has put in front of
//! the driver, then the next deadline if it has changed.

use std::{collections::BTreeMap, sync::Arc};

use bytes::{Buf as _, Bytes, BytesMut};
use zk_proto::{
    ErrorCode, Secret, SessionId, Time, Xid, Zxid,
    frame::{ReplyHeader, RequestHeader},
    jute::decode_prefix,
    session::{
        Auth, Config, Credentials, DriverFault, Output, Place, ProbeAnswer, SaslStep, Session,
        Withdrawn,
    },
};

use zk_tests::wire::frames;

use crate::session::{
    command::{Args, Error, duration, int, link_error, number},
    request, serve, show,
    wire::Wire,
};

/// Wake-ups in one `advance` above which the session is taken to run in circles.
const WAKE_UPS_MAX: usize = 2000;

/// What a script drives.
#[derive(Debug)]
pub(crate) struct World {
    session: Session<String, String>,
    now: Time,
    wire: Wire,
    /// Whether the socket takes bytes.
    writable: bool,
    /// Whether every dial is refused at once.
    servers_down: bool,
    /// Bytes at the front of what is to be written that have been shown already.
    shown: usize,
    /// The frames of the last command, in full.
    sent: BytesMut,
    deadline_shown: Option<Time>,
    /// Of requests, by their tokens.
    places: BTreeMap<String, Place>,
    lines: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            session: Session::new(Config::new(["a:1"]), 1, Time::ZERO),
            now: Time::ZERO,
            wire: Wire::default(),
            writable: true,
            servers_down: false,
            shown: 0,
            sent: BytesMut::new(),
            deadline_shown: None,
            places: BTreeMap::new(),
            lines: Vec::new(),
        }
    }

    /// Carries out a command and returns what there is to show.
    pub(crate) fn execute(&mut self, command: &str) -> Result<Vec<String>, Error> {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        let mut args = Args::new(rest);
        match name {
            "server" => self.serve(rest)?,
            "sent-exactly" => self.compare(&args.hex()?),
            _ => {
                self.sent.clear();
                self.input(name, &mut args)?;
                args.finish()?;
            }
        }
        self.settle();
        let deadline = self.session.deadline();
        if deadline != self.deadline_shown {
            self.deadline_shown = deadline;
            self.lines
                .push(deadline.map_or_else(|| "no deadline".into(), |at| format!("wake at {at}")));
        }
        Ok(std::mem::take(&mut self.lines))
    }

    fn input(&mut self, name: &str, args: &mut Args<'_>) -> Result<(), Error> {
        let now = self.now;
        match name {
            "new" => self.start(args)?,
            // The driver's answers.
            "dialed" => match args.word("how?")? {
                "ok" => self.session.dialed(now, Ok(())),
                error => self.session.dialed(now, Err(link_error(error)?)),
            },
            "hangup" => self.session.hung_up(now, link_error(args.word("why?")?)?),
            "probed" => {
                let server = args.word("the server")?;
                let answer = match args.word("the answer")? {
                    "rw" => ProbeAnswer::ReadWrite,
                    "ro" => ProbeAnswer::ReadOnly,
                    _ => ProbeAnswer::Unknown,
                };
                self.session.probed(now, server, answer);
            }
            "stepped" => {
                let step = match args.word("the step")? {
                    "say" => {
                        let token = args.next_word().unwrap_or_default();
                        SaslStep::Say(Secret(Bytes::copy_from_slice(token.as_bytes())))
                    }
                    "done" => SaslStep::Done,
                    "unproved" => {
                        SaslStep::Failed(DriverFault::new("SASL: server could not prove who it is"))
                    }
                    "unavailable" => {
                        SaslStep::GivenUp(DriverFault::new("SASL: server has no such mechanism"))
                    }
                    other => return Err(format!("no step {other}")),
                };
                self.session.sasl_stepped(now, step);
            }
            "servers" => self.servers_down = args.word("down or up?")? == "down",
            // The socket.
            "bytes" => {
                let fill = usize::try_from(args.number("fill")?.unwrap_or_default());
                let mut bytes = args.hex()?.to_vec();
                bytes.resize(bytes.len() + fill.map_err(|error| error.to_string())?, 0);
                self.receive(&bytes);
            }
            "socket" => self.writable = args.word("full or writable?")? == "writable",
            "written" => {
                let count = usize::try_from(number(args.word("how many bytes?")?)?);
                let count = count.map_err(|error| error.to_string())?;
                self.session.outbound().advance(count);
                self.shown = self.shown.saturating_sub(count);
            }
            // Time.
            "advance" => {
                let until = now.after(duration(args.word("how far?")?)?);
                self.advance(until)?;
            }
            "sleep" => self.now = now.after(duration(args.word("how long?")?)?),
            "wake" => self.session.elapsed(now),
            // The user.
            "submit" => {
                let request = request::outgoing(args)?;
                let token = request.token.clone();
                let place = self.session.submit(now, request);
                self.places.insert(token, place);
            }
            "withdraw" => self.withdraw(args.next_word().ok_or("which request?")?),
            "update-servers" => {
                let servers = args.word("the servers")?.split(',').map(Into::into).collect();
                self.session.update_servers(now, servers);
            }
            "add-auth" => {
                let token = args.option("as").unwrap_or("auth").into();
                self.session.add_auth(now, auth(args.word("scheme:credentials")?)?, token);
            }
            "close" => self.session.close(now, args.option("as").unwrap_or("close").into()),
            "rely" => self.session.rely(true),
            "detach" => self.session.detach(),
            "unwatch" => {
                let by = request::watch_by(args.word("the kind")?)?;
                let path = args.word("the path")?;
                let gone = args.word("the watcher")?;
                self.session.unwatch(now, by, path, |watcher| watcher == gone);
            }
            "arm" => self.arm(args)?,
            "state" => self.state(),
            _ => return Err(format!("no command {name}")),
        }
        Ok(())
    }

    fn withdraw(&mut self, token: &str) {
        let place = self.places.get(token).copied();
        let said = match place.and_then(|place| self.session.withdraw(place)) {
            Some(Withdrawn::Unsent { token, was_sent: false }) => format!("{token}: never sent"),
            Some(Withdrawn::Unsent { token, .. }) => format!("{token}: sent before"),
            Some(Withdrawn::Sent(token)) => format!("{token}: on its way"),
            None => "no such request any more".into(),
        };
        self.lines.push(said);
    }

    /// `new [servers=A,B] [timeout=D] [seed=N] [read-only] [sasl] [auth=SCHEME:CREDENTIALS] [resume=ID
    /// zxid=N xid=N] [connect-timeout=D] [close-timeout=D] [request-max=BYTES] [reply-max=BYTES]`
    fn start(&mut self, args: &mut Args<'_>) -> Result<(), Error> {
        let mut config = Config::new(args.option("servers").unwrap_or("a:1").split(','));
        config.session_timeout = args.duration("timeout")?.unwrap_or(config.session_timeout);
        config.connect_timeout = args.duration("connect-timeout")?;
        config.close_timeout = args.duration("close-timeout")?.unwrap_or(config.close_timeout);
        config.read_only = args.flag("read-only");
        config.sasl = args.flag("sasl");
        let size = |number: i64| usize::try_from(number).map_err(|error| error.to_string());
        if let Some(bytes) = args.number("request-max")? {
            config.request_len_max = size(bytes)?;
        }
        if let Some(bytes) = args.number("reply-max")? {
            config.reply_len_max = size(bytes)?;
        }
        if let Some(requests) = args.number("requests-max")? {
            config.requests_max = size(requests)?;
        }
        while let Some(text) = args.option("auth") {
            config.auth.push(auth(text)?);
        }
        if let Some(id) = args.number("resume")? {
            config.resume = Some(Credentials {
                id: SessionId(id),
                password: Secret(Bytes::from_static(b"sixteen letters.")),
                last_zxid: Zxid(args.number("zxid")?.unwrap_or_default()),
                next_xid: Xid(int(args.number("xid")?.unwrap_or(1))?),
                timeout: args.duration("granted")?.unwrap_or(config.session_timeout),
            });
        }
        let seed = args.number("seed")?.unwrap_or(1).unsigned_abs();
        *self =
            Self { session: Session::new(config, seed, self.now), now: self.now, ..Self::new() };
        Ok(())
    }

    fn serve(&mut self, messages: &str) -> Result<(), Error> {
        let mut bytes = BytesMut::new();
        for mut message in Args::alternatives(messages) {
            serve::message(&mut message, &mut bytes)?;
        }
        self.sent.clear();
        self.receive(&bytes);
        Ok(())
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.session.inbound().extend_from_slice(bytes);
        self.session.received(self.now);
    }

    /// Shows whether the frames of the last command are these bytes.
    fn compare(&mut self, expected: &Bytes) {
        self.lines.push(if self.sent == expected { "yes".into() } else { "no".into() });
    }

    /// Wakes the session at each of its deadlines.
    fn advance(&mut self, until: Time) -> Result<(), Error> {
        for _ in 0..WAKE_UPS_MAX {
            let Some(due) = self.session.deadline().filter(|&due| due <= until) else {
                self.now = until;
                return Ok(());
            };
            self.now = self.now.max(due);
            self.lines.push(format!("-- {}", self.now));
            self.session.elapsed(self.now);
            self.settle();
        }
        Err(format!("woken {WAKE_UPS_MAX} times, last at {}", self.now))
    }

    /// Does what the session says, and shows it.
    fn settle(&mut self) {
        let mut repeated = show::Repeated::default();
        while let Some(output) = self.session.poll() {
            repeated.push(&output, &mut self.lines);
            match output {
                Output::Dial { .. } => {
                    self.wire = Wire::default();
                    self.shown = 0;
                    if self.servers_down {
                        self.session.dialed(self.now, Err(zk_proto::session::LinkError::Refused));
                    }
                }
                Output::HangUp => self.shown = 0,
                _ => {}
            }
        }
        repeated.finish(&mut self.lines);
        let outbound = self.session.outbound();
        self.shown = self.shown.min(outbound.len());
        let all = outbound.pieces().collect::<Vec<_>>().concat();
        let new = &all[self.shown..];
        for frame in frames(new) {
            self.lines.push(self.wire.describe(&frame));
        }
        self.sent.extend_from_slice(new);
        if self.writable {
            outbound.advance(all.len());
        }
        self.shown = outbound.len();
    }

    /// `arm KIND COUNT PREFIX`: sends so many requests that arm watches and answers them, in silence.
    fn arm(&mut self, args: &mut Args<'_>) -> Result<(), Error> {
        let kind = args.word("the kind")?;
        let count = number(args.word("how many?")?)?;
        let prefix = args.word("the beginning of the paths")?;
        let zxid = Zxid(args.number("zxid")?.unwrap_or(1));
        let (op, mode, err) = match kind {
            "data" => ("get", "", ErrorCode::OK),
            "exist" => ("exists", "", ErrorCode::NO_NODE),
            "child" => ("children", "", ErrorCode::OK),
            "persistent" => ("add-watch", "", ErrorCode::OK),
            "recursive" => ("add-watch", "recursive", ErrorCode::OK),
            _ => return Err(format!("no watch {kind}")),
        };
        for number in 0..count {
            let text = format!("{op} {prefix}{number:05} {mode} watch={kind}-{number}");
            self.session.submit(self.now, request::outgoing(&mut Args::new(&text))?);
        }
        let mut replies = BytesMut::new();
        for frame in frames(&self.session.outbound().take_all()) {
            let RequestHeader { xid, .. } =
                decode_prefix(&frame).map_err(|error| error.to_string())?;
            serve::reply(ReplyHeader { xid, zxid, err }, |_| {}, &mut replies);
        }
        self.receive(&replies);
        let answered = std::iter::from_fn(|| self.session.poll()).count();
        self.lines.push(format!("{answered} answered"));
        Ok(())
    }

    fn state(&mut self) {
        let session = &self.session;
        let credentials = session.credentials().map_or_else(
            || "no credentials".into(),
            |Credentials { id, last_zxid, next_xid, .. }| {
                format!("credentials id={id} zxid={last_zxid} xid={next_xid}")
            },
        );
        let lease =
            session.lease().map_or_else(|| "no lease".into(), |at| format!("lease until {at}"));
        let room = if session.has_room() { "room" } else { "no room" };
        let over = session.over().map_or_else(|| "not over".into(), |over| format!("over: {over}"));
        self.lines.extend([credentials, lease, room.into(), over]);
    }
}

/// `scheme:credentials`
fn auth(text: &str) -> Result<Auth, Error> {
    let (scheme, auth) = text.split_once(':').ok_or("scheme:credentials")?;
    let auth = Secret(Bytes::copy_from_slice(auth.as_bytes()));
    Ok(Auth { scheme: Arc::from(scheme), auth })
}
