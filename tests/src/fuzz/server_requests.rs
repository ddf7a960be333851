//! Requests of hostile clients, read from bytes.

use zk_proto::{
    Acl, AclList, AddWatchMode, CreateFlags, List, OpCode, Secret, WatcherType, Zxid,
    frame::RequestFrame,
    request::{
        AddWatchRequest, AuthPacket, CheckVersionRequest, CheckWatchesRequest, CreateRequest,
        CreateTtlRequest, DeleteRequest, ExistsRequest, GetAclRequest, GetChildrenRequest,
        GetDataRequest, MultiOp, MultiRequest, RemoveWatchesRequest, SetAclRequest, SetDataRequest,
        SetWatches2, SyncRequest,
    },
};

use crate::input::Input;

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

/// The bytes, taken for requests.
pub(super) struct Requests<'i, 'a>(pub(super) &'i mut Input<'a>);

impl<'a> Requests<'_, 'a> {
    fn path(&mut self) -> &'static str {
        self.0.pick(&PATHS)
    }

    fn version(&mut self) -> i32 {
        i32::from(self.0.byte() % 6) - 2
    }

    fn data(&mut self) -> Option<&'a [u8]> {
        let bytes = self.0.bytes();
        (!bytes.is_empty()).then_some(bytes)
    }

    fn acl(&mut self) -> AclList {
        match self.0.byte() {
            0 => List::NULL,
            1 => List::EMPTY,
            2..=40 => [Acl::creator_all()].into_iter().collect(),
            41..=60 => [Acl::world_readable()].into_iter().collect(),
            _ => [Acl::open_unsafe()].into_iter().collect(),
        }
    }

    fn create(&mut self) -> CreateRequest<'a> {
        let flags = CreateFlags(i32::from(self.0.byte() % 8));
        let (path, acl) = (self.path().into(), self.acl());
        CreateRequest { path, data: self.data(), acl, flags }
    }

    fn write(&mut self) -> MultiOp<'a> {
        match self.0.byte() % 6 {
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
        let count = self.0.below(5);
        (0..count).map(|_| self.write()).collect()
    }

    pub(super) fn request(&mut self) -> RequestFrame {
        let what = self.0.byte();
        let (path, watch) = (self.path().into(), what & 0x40 != 0);
        match what & 0x1F {
            0..=3 => RequestFrame::new(OpCode::CREATE2, &self.create()),
            4 => RequestFrame::new(OpCode::CREATE, &self.create()),
            5 => RequestFrame::new(OpCode::CREATE_CONTAINER, &self.create()),
            6 => {
                let CreateRequest { path, data, acl, flags } = self.create();
                let ttl = i64::from(self.0.number());
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
                let mode = AddWatchMode(i32::from(self.0.byte() % 3));
                RequestFrame::of(&AddWatchRequest { path, mode })
            }
            24 => {
                let kind = WatcherType(i32::from(self.0.byte() % 6));
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
        let (scheme, auth) = self.0.pick(&[
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
        let relative_zxid = Zxid(i64::from(self.0.byte()));
        let mut paths = || List::of_strs((0..self.0.below(3)).map(|_| self.0.pick(&PATHS)));
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
