//! Access control lists, wherever they occur.

use std::io::{Write as _, sink};

use bytes::Bytes;
use zk_proto::{
    AclList, ClientInfo, List,
    jute::{Decode, decode_prefix},
    request::{
        CreateRequest, GetAclRequest, GetAclResponse, SetAclRequest, SetAclResponse, WhoAmIResponse,
    },
};

use super::{
    choice,
    decode::{holds_together, with_content},
};

/// A byte that chooses the record, and its bytes.
pub(super) fn acl(input: &[u8]) {
    let Some((which, content)) = choice::<7>(input) else { return };
    with_content(&content, |frame| match which {
        0 => frame.check::<(), AclList>(),
        1 => frame.check::<(), GetAclRequest<'_>>(),
        2 => frame.check::<(), GetAclResponse>(),
        3 => frame.check::<(), SetAclRequest<'_>>(),
        4 => frame.check::<(), SetAclResponse>(),
        5 => frame.check::<(), WhoAmIResponse>(),
        _ => frame.check::<(), CreateRequest<'_>>(),
    });
    match which {
        0 => list(&content, |list: &AclList| list.clone()),
        2 => list(&content, |response: &GetAclResponse| response.acl.clone()),
        3 => list(&content, |request: &SetAclRequest<'_>| request.acl.clone()),
        5 => list_of_identities(&content),
        6 => list(&content, |request: &CreateRequest<'_>| request.acl.clone()),
        _ => {}
    }
}

/// Takes a list out of a record, and the entries out of the list.
fn list<'a, R: Decode<'a>>(content: &'a Bytes, acl: impl FnOnce(&R) -> AclList) {
    let Ok(record) = decode_prefix::<R>(content) else { return };
    let acl = acl(&record);
    holds_together(&acl);
    for entry in acl.iter() {
        // What is shown is shown whatever it is.
        write!(sink(), "{} {} {}", entry.perms, entry.id.scheme, entry.id.id)
            .expect("a sink takes everything");
    }
}

fn list_of_identities(content: &Bytes) {
    if let Ok(WhoAmIResponse { client_info }) = decode_prefix(content) {
        let identities: &List<ClientInfo> = &client_info;
        holds_together(identities);
    }
}
