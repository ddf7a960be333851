//! Multis: what is inside a stream can be taken out and put together again.

use bytes::Bytes;
use zk_proto::{
    jute::{Decode, decode_exact, decode_prefix},
    request::{MultiHeader, MultiReadRequest, MultiRequest, MultiResponse},
};

use super::{
    choice,
    decode::{encode, with_content},
};

/// A byte that chooses the record, and its bytes.
pub(super) fn multi(input: &[u8]) {
    let Some((which, content)) = choice::<3>(input) else { return };
    with_content(&content, |frame| match which {
        0 => frame.check::<(), MultiRequest>(),
        1 => frame.check::<(), MultiReadRequest>(),
        _ => frame.check::<(), MultiResponse>(),
    });
    match which {
        0 => decode_prefix(&content).iter().for_each(|multi| request(multi, &content)),
        1 => {
            let read = decode_prefix::<MultiReadRequest>(&content);
            read.iter().for_each(|read| request(&read.0, &content));
        }
        _ => decode_prefix(&content).iter().for_each(|multi| response(multi, &content)),
    }
}

fn request(multi: &MultiRequest, content: &Bytes) {
    let ops: Vec<_> = multi.iter().collect();
    assert!((ops.len() + 1) * MultiHeader::LEN_MIN <= content.len());
    assert!(ops.iter().all(|(header, _)| !header.done));
    let again: MultiRequest = ops.iter().map(|(_, op)| op.clone()).collect();
    let encoded = encode(&again);
    let decoded = decode_exact::<MultiRequest>(&encoded).expect("what is built can be read");
    let kinds = ops.into_iter().map(|(header, op)| (header.op, op));
    assert!(decoded.iter().map(|(header, op)| (header.op, op)).eq(kinds));
}

fn response(multi: &MultiResponse, content: &Bytes) {
    let results: Vec<_> = multi.iter().map(|(_, result)| result).collect();
    assert!((results.len() + 1) * MultiHeader::LEN_MIN <= content.len());
    let again: MultiResponse = results.iter().cloned().collect();
    let encoded = encode(&again);
    let decoded = decode_exact::<MultiResponse>(&encoded).expect("what is built can be read");
    assert!(decoded.iter().map(|(_, result)| result).eq(results));
}
