//! Several writes at once: reading them, judging them, answering them.

use bytes::Bytes;
use zk_proto::{
    CreateFlags, ErrorCode, OpCode, Stat, Time,
    jute::{Decode as _, DecodeError, Reader},
    request::{
        CheckVersionRequest, Create2Response, CreateRequest, CreateResponse, CreateTtlRequest,
        DeleteRequest, GetChildrenRequest, GetDataRequest, MultiHeader, MultiOp, MultiResponse,
        MultiResult, SetDataRequest, SetDataResponse,
    },
};

use super::{
    Ensemble,
    author::{Answer, Author},
    connection::{Encoded, Refused},
    java::Lenient as _,
    prepare::op_in_multi,
    quirks,
    tree::{Effects, Tree},
    txn::Txn,
};
use crate::release::Release;

/// Why a multi cannot even be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Garbage {
    /// It is not a multi.
    Malformed,
    /// Something is null that must not be. Servers stumble over it, perhaps before the multi has a
    /// place in history.
    Null { early: bool },
}

impl From<DecodeError> for Garbage {
    fn from(_: DecodeError) -> Self {
        Self::Malformed
    }
}

/// The parts of a multi, as far as servers look at each while they read.
pub(super) fn read(body: &Bytes, release: Release) -> Result<Vec<MultiOp<'_>>, Garbage> {
    // These look at flags already.
    let strict = quirks::multi_has_create2(release);
    let mut reader = Reader::new(body);
    let mut ops: Vec<MultiOp<'_>> = Vec::new();
    loop {
        let header = MultiHeader::decode(&mut reader)?;
        if header.done {
            return Ok(ops);
        }
        if !quirks::reads_in_multi(release, header.op) {
            return Err(Garbage::Malformed);
        }
        let op = match header.op {
            OpCode::CREATE => MultiOp::Create(create(&mut reader, strict)?),
            OpCode::CREATE2 => MultiOp::Create2(create(&mut reader, strict)?),
            OpCode::CREATE_CONTAINER => MultiOp::CreateContainer(create(&mut reader, strict)?),
            OpCode::CREATE_TTL => MultiOp::CreateTtl(CreateTtlRequest::read(&mut reader)?),
            OpCode::DELETE => MultiOp::Delete(DeleteRequest::decode(&mut reader)?),
            OpCode::SET_DATA => MultiOp::SetData(SetDataRequest::decode(&mut reader)?),
            OpCode::CHECK => MultiOp::Check(CheckVersionRequest::decode(&mut reader)?),
            OpCode::GET_DATA => MultiOp::GetData(GetDataRequest::decode(&mut reader)?),
            OpCode::GET_CHILDREN => MultiOp::GetChildren(GetChildrenRequest::decode(&mut reader)?),
            _ => return Err(Garbage::Malformed),
        };
        // Reads and writes do not go together.
        if ops.first().is_some_and(|first| is_read(first) != is_read(&op)) {
            return Err(Garbage::Malformed);
        }
        ops.push(op);
    }
}

const fn is_read(op: &MultiOp<'_>) -> bool {
    matches!(op, MultiOp::GetData(_) | MultiOp::GetChildren(_))
}

fn create<'a>(reader: &mut Reader<'a>, strict: bool) -> Result<CreateRequest<'a>, Garbage> {
    let request = CreateRequest::read(reader)?;
    let CreateFlags(flags) = request.flags;
    if !strict {
        return Ok(request);
    }
    if !(0..=CreateFlags::PERSISTENT_SEQUENTIAL_TTL.0).contains(&flags) {
        return Err(Garbage::Malformed);
    }
    if request.acl.is_null() {
        return Err(Garbage::Null { early: true });
    }
    // What must have a time to live cannot have one here.
    let fits = flags <= CreateFlags::CONTAINER.0;
    fits.then_some(request).ok_or(Garbage::Malformed)
}

const fn has_path(op: &MultiOp<'_>) -> bool {
    let path = match op {
        MultiOp::Create(it) | MultiOp::Create2(it) | MultiOp::CreateContainer(it) => it.path,
        MultiOp::CreateTtl(it) => it.path,
        MultiOp::Delete(it) => it.path,
        MultiOp::SetData(it) => it.path,
        MultiOp::Check(it) => it.path,
        MultiOp::GetData(it) => it.path,
        MultiOp::GetChildren(it) => it.path,
        _ => return false,
    };
    path.as_bytes().is_some()
}

