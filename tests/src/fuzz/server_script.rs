//! What hostile clients do to an ensemble, read from bytes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use zk_proto::{
    Acl, AclList, AddWatchMode, CreateFlags, List, OpCode, Secret, SessionId, WatcherType, Xid,
    Zxid,
    frame::{RequestFrame, RequestHeader, encode_frame, encode_frame_with},
    jute::Encode,
    request::{
        AddWatchRequest, AuthPacket, CheckVersionRequest, CheckWatchesRequest, ConnectRequest,
        CreateRequest, CreateTtlRequest, DeleteRequest, ExistsRequest, GetAclRequest,
        GetChildrenRequest, GetDataRequest, MultiOp, MultiRequest, RemoveWatchesRequest,
        SetAclRequest, SetDataRequest, SetWatches2, SyncRequest, TrailingFlag,
    },
};
use zk_testkit::server::{Config, Member};

use crate::input::Input;

/// Connections at the same time.
pub(super) const CONNS: usize = 4;

/// Most steps of one script: more only takes time.
const STEPS_MAX: usize = 200;

const PATHS: [&str; 12] = [
    "/",
    "/a",
    "/a/b",
    "/a/b/c",
    "/a/s-",
    "/zookeeper",
    "/zookeeper/quota",
    "/zookeeper/config",
    "/zookeeper/quota/a/zookeeper_limits",
    "a",
    "/a//b",
    "",
];

/// One thing that happens.
#[derive(Debug)]
pub(super) enum Step {
    /// A client connects, in the place of the one that had this connection.
    Connect(usize, Member),
    HangUp(usize),
    /// A handshake: for a new session, or for the one of another connection.
    Greet {
        conn: usize,
        shown: Shown,
    },
    /// A frame that has a header.
    Ask {
        conn: usize,
        xid: Xid,
        op: OpCode,
        frame: Bytes,
    },
    /// Bytes of any meaning.
    Noise {
        conn: usize,
        bytes: Bytes,
    },
    Pass(Duration),
    Members(Trouble),
}

/// What a handshake shows.
#[derive(Debug)]
pub(super) struct Shown {
    /// The connection whose session is shown, and whether with its password.
    pub(super) of: Option<(usize, bool)>,
    pub(super) zxid: Zxid,
    pub(super) timeout: i32,
    pub(super) read_only: Option<bool>,
}

impl Shown {
    pub(super) fn frame(&self, session: SessionId, password: &[u8]) -> Bytes {
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: self.zxid,
            time_out: self.timeout,
            session_id: session,
            passwd: Secret(Some(password)),
            read_only: TrailingFlag(self.read_only),
        };
        let mut out = BytesMut::new();
        encode_frame(&request, &mut out);
        out.freeze()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    Stop(Member),
    Start(Member),
    CutOff(Member),
    Rejoin(Member),
    Lag(Member, Duration),
    Depose,
    /// The session of a connection ends.
    Expire(usize),
    Drop(Option<Member>),
}

/// The bytes of a script that have not been read.
#[derive(Debug)]
pub(super) struct Script<'a> {
    input: Input<'a>,
    members: usize,
    steps: usize,
}

impl<'a> Script<'a> {
    pub(super) const fn new(input: &'a [u8]) -> Self {
        Self { input: Input::new(input), members: 1, steps: 0 }
    }

    pub(super) fn config(&mut self) -> Config {
        let what = self.input.byte();
        self.members = if what & 1 == 0 { 1 } else { 3 };
        let mut config = Config::default();
        config.members = self.members;
        config.read_only_mode = what & 2 != 0;
        config.extended_types = what & 4 != 0;
        config.enforce_quota = what & 8 != 0;
        config.request_len_max = 1 << 12;
        // super:secret
        let digest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4=";
        config.super_digest = (what & 16 != 0).then(|| digest.into());
        config
    }

    fn member(&mut self) -> Member {
        Member(self.input.below(self.members))
    }

