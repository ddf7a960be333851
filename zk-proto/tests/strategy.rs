//! The strategies themselves: what they promise, fuzzers rely on.

use std::collections::BTreeSet;

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{FileFailurePersistence, RngAlgorithm, TestError, TestRng, TestRunner},
};
use zk_proto::{
    ErrorCode, OpCode, Xid, Zxid,
    frame::{LEN_REPLY_MAX, ReplyHeader, RequestHeader, split_frame},
    jute::{Decode, Reader},
    path::{Naming, ZkPath, check},
    request::{MultiOp, MultiReadRequest, MultiRequest, MultiResult},
    strategy::{
        Conversation, Frame, FrameKind, Malformed, Mutation, OwnedAnyRequest, client_frame,
        last_reply_to, malformed, multi_read_response, multi_response, number, path, replies_to,
        request, server_frame,
    },
    traffic::{Received, Sent, Traffic},
};

/// Keeps the seeds of failures in a file beside this one.
fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn valid_paths_are_valid(path in any::<ZkPath>()) {
        prop_assert_eq!(check(&path, Naming::Exact), Ok(()));
        prop_assert_eq!(check(&path, Naming::Sequential), Ok(()));
        let again = path.parent().map(|parent| parent.join(path.name()));
        prop_assert_eq!(again.unwrap_or_else(|| Ok(ZkPath::root())), Ok(path));
    }

    #[test]
    fn invalid_paths_have_the_claimed_fault(invalid in path::invalid_path()) {
        let error = check(&invalid.path, Naming::Exact).map_err(|error| error.fault);
        prop_assert_eq!(error, Err(invalid.fault));
    }

    #[test]
    fn sequential_paths_are_valid_only_numbered(path in path::sequential_only()) {
        prop_assert!(check(&path, Naming::Exact).is_err());
        prop_assert_eq!(check(&path, Naming::Sequential), Ok(()));
        let completed = format!("{path}0000000001");
        prop_assert_eq!(check(&completed, Naming::Exact), Ok(()));
    }

    #[test]
    fn frames_are_what_they_claim(frame in any::<Frame>()) {
        frame.kind.check(&frame.content())?;
        prop_assert_eq!(split(&frame), Some(frame.content()));
    }

    #[test]
    fn client_and_server_frames_are_disjoint(
        from_client in client_frame(),
        from_server in server_frame(),
    ) {
        let is_client = |frame: &Frame| {
            matches!(frame.kind, FrameKind::ConnectRequest | FrameKind::Request(_))
        };
        prop_assert!(is_client(&from_client) && !is_client(&from_server));
    }

    #[test]
    fn multi_has_one_result_per_operation(
        (multi, response) in any::<MultiRequest>()
            .prop_flat_map(|multi| (Just(multi.clone()), multi_response(&multi)))
    ) {
        prop_assert_eq!(response.iter().count(), multi.iter().count());
    }

    #[test]
    fn multi_read_failures_stay_with_their_op(
        (multi, response) in any::<MultiReadRequest>()
            .prop_flat_map(|multi| (Just(multi.clone()), multi_read_response(&multi)))
    ) {
        let mut results = response.iter();
        for (_, op) in &multi.0 {
            let (_, result) = results.next().unwrap();
            let fits = matches!(
                (op, &result),
                (_, MultiResult::Error(_))
                    | (MultiOp::GetData(_), MultiResult::GetData(_))
                    | (MultiOp::GetChildren(_), MultiResult::GetChildren(_))
            );
            prop_assert!(fits, "{result:?}");
        }
        prop_assert_eq!(results.next(), None);
    }

    #[test]
    fn replies_are_told_with_their_requests(conversation in any::<Conversation>()) {
        let mut traffic = Traffic::default();
        for frame in &conversation.client {
            if let Sent::Request(request) = traffic.sent(&frame.content())? {
                prop_assert_eq!(frame.kind, FrameKind::Request(request.header.op));
                prop_assert_eq!(request.decode()?.op(), request.header.op);
            }
        }
        for frame in &conversation.server {
            if let Received::Reply(reply) = traffic.received(&frame.content())? {
                prop_assert_eq!(Some(frame.kind), reply.op().map(FrameKind::Reply));
                prop_assert_eq!(reply.overtaken, 0);
                reply.check()?;
            }
        }
        prop_assert_eq!(traffic.pending().count(), 0);
    }

    #[test]
    fn conversation_answers_requests_in_order(conversation in any::<Conversation>()) {
        for frame in conversation.client.iter().chain(&conversation.server) {
            frame.kind.check(&frame.content())?;
        }
        let [hello, requests @ ..] = &conversation.client[..] else { unreachable!() };
        let [welcome, replies @ ..] = &conversation.server[..] else { unreachable!() };
        prop_assert_eq!(hello.kind, FrameKind::ConnectRequest);
        prop_assert_eq!(welcome.kind, FrameKind::ConnectResponse);

        let mut zxid_last = Zxid(0);
        let mut answers = Vec::new();
        for reply in replies {
            let header: ReplyHeader = header(reply)?;
            prop_assert!(header.zxid >= zxid_last);
            zxid_last = header.zxid;
            if let FrameKind::Reply(op) = reply.kind {
                answers.push((header.xid, op));
            }
        }
        let mut questions = Vec::new();
        for request in requests {
            let RequestHeader { xid, op } = header(request)?;
            questions.push((xid, op));
        }
        prop_assert_eq!(answers, &questions[..]);

        let ordinary: Vec<_> = questions.iter().map(|&(xid, _)| xid).filter(|xid| xid.0 > 0).collect();
        let expected: Vec<_> = (1..).map(Xid).take(ordinary.len()).collect();
        prop_assert_eq!(ordinary, expected);
    }

    #[test]
    fn damage_is_the_sum_of_the_mutations(broken in malformed(any::<Frame>())) {
        let Malformed { original, mutations, frame } = broken;
        // What comes behind a lie about the length does not put it right.
        let lie = mutations.iter().rev().find_map(|mutation| match mutation {
            Mutation::LengthLie { len } => Some(*len),
            _ => None,
        });
        if let (Some(lie), Ok(prefix)) = (lie, i32::decode(&mut Reader::new(&frame.bytes))) {
            prop_assert_eq!(prefix, lie);
        }
        let bytes = mutations.iter().fold(original.bytes, |bytes, mutation| mutation.apply(&bytes));
        prop_assert_eq!(bytes, frame.bytes);
        prop_assert_eq!(original.kind, frame.kind);
    }

    #[test]
    fn mutations_bear_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..12), mutation in any::<Mutation>()) {
        let _ = mutation.apply(&bytes.into());
    }
}

