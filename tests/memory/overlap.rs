//! Client and server work at the same time: what follows the first of many answers is written before the last is given.

use std::{mem, sync::Mutex, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};
use zk_client::{BoxFuture, Client, Connect, ConnectOptions, Transport};
use zk_proto::{
    ErrorCode, Stat, Xid, Zxid,
    frame::{ReplyHeader, RequestHeader, encode_frame, encode_frame_with},
    jute::{Decode as _, Encode as _, Reader},
    request::GetDataResponse,
};
use zk_tests::{pretender::greeting, wire::frames};

/// Tasks that read, each one node after another.
const TASKS: usize = 64;

const PATIENCE: Duration = Duration::from_secs(60);

/// The one connection that there is.
struct Only(Mutex<Option<DuplexStream>>);

impl Connect for Only {
    fn connect(&self, _: &str) -> BoxFuture<'static, std::io::Result<Box<dyn Transport>>> {
        let stream = self.0.lock().unwrap().take();
        Box::pin(async { Ok(Box::new(stream.unwrap()) as Box<dyn Transport>) })
    }
}

/// Appends the answer to a read.
fn answer(xid: Xid, out: &mut BytesMut) {
    encode_frame_with(out, |out| {
        ReplyHeader { xid, zxid: Zxid(1), err: ErrorCode::OK }.encode(out);
        GetDataResponse { data: None, stat: Stat::default() }.encode(out);
    });
}

/// Frames that came in one read.
async fn came(stream: &mut DuplexStream) -> Vec<Bytes> {
    let mut bytes = BytesMut::with_capacity(1 << 16);
    timeout(PATIENCE, stream.read_buf(&mut bytes)).await.unwrap().unwrap();
    frames(&bytes)
}

async fn reads(zk: Client) {
    loop {
        zk.get("/a").await.unwrap();
    }
}

/// Answers when all tasks wait for it, and all of them at once. Says how many requests each read had brought till then.
async fn serve(mut stream: DuplexStream, rounds: mpsc::UnboundedSender<Vec<usize>>) {
    came(&mut stream).await;
    let mut out = BytesMut::new();
    encode_frame(&greeting(), &mut out);
    let (mut pieces, mut waiting) = (Vec::new(), 0);
    loop {
        stream.write_all(&mem::take(&mut out)).await.unwrap();
        while waiting < TASKS {
            let came = came(&mut stream).await;
            for frame in &came {
                let asked = RequestHeader::decode(&mut Reader::new(frame)).unwrap();
                answer(asked.xid, &mut out);
            }
            waiting += came.len();
            pieces.push(came.len());
        }
        waiting = 0;
        if rounds.send(mem::take(&mut pieces)).is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn requests_are_sent_while_replies_are_read() {
    let (near, far) = duplex(1 << 20);
    let (tell, mut rounds) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(far, tell));
    let options = ConnectOptions::new("anywhere:2181").unwrap();
    let only = Only(Mutex::new(Some(near)));
    let zk = timeout(PATIENCE, options.connector(only).connect()).await.unwrap().unwrap();
    (0..TASKS).for_each(|_| drop(tasks.spawn(reads(zk.clone()))));
    for round in 0..10 {
        let pieces = timeout(PATIENCE, rounds.recv()).await.unwrap().unwrap();
        if round > 0 {
            assert!(pieces[0] <= TASKS / 2, "round {round}: {pieces:?}");
        }
    }
}
