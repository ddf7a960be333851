//! What servers send, taken apart.

use bytes::Bytes;
use zk_proto::{
    Acl, ClientInfo, ErrorCode, List, OpCode, Stat, Text, Xid,
    frame::ReplyHeader,
    jute::{Decode, DecodeError, Reader},
    request::{
        ConnectResponse, Create2Response, CreateResponse, ErrorResponse,
        GetAllChildrenNumberResponse, GetDataResponse, MultiHeader, MultiResponse, MultiResult,
        SetSaslResponse, SyncResponse, WatcherEvent,
    },
};

use super::record::{EVENT, Piece};

/// Takes a reply apart.
struct Scribe<'a> {
    reader: Reader<'a>,
    pieces: Vec<Piece>,
    root: &'a str,
}

/// The header of a frame that has one.
pub(super) fn header(frame: &Bytes) -> Option<ReplyHeader> {
    ReplyHeader::decode(&mut Reader::new(frame)).ok()
}

/// A reply to an operation, or an event.
pub(super) fn describe(op: OpCode, frame: &Bytes, root: &str) -> Vec<Piece> {
    let mut scribe = Scribe { reader: Reader::new(frame), pieces: Vec::new(), root };
    if let Err(error) = scribe.frame(op) {
        scribe.say(format!("<{error}: {:02x?}>", &frame[..frame.len().min(64)]));
    }
    scribe.pieces
}

/// The answer to a handshake.
pub(super) fn describe_hello(frame: &Bytes) -> Vec<Piece> {
    let mut reader = Reader::new(frame);
    let decoded = ConnectResponse::decode(&mut reader);
    match decoded.and_then(|response| reader.finish().map(|()| response)) {
        Ok(response) => {
            let ConnectResponse { protocol_version, time_out, session_id, passwd, read_only } =
                response;
            let passwd = passwd.0.unwrap_or_default();
            let version = match protocol_version {
                0 => String::new(),
                version => format!(" v{version}"),
            };
            let passwd = match (passwd.len(), passwd.iter().all(|&byte| byte == 0)) {
                (16, false) => String::new(),
                (len, false) => format!(" {len} bytes"),
                (len, true) => format!(" {len} zeros"),
            };
            let read_only = match read_only.0 {
                Some(false) => "",
                Some(true) => " read-only",
                None => " no flag",
            };
            vec![
                format!("hello{version} {time_out}").into(),
                Piece::Session(session_id.0),
                format!("{passwd}{read_only}").trim_start().into(),
            ]
        }
        Err(error) => vec![format!("hello <{error}: {frame:02x?}>").into()],
    }
}

impl<'a> Scribe<'a> {
    fn say(&mut self, text: impl Into<Piece>) {
        self.pieces.push(text.into());
    }