    pub(super) fn step(&mut self) -> Option<Step> {
        if self.input.is_empty() || self.steps == STEPS_MAX {
            return None;
        }
        self.steps += 1;
        let what = self.input.byte();
        let conn = usize::from(what & 3);
        Some(match what >> 2 {
            0..=4 => Step::Connect(conn, self.member()),
            5 => Step::HangUp(conn),
            6..=12 => Step::Greet { conn, shown: self.shown() },
            13..=15 => Step::Noise { conn, bytes: Bytes::copy_from_slice(self.input.bytes()) },
            16 => {
                let xid = Xid(self.input.number());
                let op = OpCode(self.input.number());
                let body = self.input.bytes();
                let mut frame = BytesMut::new();
                encode_frame_with(&mut frame, |out| {
                    RequestHeader { xid, op }.encode(out);
                    out.extend_from_slice(body);
                });
                Step::Ask { conn, xid, op, frame: frame.freeze() }
            }
            17..=54 => {
                let xid = Xid(i32::from(self.input.byte()) + 1);
                let request = self.request();
                let xid = match request.op() {
                    OpCode::PING => Xid::PING,
                    OpCode::AUTH => Xid::AUTH,
                    _ => xid,
                };
                let mut frame = BytesMut::new();
                request.write(xid, &mut frame);
                Step::Ask { conn, xid, op: request.op(), frame: frame.freeze() }
            }
            55..=59 => Step::Pass(self.input.time()),
            _ => Step::Members(self.trouble(conn)),
        })
    }

    fn shown(&mut self) -> Shown {
        let what = self.input.byte();
        let of = (what & 1 != 0).then(|| (usize::from(what >> 1 & 3), what & 8 == 0));
        Shown {
            of,
            zxid: Zxid(if what & 0x10 == 0 { 0 } else { i64::from(self.input.byte()) }),
            timeout: if what & 0x20 == 0 { 10_000 } else { self.input.number() },
            read_only: [None, Some(true), Some(false), Some(true)][usize::from(what >> 6)],
        }
    }

    fn trouble(&mut self, conn: usize) -> Trouble {
        match self.input.byte() % 8 {
            0 => Trouble::Stop(self.member()),
            1 => Trouble::Start(self.member()),
            2 => Trouble::CutOff(self.member()),
            3 => Trouble::Rejoin(self.member()),
            4 => Trouble::Lag(self.member(), self.input.time()),
            5 => Trouble::Depose,
            6 => Trouble::Expire(conn),
            _ => Trouble::Drop(Some(self.member())),
        }
    }

