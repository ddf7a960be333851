//! Requests that one member answers by itself.

use std::borrow::Cow;

use bytes::Bytes;
use zk_proto::{
    AddWatchMode, ClientInfo, ErrorCode, EventType, List, OpCode, Perms, SessionId, Str, Text,
    WatcherType, Xid, Zxid,
    jute::{Decode, Reader},
    request::{
        AddWatchRequest, CheckWatchesRequest, ErrorResponse, ExistsRequest, ExistsResponse,
        GetAclRequest, GetAclResponse, GetAllChildrenNumberRequest, GetAllChildrenNumberResponse,
        GetChildren2Response, GetChildrenRequest, GetChildrenResponse, GetDataRequest,
        GetDataResponse, GetEphemeralsRequest, GetEphemeralsResponse, MultiOp, MultiResponse,
        MultiResult, SetWatches, SetWatches2, WhoAmIResponse,
    },
};

use super::{
    Config, Conn,
    acl::{self, Identities},
    connection::{Encoded, Refused},
    java, multi,
    node::Node,
    prepare::there,
    quirks,
    tree::Tree,
    watches::Watches,
};

/// The asking client, and what there is to see.
pub(super) struct View<'a> {
    pub(super) conn: Conn,
    pub(super) session: SessionId,
    pub(super) identities: &'a Identities,
    pub(super) tree: &'a Tree,
    pub(super) watches: &'a mut Watches,
    pub(super) config: &'a Config,
}

/// An event that restoring a watch has brought about.
pub(super) type Missed = (EventType, Box<str>);

pub(super) fn decode<'a, T: Decode<'a>>(body: &'a Bytes) -> Result<T, ErrorCode> {
    // What comes after the last field is ignored, as servers do.
    T::decode(&mut Reader::new(body)).map_err(|_| ErrorCode::MARSHALLING_ERROR)
}