impl Ensemble {
    /// All or nothing: each operation sees what those before it have done.
    pub(super) fn commit_multi(
        &mut self,
        now: Time,
        leader: usize,
        author: &Author,
        body: &Bytes,
    ) -> Answer {
        let code = ErrorCode::MARSHALLING_ERROR;
        let early = quirks::null_in_multi_has_zxid(self.config.release);
        let ops = match read(body, self.config.release) {
            Ok(ops) if !ops.iter().all(has_path) => Err(Garbage::Null { early: !early }),
            ops => ops,
        };
        if let Err(Garbage::Null { early: true }) = ops {
            // The answer was begun before anything was noticed, if it was noticed that late.
            let rest = if early { Encoded::default() } else { Encoded::of(&refused(0, 0, code)) };
            return Answer { zxid: self.zxid, result: Err(Refused { code, rest }) };
        }
        let stamp = self.stamp(now, author.session);
        let zxid = stamp.zxid;
        let Some(ops) = ops.ok().filter(|ops| !ops.iter().any(is_read)) else {
            self.record(now, leader, stamp, Txn::Error(code));
            return Answer { zxid, result: Err(code.into()) };
        };
        let mut effects = Effects::default();
        let (mut txns, mut results) = (Vec::new(), Vec::new());
        let mut failure = None;
        let leading = self.members.get(leader);
        let committed =
            leading.filter(|_| self.config.enforce_quota).map(|replica| replica.tree.clone());
        for op in &ops {
            let txn = self.case(leader, author, body, committed.as_ref(), |case| case.multi_op(op));
            let replica = self.members.get_mut(leader);
            match (txn, replica) {
                (Ok(txn), Some(replica)) => {
                    replica.tree.apply(stamp, &txn, &mut effects);
                    let op = op_in_multi(op, self.config.release);
                    results.push(result(&replica.tree, op, &txn));
                    txns.push(txn);
                }
                (txn, _) => {
                    failure = txn.err();
                    break;
                }
            }
        }
        if let Some(replica) = self.members.get_mut(leader) {
            replica.tree.take_back(effects);
        }
        let (txn, result) = match failure {
            None => (Txn::Multi(txns), Ok(results.into_iter().collect())),
            // Servers stumble over this, so that it spoils the whole.
            Some(error @ ErrorCode::MARSHALLING_ERROR) => (Txn::Error(error), Err(error)),
            Some(error) => (Txn::Error(error), Ok(refused(ops.len(), txns.len(), error))),
        };
        self.record(now, leader, stamp, txn);
        let result =
            result.map(|response: MultiResponse| Encoded::of(&response)).map_err(Refused::from);
        Answer { zxid, result }
    }
}

/// The reply to one operation, right after it.
fn result(tree: &Tree, op: OpCode, txn: &Txn) -> MultiResult {
    let stat = |path: &str| tree.get(path).map_or_else(Stat::default, |node| node.stat());
    match txn {
        Txn::Create { path, data, .. } if op != OpCode::CREATE => {
            let len = data.as_ref().map_or(0, Bytes::len);
            let stat = Stat { data_length: i32::try_from(len).unwrap_or(i32::MAX), ..stat(path) };
            MultiResult::Create2(Create2Response { path: (&**path).into(), stat })
        }
        Txn::Create { path, .. } => MultiResult::Create(CreateResponse { path: (&**path).into() }),
        Txn::SetData { path, .. } => MultiResult::SetData(SetDataResponse { stat: stat(path) }),
        Txn::Delete { .. } => MultiResult::Delete,
        _ => MultiResult::Check,
    }
}

/// Results of a multi that failed: nothing was done, and only one operation is to blame.
fn refused(count: usize, failed: usize, error: ErrorCode) -> MultiResponse {
    let code = |index: usize| match index.cmp(&failed) {
        std::cmp::Ordering::Less => ErrorCode::OK,
        std::cmp::Ordering::Equal => error,
        std::cmp::Ordering::Greater => ErrorCode::RUNTIME_INCONSISTENCY,
    };
    (0..count).map(|index| MultiResult::Error(code(index))).collect()
}