fn header<H: for<'a> Decode<'a>>(frame: &Frame) -> Result<H, TestCaseError> {
    Ok(H::decode(&mut Reader::new(&frame.content()))?)
}

fn split(frame: &Frame) -> Option<bytes::Bytes> {
    let mut buffer = bytes::BytesMut::from(&frame.bytes[..]);
    let content = split_frame(&mut buffer, LEN_REPLY_MAX).ok()?;
    content.filter(|_| buffer.is_empty())
}

/// The smallest conversation with a request for `op`.
fn shrunk(op: OpCode) -> Conversation {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&any::<Conversation>(), |conversation| {
        let is_found = conversation.client.iter().any(|it| it.kind == FrameKind::Request(op));
        prop_assert!(!is_found);
        Ok(())
    });
    match outcome {
        Err(TestError::Fail(_, conversation)) => conversation,
        other => panic!("no {op}: {other:?}"),
    }
}

#[test]
fn conversations_shrink_to_one_request() {
    for op in [OpCode::GET_DATA, OpCode::CREATE2, OpCode::MULTI, OpCode::CLOSE_SESSION] {
        let Conversation { client, server } = shrunk(op);
        assert_eq!(client.len(), 2, "{op}: {client:?}");
        assert_eq!(server.len(), 2, "{op}: {server:?}");
        assert_eq!(header::<ReplyHeader>(&server[1]).unwrap().err, ErrorCode::OK);
    }
}

#[test]
fn replies_shrink_to_those_without_error() {
    let requests = number([OpCode::GET_DATA, OpCode::EXISTS, OpCode::SYNC].map(|op| {
        let request = request(op).unwrap();
        request.new_tree(&mut TestRunner::deterministic()).unwrap().current()
    }));
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&replies_to(&requests), |frames| {
        prop_assert!(frames.len() <= 2);
        Ok(())
    });
    let Err(TestError::Fail(_, frames)) = outcome else { panic!("{outcome:?}") };
    let headers: Vec<ReplyHeader> = frames.iter().map(|frame| header(frame).unwrap()).collect();
    assert_eq!(headers.len(), 3, "without events: {headers:?}");
    assert!(headers.iter().all(|header| header.err.is_ok() && header.zxid == Zxid(0)));
}

#[test]
fn lasting_and_last_replies_are_disjoint() {
    let mut runner = TestRunner::deterministic();
    let asked = number([request(OpCode::EXISTS).unwrap().new_tree(&mut runner).unwrap().current()]);
    let error = |frame: &Frame| header::<ReplyHeader>(frame).unwrap().err;
    let (mut lasting, mut last) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..3000 {
        let frames = replies_to(&asked).new_tree(&mut runner).unwrap().current();
        lasting.extend(frames.last().map(error));
        last.insert(error(&last_reply_to(&asked[0]).new_tree(&mut runner).unwrap().current()));
    }
    assert!(lasting.is_disjoint(&last), "{lasting:?} {last:?}");
    assert!(lasting.len() > 10 && last.len() == 5, "{lasting:?} {last:?}");
}

/// Damage that is never noticed is as useless to a fuzzer as damage that is always refused at once.
#[test]
fn mutations_are_often_refused_not_always() {
    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::<_, [u32; 2]>::new();
    for _ in 0..4000 {
        let damage = (any::<Frame>(), any::<Mutation>());
        let (frame, mutation) = damage.new_tree(&mut runner).unwrap().current();
        let kind = match mutation {
            Mutation::Truncate { .. } => "truncated",
            Mutation::Count { .. } => "another count",
            Mutation::FlipBit { .. } => "a flipped bit",
            Mutation::Insert { .. } => "more bytes",
            Mutation::Remove { .. } => "fewer bytes",
            Mutation::CutOff { .. } => "cut off",
            Mutation::LengthLie { .. } => "another length",
            _ => "something new",
        };
        let bytes = mutation.apply(&frame.bytes);
        let damaged = Frame { bytes, ..frame };
        let is_refused =
            split(&damaged).is_none_or(|content| damaged.kind.check(&content).is_err());
        seen.entry(kind).or_default()[usize::from(is_refused)] += 1;
    }
    println!("[taken, refused]: {seen:#?}");
    assert_eq!(seen.len(), 7);
    for (kind, [taken, refused]) in seen {
        let never_whole = ["truncated", "cut off", "another length"].contains(&kind);
        assert!(refused >= 50, "{kind}: {refused} refused");
        assert!(taken >= 5 || never_whole, "{kind}: {taken} taken");
    }
}

#[test]
fn any_request_is_any_operation() {
    let mut runner = TestRunner::deterministic();
    let ops: BTreeSet<_> = (0..2000)
        .map(|_| any::<OwnedAnyRequest>().new_tree(&mut runner).unwrap().current().op())
        .collect();
    assert_eq!(ops.len(), 30, "{ops:?}");
}
