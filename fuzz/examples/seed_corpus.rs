//! Writes inputs to start from: frames of every operation, as they are and damaged.
//!
//! Each is tried at once, without a fuzzer. They go where `cargo fuzz` looks for them, below `corpus/` in this folder.

use std::{
    fs::{create_dir_all, write},
    io,
    path::Path,
};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use zk_proto::{
    OpCode,
    path::ZkPath,
    strategy::{Frame, FrameKind, Mutation, client_frame, path::invalid_path, server_frame},
};

/// Inputs for each target.
const SEEDS: u32 = 1000;

fn main() -> io::Result<()> {
    seed(
        "request_decode",
        zk_fuzz::request_decode,
        (client_frame(), any::<Mutation>()),
        decode_inputs,
    )?;
    seed(
        "reply_decode",
        zk_fuzz::reply_decode,
        (server_frame(), any::<Mutation>()),
        decode_inputs,
    )?;
    let stream = prop::collection::vec(any::<Frame>(), 0..4);
    seed(
        "frames",
        zk_fuzz::frames,
        (any::<[u8; 2]>(), stream, any::<Mutation>()),
        |(sizes, frames, mutation)| {
            let stream: Vec<_> = frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect();
            let damaged = mutation.apply(&stream.clone().into());
            vec![[&sizes[..], &stream].concat(), [&sizes[..], &damaged].concat()]
        },
    )?;
    seed("path", zk_fuzz::path, (any::<ZkPath>(), invalid_path()), |(valid, invalid)| {
        vec![valid.as_str().into(), invalid.path.into()]
    })
}

/// An input from a frame as it is, and one from what is left of it.
fn decode_inputs((frame, mutation): (Frame, Mutation)) -> Vec<Vec<u8>> {
    let op = match frame.kind {
        FrameKind::ConnectRequest | FrameKind::ConnectResponse => None,
        FrameKind::Notification => Some(OpCode::NOTIFICATION),
        FrameKind::Request(op) | FrameKind::Reply(op) => Some(op),
    };
    let damaged = Frame { bytes: mutation.apply(&frame.bytes), ..frame };
    [frame, damaged].map(|frame| [&[zk_fuzz::choice_of(op)], &frame.content()[..]].concat()).into()
}

fn seed<S: Strategy>(
    target: &str,
    test: fn(&[u8]),
    strategy: S,
    inputs: impl Fn(S::Value) -> Vec<Vec<u8>>,
) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    create_dir_all(&folder)?;
    // The same inputs each time, so that running this again adds nothing.
    let mut runner = TestRunner::deterministic();
    for number in 0..SEEDS {
        let value = strategy
            .new_tree(&mut runner)
            .map_err(|reason| io::Error::other(reason.to_string()))?
            .current();
        for (variant, input) in inputs(value).into_iter().enumerate() {
            test(&input);
            write(folder.join(format!("seed-{number:04}-{variant}")), input)?;
        }
    }
    println!("{target}: inputs in {}", folder.display());
    Ok(())
}
