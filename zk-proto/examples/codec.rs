//! A request on its way: encoded as a client does it, and read as a server or a proxy does.

use bytes::BytesMut;
use zk_proto::{
    OpCode, Str, Xid,
    frame::{LEN_REQUEST_MAX, RequestFrame, RequestHeader, split_frame},
    jute::{Decode as _, Reader},
    request::GetDataRequest,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut wire = BytesMut::new();
    let request = GetDataRequest { path: Str::from("/config"), watch: true };
    RequestFrame::of(&request).write(Xid(1), &mut wire);

    // `None` as long as there is only a part of it; judged by its length before anything is allocated.
    let frame = split_frame(&mut wire, LEN_REQUEST_MAX)?.ok_or("more bytes are needed")?;
    let mut reader = Reader::new(&frame);
    let RequestHeader { xid, op } = RequestHeader::decode(&mut reader)?;
    assert_eq!((xid, op), (Xid(1), OpCode::GET_DATA));
    // Borrows from the frame: no string is copied.
    assert_eq!(GetDataRequest::decode(&mut reader)?, request);
    Ok(())
}
