//! Steps as bytes.

use std::collections::BTreeMap;

use bytes::BytesMut;
use zk_proto::{OpCode, frame::encode_frame_with, jute::Encode};

use super::step::{
    Chars, Damage, Data, Entry, Field, Hello, Name, Part, Password, Request, SessionOf, ZxidOf,
};

/// Bytes of a request's header.
const LEN_HEADER: usize = 8;

/// What the names in steps stand for, on one server.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    /// The path that belongs to this sequence.
    pub(super) root: String,
    /// The session of each connection that has one.
    pub(super) sessions: BTreeMap<Name, (i64, Vec<u8>)>,
    /// The highest transaction number seen before each step.
    pub(super) zxids: Vec<i64>,
}

/// What a server can be expected to do with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Read it.
    Whole,
    /// Wait for the rest.
    Open,
}

impl Meaning {
    pub(super) fn new(root: &str) -> Self {
        Self { root: root.to_owned(), sessions: BTreeMap::new(), zxids: Vec::new() }
    }

    pub(super) fn hello(&self, hello: &Hello, out: &mut BytesMut) -> Framing {
        let (session, password) = match hello.session {
            SessionOf::Number(number) => (number, None),
            SessionOf::Connection(name) => match self.sessions.get(&name) {
                Some((id, password)) => (*id, Some(password.clone())),
                None => (0, None),
            },
        };
        let password = match hello.password {
            Password::Own => Some(password.unwrap_or_else(|| vec![0; 16])),
            Password::Wrong => {
                let mut password = password.unwrap_or_else(|| vec![0; 16]);
                password.iter_mut().rev().take(1).for_each(|byte| *byte ^= 1);
                Some(password)
            }
            Password::Zeros(len) => Some(vec![0; len]),
            Password::Null => None,
        };
        let mut content = BytesMut::new();
        hello.protocol_version.encode(&mut content);
        self.zxid(hello.last_zxid).encode(&mut content);
        hello.timeout.encode(&mut content);
        session.encode(&mut content);
        buffer(password.as_deref(), &mut content);
        content.extend(hello.read_only);
        frame(content, hello.damage, 0, out)
    }

    pub(super) fn request(&self, request: &Request, out: &mut BytesMut) -> Framing {
        let mut content = BytesMut::new();
        request.xid.encode(&mut content);
        request.op.encode(&mut content);
        self.fields(&request.body, &mut content);
        frame(content, request.damage, LEN_HEADER, out)
    }

    fn fields(&self, fields: &[Field], out: &mut BytesMut) {
        for field in fields {
            match field {
                Field::Byte(number) => out.extend([*number]),
                Field::Int(number) => number.encode(out),
                Field::Long(number) => number.encode(out),
                Field::Zxid(zxid) => self.zxid(*zxid).encode(out),
                Field::Text(text) => self.text(text.as_ref(), out),
                Field::Data(Data::Null) => buffer(None, out),
                Field::Data(Data::Bytes(bytes)) => self.text(Some(bytes), out),
                Field::Data(Data::Filled(len)) => buffer(Some(&vec![b'x'; *len]), out),
                Field::Texts(texts) => vector(texts.as_deref(), out, |text, out| {
                    self.text(text.as_ref(), out);
                }),
                Field::Acl(entries) => {
                    vector(entries.as_deref(), out, |Entry { perms, scheme, id }, out| {
                        perms.encode(out);
                        self.text(scheme.as_ref(), out);
                        self.text(id.as_ref(), out);
                    });
                }
                Field::Parts(parts) => self.parts(parts, out),
            }
        }
    }

    fn parts(&self, parts: &[Part], out: &mut BytesMut) {
        let header = |op: OpCode, done: bool, out: &mut BytesMut| {
            op.encode(out);
            done.encode(out);
            (-1).encode(out);
        };
        for Part { op, body } in parts {
            header(*op, false, out);
            self.fields(body, out);
        }
        header(OpCode::ERROR, true, out);
    }

    fn text(&self, text: Option<&Chars>, out: &mut BytesMut) {
        let text = text.map(|Chars(chars)| {
            let mut spelt = Vec::new();
            for &byte in chars {
                match byte {
                    b'$' => spelt.extend_from_slice(self.root.as_bytes()),
                    _ => spelt.push(byte),
                }
            }
            spelt
        });
        buffer(text.as_deref(), out);
    }

    fn zxid(&self, zxid: ZxidOf) -> i64 {
        let seen = |back: usize| {
            let at = self.zxids.len().checked_sub(back + 1);
            at.map_or(0, |at| self.zxids[at])
        };
        match zxid {
            ZxidOf::Number(number) => number,
            ZxidOf::Seen(back) => seen(back),
            ZxidOf::Ahead(ahead) => seen(0).saturating_add(ahead),
        }
    }
}

fn count(count: usize, out: &mut BytesMut) {
    i32::try_from(count).expect("nothing here is that large").encode(out);
}

fn buffer(bytes: Option<&[u8]>, out: &mut BytesMut) {
    match bytes {
        None => (-1).encode(out),
        Some(bytes) => {
            count(bytes.len(), out);
            out.extend_from_slice(bytes);
        }
    }
}

fn vector<T>(items: Option<&[T]>, out: &mut BytesMut, item: impl Fn(&T, &mut BytesMut)) {
    match items {
        None => (-1).encode(out),
        Some(items) => {
            count(items.len(), out);
            items.iter().for_each(|each| item(each, out));
        }
    }
}

/// Appends `content` as a frame, damaged; the first `whole` bytes come to no harm.
fn frame(
    mut content: BytesMut,
    damage: Option<Damage>,
    whole: usize,
    out: &mut BytesMut,
) -> Framing {
    match damage {
        None => {}
        Some(Damage::Truncated(len)) => content.truncate(len),
        Some(Damage::Short(len)) => content.truncate(content.len().saturating_sub(len)),
        Some(Damage::Trailing(len)) => content.resize(content.len() + len, b'?'),
        Some(Damage::Number(at, number)) => {
            let mut bytes = BytesMut::new();
            number.encode(&mut bytes);
            let at = (whole + at).min(content.len());
            let end = (at + bytes.len()).min(content.len());
            content[at..end].copy_from_slice(&bytes[..end - at]);
        }
        Some(Damage::Bit(at, bit)) => {
            if let Some(byte) = content.get_mut(whole + at) {
                *byte ^= 1 << (bit & 7);
            }
        }
        Some(Damage::Length(length)) => {
            length.encode(out);
            return Framing::Whole;
        }
        Some(Damage::Promise(more)) => {
            count(content.len() + more, out);
            out.extend_from_slice(&content);
            return Framing::Open;
        }
    }
    encode_frame_with(out, |out| out.extend_from_slice(&content));
    Framing::Whole
}
