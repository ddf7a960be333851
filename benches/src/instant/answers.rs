//! What is answered to a question.

use bytes::{Bytes, BytesMut};
use zk_proto::{
    ErrorCode, EventType, KeeperState, List, OpCode, Stat, Text, Xid, Zxid,
    frame::{ReplyHeader, encode_frame_with},
    jute::{Decode, DecodeError, Encode, Reader},
    request::{
        AddWatchRequest, Create2Response, CreateRequest, CreateResponse, DeleteRequest,
        ExistsResponse, GetChildren2Response, GetChildrenResponse, GetDataRequest, GetDataResponse,
        MultiOp, MultiRequest, MultiResponse, MultiResult, SetDataRequest, SetDataResponse,
        SyncRequest, SyncResponse, WatcherEvent,
    },
};

use super::{Watcher, connection::Connection};
use crate::nodes::child;

impl Connection {
    /// Writes an answer's body. Returns whether the same question may have another effect the next time.
    pub(super) fn carry_out(
        &self,
        op: OpCode,
        reader: &mut Reader<'_>,
        out: &mut BytesMut,
    ) -> Result<bool, DecodeError> {
        let stat = Stat::default();
        match op {
            OpCode::GET_DATA => {
                let GetDataRequest { path, watch } = Decode::decode(reader)?;
                let data = Some(data_of(&path.lossy()));
                GetDataResponse { data, stat }.encode(out);
                self.watch(&path.lossy(), watch, false);
                return Ok(watch);
            }
            OpCode::EXISTS | OpCode::GET_CHILDREN | OpCode::GET_CHILDREN2 => {
                let GetDataRequest { path, watch } = Decode::decode(reader)?;
                match op {
                    OpCode::EXISTS => ExistsResponse { stat }.encode(out),
                    OpCode::GET_CHILDREN => children_of(&path.lossy()).encode(out),
                    _ => {
                        let GetChildrenResponse { children } = children_of(&path.lossy());
                        GetChildren2Response { children, stat }.encode(out);
                    }
                }
                self.watch(&path.lossy(), watch, false);
                return Ok(watch);
            }
            OpCode::SET_DATA => {
                let SetDataRequest { path, .. } = Decode::decode(reader)?;
                SetDataResponse { stat }.encode(out);
                self.fire(&path.lossy(), EventType::NODE_DATA_CHANGED);
            }
            OpCode::CREATE => {
                let CreateRequest { path, .. } = Decode::decode(reader)?;
                CreateResponse { path: Text::from(&*path.lossy()) }.encode(out);
            }
            OpCode::CREATE2 | OpCode::CREATE_CONTAINER => {
                let CreateRequest { path, .. } = Decode::decode(reader)?;
                Create2Response { path: Text::from(&*path.lossy()), stat }.encode(out);
            }
            OpCode::DELETE => {
                let DeleteRequest { path, .. } = Decode::decode(reader)?;
                self.fire(&path.lossy(), EventType::NODE_DELETED);
            }
            OpCode::MULTI => {
                let ops = MultiRequest::decode(reader)?;
                let results = ops.iter().map(|(_, op)| result_of(&op));
                results.collect::<MultiResponse>().encode(out);
            }
            OpCode::SYNC => {
                let SyncRequest { path } = Decode::decode(reader)?;
                SyncResponse { path: Text::from(&*path.lossy()) }.encode(out);
            }
            OpCode::ADD_WATCH => {
                let AddWatchRequest { path, .. } = Decode::decode(reader)?;
                ErrorCode::OK.encode(out);
                self.watch(&path.lossy(), true, true);
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn watch(&self, path: &str, wanted: bool, persistent: bool) {
        if wanted {
            let mut watchers = self.world.watchers.borrow_mut();
            let all = watchers.entry(Bytes::copy_from_slice(path.as_bytes())).or_default();
            all.push(Watcher { mailbox: self.mailbox.clone(), persistent });
        }
    }

    /// Notifies all watchers of this path.
    fn fire(&self, path: &str, kind: EventType) {
        let mut watchers = self.world.watchers.borrow_mut();
        let Some(all) = watchers.get_mut(path.as_bytes()) else { return };
        let event =
            WatcherEvent { kind, state: KeeperState::SYNC_CONNECTED, path: Text::from(path) };
        all.retain(|Watcher { mailbox, persistent }| {
            encode_frame_with(&mut mailbox.events.borrow_mut(), |out| {
                let (zxid, err) = (Zxid(1), ErrorCode::OK);
                ReplyHeader { xid: Xid::NOTIFICATION, zxid, err }.encode(out);
                event.encode(out);
            });
            if let Some(waker) = mailbox.waker.take() {
                waker.wake();
            }
            *persistent
        });
        if all.is_empty() {
            watchers.remove(path.as_bytes());
        }
    }
}

/// The number that a node's name ends with.
fn number_of(path: &str) -> usize {
    path.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// As long as the node's name says.
fn data_of(path: &str) -> Bytes {
    vec![7; number_of(path)].into()
}

/// As many as the node's name says.
fn children_of(path: &str) -> GetChildrenResponse {
    let names: Vec<_> = (0..number_of(path)).map(child).collect();
    GetChildrenResponse { children: List::of_strs(names.iter().map(|name| &**name)) }
}

fn result_of(op: &MultiOp<'_>) -> MultiResult {
    let stat = Stat::default();
    match op {
        MultiOp::Create(create) => {
            MultiResult::Create(CreateResponse { path: Text::from(&*create.path.lossy()) })
        }
        MultiOp::SetData(_) => MultiResult::SetData(SetDataResponse { stat }),
        MultiOp::Delete(_) => MultiResult::Delete,
        _ => MultiResult::Check,
    }
}