impl View<'_> {
    /// Answers a read; restoring watches may bring about events, which go first.
    pub(super) fn answer(
        &mut self,
        op: OpCode,
        body: &Bytes,
        missed: &mut Vec<Missed>,
    ) -> Result<Encoded, Refused> {
        if op == OpCode::MULTI_READ {
            return self.multi_read(body);
        }
        Ok(self.answer_one(op, body, missed)?)
    }

    fn answer_one(
        &mut self,
        op: OpCode,
        body: &Bytes,
        missed: &mut Vec<Missed>,
    ) -> Result<Encoded, ErrorCode> {
        match op {
            OpCode::EXISTS => self.exists(&decode(body)?),
            OpCode::GET_DATA => self.get_data(&decode(body)?),
            OpCode::GET_ACL => self.get_acl(&decode(body)?),
            OpCode::GET_CHILDREN => {
                let (children, _) = self.get_children(&decode(body)?)?;
                Ok(Encoded::of(&GetChildrenResponse { children }))
            }
            OpCode::GET_CHILDREN2 => {
                let (children, stat) = self.get_children(&decode(body)?)?;
                Ok(Encoded::of(&GetChildren2Response { children, stat }))
            }
            OpCode::GET_EPHEMERALS => self.get_ephemerals(&decode(body)?),
            OpCode::GET_ALL_CHILDREN_NUMBER => self.count(&decode(body)?),
            OpCode::WHO_AM_I => Ok(self.who_am_i()),
            OpCode::SET_WATCHES => {
                self.set_watches(java::request::<SetWatches>(body)?.into_2(), missed)
            }
            OpCode::SET_WATCHES2 => self.set_watches(java::request(body)?, missed),
            OpCode::ADD_WATCH => self.add_watch(&decode(body)?),
            OpCode::CHECK_WATCHES => self.check_watches(&decode(body)?, false),
            OpCode::REMOVE_WATCHES => self.check_watches(&decode(body)?, true),
            _ => Err(ErrorCode::UNIMPLEMENTED),
        }
    }

    fn node(&self, path: &str) -> Result<&Node, ErrorCode> {
        self.tree.get(path).ok_or(ErrorCode::NO_NODE)
    }

    fn readable(&self, path: &str) -> Result<&Node, ErrorCode> {
        let node = self.node(path)?;
        self.identities.check(Perms::READ, node)?;
        Ok(node)
    }

    fn exists(&mut self, it: &ExistsRequest<'_>) -> Result<Encoded, ErrorCode> {
        let path = there(it.path)?;
        if path.contains('\0') {
            return Err(ErrorCode::BAD_ARGUMENTS);
        }
        let node = self.tree.get(&path);
        if let Some(node) = node {
            if quirks::existence_is_guarded(self.config.release) {
                self.identities.check(Perms::READ, node)?;
            }
        }
        if it.watch {
            self.watches.add_data(self.conn, &path);
        }
        let stat = node.ok_or(ErrorCode::NO_NODE)?.stat();
        Ok(Encoded::of(&ExistsResponse { stat }))
    }

    fn get_data(&mut self, it: &GetDataRequest<'_>) -> Result<Encoded, ErrorCode> {
        let path = there(it.path)?;
        let node = self.readable(&path)?;
        let response = GetDataResponse { data: node.data.clone(), stat: node.stat() };
        if it.watch {
            self.watches.add_data(self.conn, &path);
        }
        Ok(Encoded::of(&response))
    }

    fn get_children(
        &mut self,
        it: &GetChildrenRequest<'_>,
    ) -> Result<(List<Text>, zk_proto::Stat), ErrorCode> {
        let path = there(it.path)?;
        let node = self.readable(&path)?;
        let answer = (List::of_strs(node.children()), node.stat());
        if it.watch {
            self.watches.add_children(self.conn, &path);
        }
        Ok(answer)
    }

    fn get_acl(&self, it: &GetAclRequest<'_>) -> Result<Encoded, ErrorCode> {
        let node = self.node(&there(it.path)?)?;
        self.identities.check(Perms::READ | Perms::ADMIN, node)?;
        let may_change = self.identities.may(Perms::ADMIN, node);
        let acl = if may_change { node.acl.clone() } else { acl::masked(&node.acl) };
        let acl = if node.open { acl } else { acl::written(&acl) };
        Ok(Encoded::of(&GetAclResponse { acl, stat: node.stat() }))
    }

    fn get_ephemerals(&self, it: &GetEphemeralsRequest<'_>) -> Result<Encoded, ErrorCode> {
        let prefix = java::string(it.prefix_path.as_bytes());
        let all = matches!(prefix.trim_matches(|c| c <= ' '), "" | "/");
        let mine = self.tree.ephemerals(self.session);
        let ephemerals = List::of_strs(mine.filter(|path| all || path.starts_with(&*prefix)));
        Ok(Encoded::of(&GetEphemeralsResponse { ephemerals }))
    }

    fn count(&self, it: &GetAllChildrenNumberRequest<'_>) -> Result<Encoded, ErrorCode> {
        let path = there(it.path)?;
        self.readable(&path)?;
        let total_number = i32::try_from(self.tree.count_below(&path)).unwrap_or(i32::MAX);
        Ok(Encoded::of(&GetAllChildrenNumberResponse { total_number }))
    }

    fn who_am_i(&self) -> Encoded {
        let info = |(id, user): (&zk_proto::Id, String)| ClientInfo {
            auth_scheme: id.scheme.clone(),
            user: if id.scheme.lossy() == "ip" { id.id.clone() } else { java::text(&user) },
        };
        Encoded::of(&WhoAmIResponse { client_info: self.identities.users().map(info).collect() })
    }

    fn multi_read(&self, body: &Bytes) -> Result<Encoded, Refused> {
        let ops =
            multi::read(body, self.config.release).map_err(|_| ErrorCode::MARSHALLING_ERROR)?;
        let readable = |path: Str<'_>| there(path).and_then(|path| self.readable(&path));
        let one = |op: &MultiOp<'_>| match op {
            MultiOp::GetData(it) => readable(it.path).map(|node| {
                let response = GetDataResponse { data: node.data.clone(), stat: node.stat() };
                MultiResult::GetData(response)
            }),
            MultiOp::GetChildren(it) => readable(it.path).map(|node| {
                let children = List::of_strs(node.children());
                MultiResult::GetChildren(GetChildrenResponse { children })
            }),
            _ => Err(ErrorCode::MARSHALLING_ERROR),
        };
        let mut results = Vec::new();
        for op in ops {
            results.push(match one(&op) {
                Ok(result) => result,
                // This spoils the whole, though the answer has been begun.
                Err(code @ ErrorCode::MARSHALLING_ERROR) => {
                    let response: MultiResponse = results.into_iter().collect();
                    return Err(Refused { code, rest: Encoded::of(&response) });
                }
                Err(error) => MultiResult::Error(error),
            });
        }
        Ok(Encoded::of(&results.into_iter().collect::<MultiResponse>()))
    }

    fn set_watches(
        &mut self,
        it: SetWatches2,
        missed: &mut Vec<Missed>,
    ) -> Result<Encoded, ErrorCode> {
        // Servers go through the lists one by one; what comes before a null has its effect.
        let since = it.relative_zxid;
        for path in paths(&it.data_watches)? {
            let path = present(path)?;
            match self.tree.get(&path) {
                None => missed.push((EventType::NODE_DELETED, path)),
                Some(node) if node.mzxid > since => {
                    missed.push((EventType::NODE_DATA_CHANGED, path));
                }
                Some(_) => self.watches.add_data(self.conn, &path),
            }
        }
        for path in paths(&it.exist_watches)? {
            let path = present(path)?;
            match self.tree.get(&path) {
                Some(_) => missed.push((EventType::NODE_CREATED, path)),
                None => self.watches.add_data(self.conn, &path),
            }
        }
        for path in paths(&it.child_watches)? {
            let path = present(path)?;
            match self.tree.get(&path) {
                None => missed.push((EventType::NODE_DELETED, path)),
                Some(node) if node.pzxid > since => {
                    missed.push((EventType::NODE_CHILDREN_CHANGED, path));
                }
                Some(_) => self.watches.add_children(self.conn, &path),
            }
        }
        for path in paths(&it.persistent_watches)? {
            self.watches.add_persistent(self.conn, &path.unwrap_or_else(|| NOWHERE.into()), false);
        }
        for path in paths(&it.persistent_recursive_watches)? {
            self.watches.add_persistent(self.conn, &path.unwrap_or_else(|| NOWHERE.into()), true);
        }
        Ok(Encoded::default())
    }

    fn add_watch(&mut self, it: &AddWatchRequest<'_>) -> Result<Encoded, ErrorCode> {
        let recursive = match it.mode {
            AddWatchMode::PERSISTENT => false,
            AddWatchMode::PERSISTENT_RECURSIVE => true,
            _ => return Err(ErrorCode::MARSHALLING_ERROR),
        };
        self.watches.add_persistent(self.conn, &watched(it.path), recursive);
        Ok(Encoded::of(&ErrorResponse { err: ErrorCode::OK }))
    }

    /// Asks for watches, and ends them on request.
    fn check_watches(
        &mut self,
        it: &CheckWatchesRequest<'_>,
        end: bool,
    ) -> Result<Encoded, ErrorCode> {
        let kinds_known = if quirks::watches_mix(self.config.release) { 1..=5 } else { 1..=3 };
        let WatcherType(number) = it.kind;
        if !kinds_known.contains(&number) {
            return Err(ErrorCode::MARSHALLING_ERROR);
        }
        if !end && quirks::seeks_watches_upwards(self.config.release) {
            // It stumbles on the way up to the root if there is none.
            let path = there(it.path)?;
            let far = self.watches.any_recursive() && !self.watches.anybody_has(&path, it.kind);
            if !path.is_empty() && !path.starts_with('/') && (far || !path.contains('/')) {
                return Err(ErrorCode::MARSHALLING_ERROR);
            }
        }
        let path = watched(it.path);
        let there = if end {
            self.watches.remove(self.conn, &path, it.kind)
        } else if quirks::seeks_watches_upwards(self.config.release) {
            self.watches.anybody_has(&path, it.kind)
        } else {
            self.watches.has(self.conn, &path, it.kind)
        };
        there.then(Encoded::default).ok_or(ErrorCode::NO_WATCHER)
    }
}

