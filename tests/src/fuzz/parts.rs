//! Lists and streams inside of records: they are as long as they say, and what is taken out of one makes the same one
//! again.

use std::{
    fmt::Debug,
    io::{Write as _, sink},
};

use bytes::Bytes;
use zk_proto::{
    AclList, List, OpCode,
    jute::{Decode, Encode, decode_exact, decode_prefix},
    request::{
        CreateRequest, GetAclResponse, MultiHeader, MultiRequest, MultiResponse, SetAclRequest,
        SetWatches, SetWatches2, WhoAmIResponse,
    },
};

use super::decode::encode;

/// What is in the body of a request.
pub(super) fn of_request(op: OpCode, body: &Bytes) {
    match op {
        OpCode::CREATE | OpCode::CREATE2 | OpCode::CREATE_CONTAINER | OpCode::CREATE_TTL => {
            with(body, |create: CreateRequest<'_>| acl(&create.acl));
        }
        OpCode::SET_ACL => with(body, |set: SetAclRequest<'_>| acl(&set.acl)),
        OpCode::MULTI | OpCode::MULTI_READ => with(body, |multi| operations(&multi, body)),
        OpCode::SET_WATCHES => with(body, |set: SetWatches| {
            [&set.data_watches, &set.exist_watches, &set.child_watches].into_iter().for_each(list);
        }),
        OpCode::SET_WATCHES2 => with(body, |set: SetWatches2| {
            // The older record is the beginning of the newer one.
            let older: SetWatches = decode_prefix(body).expect("it is the beginning");
            assert_eq!(
                (older.relative_zxid, &older.data_watches, &older.child_watches),
                (set.relative_zxid, &set.data_watches, &set.child_watches)
            );
            [&set.persistent_watches, &set.persistent_recursive_watches].into_iter().for_each(list);
        }),
        _ => {}
    }
}

/// What is in the body of a reply.
pub(super) fn of_reply(op: OpCode, body: &Bytes) {
    match op {
        OpCode::GET_ACL => with(body, |get: GetAclResponse| acl(&get.acl)),
        OpCode::WHO_AM_I => with(body, |who: WhoAmIResponse| list(&who.client_info)),
        OpCode::MULTI | OpCode::MULTI_READ => with(body, |multi| results(&multi, body)),
        _ => {}
    }
}

fn with<'a, R: Decode<'a>>(body: &'a Bytes, look: impl FnOnce(R)) {
    if let Ok(record) = decode_prefix(body) {
        look(record);
    }
}

fn acl(acl: &AclList) {
    list(acl);
    for entry in acl.iter() {
        // What is shown is shown whatever it is.
        write!(sink(), "{} {} {}", entry.perms, entry.id.scheme, entry.id.id)
            .expect("a sink takes everything");
    }
}

fn list<T>(list: &List<T>)
where
    T: Encode + for<'a> Decode<'a>,
    List<T>: PartialEq + Debug,
{
    let items = list.to_vec();
    assert_eq!(items.len(), list.len());
    assert!(!list.is_null() || items.is_empty());
    if !list.is_null() {
        assert_eq!(&items.into_iter().collect::<List<T>>(), list);
    }
}

fn operations(multi: &MultiRequest, body: &Bytes) {
    let ops: Vec<_> = multi.iter().collect();
    assert!((ops.len() + 1) * MultiHeader::LEN_MIN <= body.len());
    assert!(ops.iter().all(|(header, _)| !header.done));
    let again: MultiRequest = ops.iter().map(|(_, op)| op.clone()).collect();
    let encoded = encode(&again);
    let decoded = decode_exact::<MultiRequest>(&encoded).expect("what is built can be read");
    let kinds = ops.into_iter().map(|(header, op)| (header.op, op));
    assert!(decoded.iter().map(|(header, op)| (header.op, op)).eq(kinds));
}

fn results(multi: &MultiResponse, body: &Bytes) {
    let results: Vec<_> = multi.iter().map(|(_, result)| result).collect();
    assert!((results.len() + 1) * MultiHeader::LEN_MIN <= body.len());
    let again: MultiResponse = results.iter().cloned().collect();
    let encoded = encode(&again);
    let decoded = decode_exact::<MultiResponse>(&encoded).expect("what is built can be read");
    assert!(decoded.iter().map(|(_, result)| result).eq(results));
}
