//! Every record there is: encoded and decoded again, cut short, followed by more, and given bytes
//! that are none.

mod hostile;
mod records;

use std::{
    any::type_name,
    collections::BTreeSet,
    fmt::{self, Debug, Formatter},
    rc::Rc,
};

use bytes::{Bytes, BytesMut};
use proptest::{
    prelude::*,
    test_runner::{FileFailurePersistence, TestCaseResult, TestRunner},
};
use zk_proto::{
    OpCode, Request, Stat, dispatch,
    jute::{Decode, DecodeError, DecodeErrorKind, Encode, Reader, decode_exact, decode_prefix},
    request::{
        ConnectResponse, ConnectView, Create2Response, Create2View, GetDataResponse, GetDataView,
        MultiRequest, MultiResponse, WatcherEvent, WatcherEventView,
    },
    strategy::{AsRecord, Frame, FrameKind, request, response},
};

use self::records::{for_every_record, record_name};

/// A runner that keeps the seeds of failures in a file beside this one.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })
}

/// A value, and what has to hold of it.
struct Case<V, T> {
    value: V,
    test: Rc<T>,
}

impl<V: Debug, T> Debug for Case<V, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

trait Try: Debug {
    fn attempt(self: Box<Self>) -> TestCaseResult;
}

impl<V: Debug, T: Fn(V) -> TestCaseResult> Try for Case<V, T> {
    fn attempt(self: Box<Self>) -> TestCaseResult {
        (self.test)(self.value)
    }
}

#[track_caller]
fn check<S: Strategy<Value: 'static> + 'static>(
    subject: &str,
    strategy: S,
    cases: u32,
    test: impl Fn(S::Value) -> TestCaseResult + 'static,
) {
    let test = Rc::new(test);
    let case = move |value| -> Box<dyn Try> { Box::new(Case { value, test: Rc::clone(&test) }) };
    check_all(subject, &strategy.prop_map(case).boxed(), cases);
}

/// Compiled once, where a runner for each record and each test would take most of the time.
#[track_caller]
fn check_all(subject: &str, strategy: &BoxedStrategy<Box<dyn Try>>, cases: u32) {
    if let Err(error) = runner(cases).run(strategy, |case| case.attempt()) {
        panic!("{subject}: {error}");
    }
}

#[test]
fn every_record_decodes_to_what_was_encoded() {
    fn round_trip<O: Arbitrary + AsRecord + 'static>() {
        check(type_name::<O>(), any::<O>(), 256, |value| {
            let bytes = value.encoded();
            prop_assert_eq!(value.as_record().encoded_len(), bytes.len(), "told beforehand");
            prop_assert!(bytes.len() >= <O::Record<'_> as Decode<'_>>::LEN_MIN);
            let decoded = decode_exact::<O::Record<'_>>(&bytes)?;
            prop_assert_eq!(encode(&decoded), &bytes);
            prop_assert_eq!(decoded, value.as_record());

            let mut reader = Reader::new(&bytes);
            <O::Record<'_> as Decode<'_>>::skip(&mut reader)?;
            prop_assert_eq!(reader.offset(), bytes.len(), "skipped");
            Ok(())
        });
    }
    macro_rules! call {
        ($($record:ty),*) => { $(round_trip::<$record>();)* };
    }
    for_every_record!(call);
}

#[test]
fn view_encodes_as_its_record() {
    macro_rules! view {
        ($($view:ident of $record:ty),*) => {$(
            check(stringify!($view), any::<$record>(), 256, |record| {
                let bytes = record.encoded();
                let view: $view<'_> = decode_exact(&bytes)?;
                prop_assert_eq!(view.encoded_len(), bytes.len());
                prop_assert_eq!(encode(&view), bytes);
                Ok(())
            });
        )*};
    }
    view!(
        GetDataView of GetDataResponse, Create2View of Create2Response,
        WatcherEventView of WatcherEvent, ConnectView of ConnectResponse
    );
}

/// Clients end transactions with different headers, and an inspection is to tell which one it was.
#[test]
fn closing_header_of_a_multi_is_shown_as_it_came() {
    let mut bytes = BytesMut::from(&encode(&MultiRequest::from_iter([]))[..]);
    bytes[..4].copy_from_slice(&[0, 0, 0, 7]);
    let request: MultiRequest = decode_exact(&bytes.freeze()).unwrap();
    let shown = serde_json::to_value(&request).unwrap();
    assert_eq!(shown["end"]["type"], 7, "{shown}");
    let response: MultiResponse = decode_exact(&encode(&request)).unwrap();
    let shown = serde_json::to_value(&response).unwrap();
    assert_eq!(shown["end"]["type"], 7, "{shown}");
}

/// What is null, and what is empty: on the wire they differ.
#[test]
fn null_is_not_shown_as_empty() {
    for (data, expected) in [
        (None, "null"),
        (Some(Bytes::new()), "\"\""),
        (Some(Bytes::from_static(b"\x0A")), "\"0a\""),
    ] {
        let response = GetDataResponse { data, stat: Stat::default() };
        let shown = serde_json::to_value(&response).unwrap();
        assert_eq!(shown["data"].to_string(), expected, "{shown}");
    }
}

