//! Prints what was said on a connection, from the bytes of both directions in two files.

use bytes::BytesMut;
use zk_proto::{
    frame::{LEN_REPLY_MAX, LEN_REQUEST_MAX, split_frame},
    traffic::{Received, Sent, Traffic},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files = std::env::args_os().skip(1);
    let mut bytes = || std::fs::read(files.next().unwrap_or_default());
    let mut from_client = BytesMut::from(&bytes()?[..]);
    let mut from_server = BytesMut::from(&bytes()?[..]);

    let mut traffic = Traffic::default();
    while let Some(frame) = split_frame(&mut from_client, LEN_REQUEST_MAX)? {
        match traffic.sent(&frame)? {
            Sent::Connect(connect) => println!("> {connect:?}"),
            Sent::Request(request) => println!("> {} {:?}", request.header.xid, request.decode()?),
        }
    }
    while let Some(frame) = split_frame(&mut from_server, LEN_REPLY_MAX)? {
        match traffic.received(&frame)? {
            Received::Connect(connect) => println!("< {connect:?}"),
            Received::Refused(header) => println!("< no session: {}", header.err),
            Received::Event { event, .. } => println!("< {event:?}"),
            // Servers do not say what they answer; its request does.
            Received::Reply(reply) => {
                println!("< {} {:?} {}", reply.header.xid, reply.op(), reply.header.err);
            }
        }
    }
    Ok(())
}
