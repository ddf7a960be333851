//! Writes inputs to start from: records and frames of every kind, as they are and damaged.
//!
//! Each is tried at once, without a fuzzer. They go where `cargo fuzz` looks for them, below `corpus/`
//! in this folder.

use std::{
    fs::{create_dir_all, write},
    io,
    path::Path,
};

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::TestRunner,
};
use zk_proto::{
    OpCode,
    path::ZkPath,
    strategy::{Frame, FrameKind, Mutation, client_frame, path::invalid_path, server_frame},
};
use zk_tests::fuzz::{Target, choice_of};

/// Inputs for each target.
const SEEDS: u32 = 1000;

/// Connection strings, most of which are none.
const CONNECT_STRINGS: &[&str] = &[
    "a",
    "a:1",
    "zk1:2181,zk2:2182,zk3:2183/app/one",
    " a:1 , b ,, c:3 ",
    "[::1]:5,[fe80::1],::1/x",
    "10.0.0.1:65535",
    "a:0",
    "a:65536",
    "a:+1",
    "[::1",
    "[a]:1",
    "a b",
    "user@host",
    "a/../b",
    "a//",
    ",",
    "/app",
    "\u{FF21}.example:1/\u{E9}",
];

type Seed = BoxedStrategy<Vec<u8>>;

fn main() -> io::Result<()> {
    seed("request_decode", damaged(client_frame().prop_map(of_frame)))?;
    seed("reply_decode", damaged(server_frame().prop_map(of_frame)))?;
    let paths = prop_oneof![
        any::<ZkPath>().prop_map(|path| path.as_str().into()),
        invalid_path().prop_map(|invalid| invalid.path.into()),
    ];
    seed("path", paths.boxed())?;
    let strings = select(CONNECT_STRINGS).prop_map(|text| text.as_bytes().to_vec());
    seed("connect_string", damaged(strings))?;
    let stream = vec(any::<Frame>(), 0..4).prop_map(|frames| {
        frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect::<Vec<_>>()
    });
    let sizes = any::<[u8; 2]>();
    seed("frames", (sizes, damaged(stream)).prop_map(|(sizes, s)| [&sizes[..], &s].concat()).boxed())?;
    seed("session_inputs", vec(any::<u8>(), 0..400).boxed())?;
    // All connect and finish the handshake; then whatever comes.
    let begin = [0, 0, 24, 0, 1, 0, 25, 0];
    let conversations = vec(any::<u8>(), 0..300).prop_map(move |rest| [&begin, &rest[..]].concat());
    seed("server_inputs", conversations.boxed())
}

/// An input from a frame.
fn of_frame(frame: Frame) -> Vec<u8> {
    let op = match frame.kind {
        FrameKind::ConnectRequest | FrameKind::ConnectResponse => None,
        FrameKind::Notification => Some(OpCode::NOTIFICATION),
        FrameKind::Request(op) | FrameKind::Reply(op) => Some(op),
    };
    [&[choice_of(op)], &frame.content()[..]].concat()
}

/// Inputs as they are, or with something that has happened to them.
fn damaged(inputs: impl Strategy<Value = Vec<u8>> + 'static) -> Seed {
    let damage = prop::option::of(any::<Mutation>());
    let apply = |(input, damage): (Vec<u8>, Option<Mutation>)| match damage {
        // What is damaged is the contents of a frame.
        Some(damage) => {
            let frame = Frame::new(FrameKind::Notification, |out| out.extend_from_slice(&input));
            let bytes = damage.apply(&frame.bytes);
            Frame { bytes, ..frame }.content().to_vec()
        }
        None => input,
    };
    (inputs, damage).prop_map(apply).boxed()
}

fn seed(target: &str, inputs: Seed) -> io::Result<()> {
    let to_try = *Target::named(target).expect("there is such a target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    create_dir_all(&folder)?;
    // The same inputs each time, so that running this again adds nothing.
    let mut runner = TestRunner::deterministic();
    for number in 0..SEEDS {
        let tree = inputs.new_tree(&mut runner);
        let input = tree.map_err(|reason| io::Error::other(reason.to_string()))?.current();
        zk_fuzz::run(to_try, &input);
        write(folder.join(format!("seed-{number:04}")), input)?;
    }
    println!("{target}: inputs in {}", folder.display());
    Ok(())
}