/// Where a watch on null is kept: it can be there, and nothing ever happens at it.
const NOWHERE: &str = "\0";

fn watched(path: Str<'_>) -> Cow<'_, str> {
    there(path).unwrap_or_else(|_| NOWHERE.into())
}

fn paths(list: &List<Text>) -> Result<impl Iterator<Item = Option<Box<str>>> + '_, ErrorCode> {
    if list.is_null() {
        return Err(ErrorCode::MARSHALLING_ERROR);
    }
    Ok(list.iter().map(|path| path.as_bytes().map(|path| (*java::string(Some(path))).into())))
}

fn present(path: Option<Box<str>>) -> Result<Box<str>, ErrorCode> {
    path.ok_or(ErrorCode::MARSHALLING_ERROR)
}

/// The older way to restore watches, in terms of the newer one.
trait IntoSetWatches2 {
    fn into_2(self) -> SetWatches2;
}

impl IntoSetWatches2 for SetWatches {
    fn into_2(self) -> SetWatches2 {
        SetWatches2 {
            relative_zxid: self.relative_zxid,
            data_watches: self.data_watches,
            exist_watches: self.exist_watches,
            child_watches: self.child_watches,
            persistent_watches: List::EMPTY,
            persistent_recursive_watches: List::EMPTY,
        }
    }
}

/// An event as it goes over the wire.
pub(super) fn event(kind: EventType, path: &str, zxid: Zxid) -> Bytes {
    let event = zk_proto::request::WatcherEvent {
        kind,
        state: zk_proto::KeeperState::SYNC_CONNECTED,
        path: java::text(path),
    };
    super::connection::reply(Xid::NOTIFICATION, zxid, Ok(&event))
}