    fn read<T: Decode<'a>>(&mut self) -> Result<T, DecodeError> {
        T::decode(&mut self.reader)
    }

    fn frame(&mut self, op: OpCode) -> Result<(), DecodeError> {
        let ReplyHeader { xid, zxid, err } = self.read()?;
        if xid == Xid::NOTIFICATION {
            let event: WatcherEvent = self.read()?;
            self.say(EVENT);
            self.say(Piece::Zxid(zxid.0));
            self.say(format!("{} {} {}", err.0, event.kind, event.state.0));
            self.text(&event.path);
            return self.reader.finish();
        }
        self.say(xid.to_string());
        self.say(Piece::Zxid(zxid.0));
        self.say(err.to_string());
        // Some refusals have a body, to be ignored.
        let begun = matches!(op, OpCode::SASL | OpCode::MULTI | OpCode::MULTI_READ);
        if err == ErrorCode::OK || (begun && self.reader.left() > 0) {
            self.body(op)?;
        }
        self.reader.finish()
    }

    fn body(&mut self, op: OpCode) -> Result<(), DecodeError> {
        match op {
            OpCode::CREATE => {
                let CreateResponse { path } = self.read()?;
                self.text(&path);
            }
            OpCode::CREATE2 | OpCode::CREATE_CONTAINER | OpCode::CREATE_TTL => {
                let Create2Response { path, stat } = self.read()?;
                self.text(&path);
                self.stat(&stat);
            }
            OpCode::EXISTS | OpCode::SET_DATA | OpCode::SET_ACL => {
                let stat = self.read()?;
                self.stat(&stat);
            }
            OpCode::GET_DATA | OpCode::RECONFIG => {
                let response = self.read()?;
                self.data(&response);
            }
            OpCode::GET_ACL => {
                let acl: List<Acl> = self.read()?;
                self.acl(&acl);
                let stat = self.read()?;
                self.stat(&stat);
            }
            OpCode::GET_CHILDREN | OpCode::GET_EPHEMERALS => {
                let names = self.read()?;
                self.names(&names);
            }
            OpCode::GET_CHILDREN2 => {
                let names = self.read()?;
                self.names(&names);
                let stat = self.read()?;
                self.stat(&stat);
            }
            OpCode::GET_ALL_CHILDREN_NUMBER => {
                let GetAllChildrenNumberResponse { total_number } = self.read()?;
                self.say(total_number.to_string());
            }
            OpCode::SYNC => {
                let SyncResponse { path } = self.read()?;
                self.text(&path);
            }
            OpCode::ADD_WATCH => {
                let ErrorResponse { err } = self.read()?;
                self.say(err.to_string());
            }
            OpCode::WHO_AM_I => {
                let infos: List<ClientInfo> = self.read()?;
                let info = |info: ClientInfo| {
                    format!("{}:{}", spelt(&info.auth_scheme), spelt(&info.user))
                };
                self.sorted(infos.is_null(), infos.iter().map(info).collect());
            }
            OpCode::SASL => {
                let SetSaslResponse { token } = self.read()?;
                self.say(format!("{:?}", token.0));
            }
            OpCode::MULTI | OpCode::MULTI_READ => {
                let response: MultiResponse = self.read()?;
                self.say("{");
                for (header, result) in response.iter() {
                    let MultiHeader { op, err, .. } = header;
                    match result {
                        MultiResult::Error(code) if (op, err) == (OpCode::ERROR, code) => {
                            self.say(format!("| {code}"));
                        }
                        result => {
                            self.say(format!("| {op} {err}"));
                            self.result(&result);
                        }
                    }
                }
                self.say("}");
            }
            _ => {}
        }
        Ok(())
    }

    fn result(&mut self, result: &MultiResult) {
        match result {
            MultiResult::Create(CreateResponse { path }) => {
                self.text(path);
            }
            MultiResult::Create2(Create2Response { path, stat }) => {
                self.text(path);
                self.stat(stat);
            }
            MultiResult::SetData(response) => self.stat(&response.stat),
            MultiResult::GetData(response) => self.data(response),
            MultiResult::GetChildren(response) => self.names(&response.children),
            MultiResult::Error(err) => self.say(err.to_string()),
            _ => {}
        }
    }

    fn data(&mut self, response: &GetDataResponse) {
        match &response.data {
            None => self.say("null"),
            Some(data) if data.len() <= 200 => {
                let data = String::from_utf8_lossy(data).into_owned();
                self.say(format!("{data:?}"));
            }
            Some(data) => self.say(format!("<{} bytes>", data.len())),
        }
        self.stat(&response.stat);
    }

    fn text(&mut self, text: &Text) {
        self.say(spelt(text));
    }

    /// Top-level nodes of other sequences are only counted.
    fn names(&mut self, names: &List<Text>) {
        let own = self.root.trim_start_matches('/');
        let is_ours = |name: &str| !is_of_a_sequence(name) || name.starts_with(own);
        let (ours, others): (Vec<_>, Vec<_>) =
            names.iter().map(|name| spelt(&name)).partition(|name| is_ours(&name[1..]));
        let ours = ours.into_iter().map(|name| name.replacen(own, self.root, 1)).collect();
        self.sorted(names.is_null(), ours);
        if !others.is_empty() {
            self.say(format!("+{}", others.len()));
        }
    }

    fn acl(&mut self, acl: &List<Acl>) {
        let entry =
            |Acl { perms, id }: Acl| format!("{}:{}:{}", perms.0, spelt(&id.scheme), spelt(&id.id));
        self.sorted(acl.is_null(), acl.iter().map(entry).collect());
    }

    fn sorted(&mut self, is_null: bool, mut items: Vec<String>) {
        items.sort();
        self.say(if is_null { "null".to_owned() } else { format!("[{}]", items.join(",")) });
    }

    fn stat(&mut self, stat: &Stat) {
        self.say(Piece::Zxid(stat.czxid.0));
        self.say(Piece::Zxid(stat.mzxid.0));
        self.say(Piece::Zxid(stat.pzxid.0));
        self.say(Piece::Time { millis: stat.ctime, zxid: stat.czxid.0 });
        self.say(Piece::Time { millis: stat.mtime, zxid: stat.mzxid.0 });
        self.say(format!("v{},{},{}", stat.version, stat.cversion, stat.aversion));
        self.say(Piece::Session(stat.ephemeral_owner.0));
        self.say(format!("{},{}", stat.data_length, stat.num_children));
    }
}

/// Whether a name begins like the one of a top-level node that a sequence calls its own: with `d` and
/// five digits.
fn is_of_a_sequence(name: &str) -> bool {
    let digits = name.strip_prefix('d').and_then(|name| name.as_bytes().get(..5));
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

fn spelt(text: &Text) -> String {
    match text.as_bytes() {
        None => "null".to_owned(),
        Some(bytes) => format!("\"{}\"", bytes.escape_ascii()),
    }
}