    fn path(&mut self) -> &'static str {
        self.input.pick(&PATHS)
    }

    fn version(&mut self) -> i32 {
        i32::from(self.input.byte() % 6) - 2
    }

    fn data(&mut self) -> Option<&'a [u8]> {
        let bytes = self.input.bytes();
        (!bytes.is_empty()).then_some(bytes)
    }

    fn acl(&mut self) -> AclList {
        match self.input.byte() {
            0 => List::NULL,
            1 => List::EMPTY,
            2..=40 => [Acl::creator_all()].into_iter().collect(),
            41..=60 => [Acl::world_readable()].into_iter().collect(),
            _ => [Acl::open_unsafe()].into_iter().collect(),
        }
    }

    fn create(&mut self) -> CreateRequest<'a> {
        let flags = CreateFlags(i32::from(self.input.byte() % 8));
        let (path, acl) = (self.path().into(), self.acl());
        CreateRequest { path, data: self.data(), acl, flags }
    }

    fn write(&mut self) -> MultiOp<'a> {
        match self.input.byte() % 6 {
            0 => MultiOp::Create(self.create()),
            1 => MultiOp::Create2(self.create()),
            2 => MultiOp::CreateContainer(self.create()),
            3 => {
                MultiOp::Delete(DeleteRequest { path: self.path().into(), version: self.version() })
            }
            4 => {
                let (path, version) = (self.path().into(), self.version());
                MultiOp::SetData(SetDataRequest { path, data: self.data(), version })
            }
            _ => MultiOp::Check(CheckVersionRequest {
                path: self.path().into(),
                version: self.version(),
            }),
        }
    }

    fn multi(&mut self) -> MultiRequest {
        let count = self.input.below(5);
        (0..count).map(|_| self.write()).collect()
    }

    fn request(&mut self) -> RequestFrame {
        let what = self.input.byte();
        let (path, watch) = (self.path().into(), what & 0x40 != 0);
        match what & 0x1F {
            0..=3 => RequestFrame::new(OpCode::CREATE2, &self.create()),
            4 => RequestFrame::new(OpCode::CREATE, &self.create()),
            5 => RequestFrame::new(OpCode::CREATE_CONTAINER, &self.create()),
            6 => {
                let CreateRequest { path, data, acl, flags } = self.create();
                let ttl = i64::from(self.input.number());
                RequestFrame::of(&CreateTtlRequest { path, data, acl, flags, ttl })
            }
            7 | 8 => RequestFrame::of(&DeleteRequest { path, version: self.version() }),
            9 | 10 => {
                let version = self.version();
                RequestFrame::of(&SetDataRequest { path, data: self.data(), version })
            }
            11 | 12 => RequestFrame::of(&GetDataRequest { path, watch }),
            13 | 14 => RequestFrame::of(&ExistsRequest { path, watch }),
            15 => RequestFrame::of(&GetChildrenRequest { path, watch }),
            16 => RequestFrame::new(OpCode::GET_CHILDREN2, &GetChildrenRequest { path, watch }),
            17 => RequestFrame::of(&SyncRequest { path }),
            18 | 19 => RequestFrame::of(&self.multi()),
            20 => RequestFrame::new(OpCode::MULTI_READ, &self.multi()),
            21 => RequestFrame::of(&GetAclRequest { path }),
            22 => {
                let (acl, version) = (self.acl(), self.version());
                RequestFrame::of(&SetAclRequest { path, acl, version })
            }
            23 => {
                let mode = AddWatchMode(i32::from(self.input.byte() % 3));
                RequestFrame::of(&AddWatchRequest { path, mode })
            }
            24 => {
                let kind = WatcherType(i32::from(self.input.byte() % 6));
                let check = CheckWatchesRequest { path, kind };
                if watch {
                    RequestFrame::of(&RemoveWatchesRequest(check))
                } else {
                    RequestFrame::of(&check)
                }
            }
            25 => self.auth(),
            26 => self.set_watches(),
            27 => RequestFrame::new(OpCode::PING, &()),
            28 => RequestFrame::new(OpCode::CLOSE_SESSION, &()),
            29 => RequestFrame::new(OpCode::WHO_AM_I, &()),
            30 => RequestFrame::new(OpCode::GET_EPHEMERALS, &GetAclRequest { path }),
            _ => RequestFrame::new(OpCode::GET_ALL_CHILDREN_NUMBER, &GetAclRequest { path }),
        }
    }

    fn auth(&mut self) -> RequestFrame {
        let (scheme, auth) = self.input.pick(&[
            ("digest", "super:secret"),
            ("digest", "user:secret"),
            ("digest", "nobody"),
            ("ip", "127.0.0.1"),
            ("world", "anyone"),
            ("sasl", ""),
        ]);
        let auth = Secret(Some(auth.as_bytes()));
        RequestFrame::of(&AuthPacket { kind: 0, scheme: scheme.into(), auth })
    }

    fn set_watches(&mut self) -> RequestFrame {
        let relative_zxid = Zxid(i64::from(self.input.byte()));
        let mut paths = || List::of_strs((0..self.input.below(3)).map(|_| self.input.pick(&PATHS)));
        RequestFrame::of(&SetWatches2 {
            relative_zxid,
            data_watches: paths(),
            exist_watches: paths(),
            child_watches: paths(),
            persistent_watches: paths(),
            persistent_recursive_watches: paths(),
        })
    }
}