#[test]
fn truncated_record_names_the_field() {
    let whole = encode(&Stat::default());
    let truncated = |needed, left| DecodeErrorKind::Truncated { needed, left };
    for (len, field, offset, kind) in [
        (0, "czxid", 0, truncated(8, 0)),
        (20, "ctime", 16, truncated(8, 4)),
        (67, "pzxid", 60, truncated(8, 7)),
    ] {
        let expected = DecodeError { record: "Stat", field, offset, kind };
        assert_eq!(decode_exact::<Stat>(&whole.slice(..len)), Err(expected));
    }
}

#[test]
fn truncated_record_is_never_accepted() {
    fn cut<O: Arbitrary + AsRecord + 'static>() {
        check(type_name::<O>(), any::<O>(), 64, |value| {
            let bytes = value.encoded();
            for len in 0..bytes.len() {
                let short = bytes.slice(..len);
                match decode_exact::<O::Record<'_>>(&short) {
                    Err(DecodeError { offset, kind, .. }) => {
                        prop_assert!(offset <= len, "{offset} of {len}");
                        let lacks_bytes = matches!(
                            kind,
                            DecodeErrorKind::Truncated { .. }
                                | DecodeErrorKind::CountTooLarge { .. }
                        );
                        prop_assert!(lacks_bytes, "{kind}");
                    }
                    // Without the handshake's flag at the end, that is another record.
                    Ok(other) => {
                        prop_assert_eq!(encode(&other), &short);
                        prop_assert_eq!(len + 1, bytes.len());
                    }
                }
            }
            Ok(())
        });
    }
    macro_rules! call {
        ($($record:ty),*) => { $(cut::<$record>();)* };
    }
    for_every_record!(call);
}

/// Servers may append fields to any record; real clients and servers ignore them.
#[test]
fn trailing_bytes_are_ignored_or_reported() {
    fn extend<O: Arbitrary + AsRecord + 'static>() {
        let more = prop::collection::vec(any::<u8>(), 1..9);
        check(type_name::<O>(), (any::<O>(), more), 64, |(value, more)| {
            let bytes = value.encoded();
            let longer = Bytes::from([&bytes[..], &more[..]].concat());
            // Where the handshake's flag is missing, what follows would be it.
            let is_complete = decode_prefix::<O::Record<'_>>(&longer)
                .is_ok_and(|decoded| encode(&decoded) == bytes);
            prop_assert!(is_complete || may_lack_flag::<O>());
            if is_complete {
                let left = DecodeErrorKind::TrailingBytes(more.len());
                let error = decode_exact::<O::Record<'_>>(&longer).map(drop).unwrap_err();
                prop_assert_eq!((error.kind, error.offset), (left, bytes.len()));
            }
            Ok(())
        });
    }
    macro_rules! call {
        ($($record:ty),*) => { $(extend::<$record>();)* };
    }
    for_every_record!(call);
}

fn may_lack_flag<O: AsRecord + 'static>() -> bool {
    ["ConnectRequest", "ConnectResponse", "TrailingFlag"].contains(&record_name::<O>().as_str())
}

#[test]
fn every_operation_is_covered_with_response() {
    let mut covered = BTreeSet::new();
    macro_rules! call {
        ($($record:ty),*) => { $(covered.insert(record_name::<$record>());)* };
    }
    for_every_record!(call);

    for &op in OpCode::KNOWN {
        let names =
            dispatch!(op, R => [type_name::<R<'_>>(), type_name::<<R<'_> as Request>::Response>()]);
        assert_eq!(names.is_some(), request(op).is_some(), "{op}: request strategy");
        assert_eq!(names.is_some(), response(op).is_some(), "{op}: response strategy");
        for name in names.into_iter().flatten().map(records::short) {
            assert!(covered.contains(&name), "{op}: {name} is not among {covered:?}");
        }
    }
}

#[test]
fn messages_decode_as_their_operation() {
    for &op in OpCode::KNOWN {
        let Some((requests, responses)) = request(op).zip(response(op)) else {
            continue;
        };
        check(op.name().unwrap_or_default(), requests, 64, move |request| {
            prop_assert_eq!(request.op(), op);
            let frame = request.frame(zk_proto::Xid(1));
            prop_assert_eq!(frame.kind, FrameKind::Request(op));
            Ok(frame.kind.check(&frame.content())?)
        });
        check(op.name().unwrap_or_default(), responses, 64, move |body| {
            let header = zk_proto::frame::ReplyHeader {
                xid: zk_proto::Xid(1),
                zxid: zk_proto::Zxid(1),
                err: zk_proto::ErrorCode::OK,
            };
            let frame = Frame::reply(op, header, &body);
            Ok(frame.kind.check(&frame.content())?)
        });
    }
}

fn encode(record: &impl Encode) -> Bytes {
    let mut out = BytesMut::new();
    record.encode(&mut out);
    out.freeze()
}
