//! Bytes that no codec wrote: a peer that controls a connection must not be able to end the process
//! or to fill its memory.

use std::{any::type_name, fmt::Debug, hint::black_box};

use allocation_counter::measure;
use bytes::{Bytes, BytesMut};
use proptest::{collection::vec, prelude::*};
use serde::Serialize;
use zk_proto::{
    List, OpCode, Str, Text,
    frame::{LEN_REPLY_MAX, split_frame},
    jute::{Decode, DecodeError, DecodeErrorKind, Encode, Reader, decode_exact, decode_prefix},
    request::{GetChildrenResponse, MultiOp, MultiRequest, MultiResponse},
    strategy::{AsRecord, Frame, Mutation, malformed},
};

use crate::{check, encode, records::for_every_record};

/// What decoding may allocate besides twice the length of its input, in bytes: bookkeeping of shared
/// buffers, which does not grow.
const SLACK: u64 = 1024;

/// Peak bytes that decoding `input` as a `T` has allocated.
fn peak<'a, T: Decode<'a>>(input: &'a Bytes) -> u64 {
    measure(|| {
        let _ = black_box(decode_prefix::<T>(input));
    })
    .bytes_max
}

fn is_frugal(peak: u64, input: &Bytes) -> bool {
    peak <= 2 * input.len() as u64 + SLACK
}

/// What to do with bytes that may or may not be a record.
type Trial = fn(&Bytes) -> Result<(), TestCaseError>;

/// Decodes `input`; whatever comes of it must be usable, and mean the same when encoded again.
fn attempt<O: AsRecord + 'static>(input: &Bytes) -> Result<(), TestCaseError>
where
    for<'a> O::Record<'a>: Serialize,
{
    let peak = peak::<O::Record<'_>>(input);
    prop_assert!(
        is_frugal(peak, input),
        "{peak} bytes to decode {} as {}",
        input.len(),
        type_name::<O>()
    );
    let encoded;
    if let Ok(record) = decode_prefix::<O::Record<'_>>(input) {
        let shown = format!("{record:?}");
        prop_assert!(!shown.is_empty());
        prop_assert!(serde_json::to_value(&record).is_ok());
        encoded = encode(&record);
        prop_assert_eq!(decode_exact::<O::Record<'_>>(&encoded)?, record);
    }
    Ok(())
}

/// One trial for every record.
fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    macro_rules! call {
        ($($record:ty),*) => { $(trials.push(attempt::<$record>);)* };
    }
    for_every_record!(call);
    trials
}

/// Tries everything on `content` and on what is behind the headers that it may have.
fn attempt_all(content: &Bytes, trials: &[Trial]) -> Result<(), TestCaseError> {
    for offset in [0, 8, 16] {
        if let Some(rest) = content.get(offset..) {
            let rest = content.slice_ref(rest);
            trials.iter().try_for_each(|trial| trial(&rest))?;
        }
    }
    Ok(())
}

#[test]
fn random_bytes_decode_within_bounds() {
    let trials = trials();
    check("random bytes", vec(any::<u8>(), 0..256), 256, move |bytes| {
        attempt_all(&bytes.into(), &trials)
    });
}

/// Random bytes rarely get past the first count; bytes that look like small counts do.
#[test]
fn count_like_bytes_decode_within_bounds() {
    let trials = trials();
    let bytes = prop_oneof![6 => Just(0_u8), 2 => 0..16_u8, 1 => Just(0xFF), 1 => any::<u8>()];
    check("small counts", vec(bytes, 0..256), 256, move |bytes| {
        attempt_all(&bytes.into(), &trials)
    });
}

#[test]
fn damaged_frames_decode_within_bounds() {
    let trials = trials();
    check("damaged frames", malformed(any::<Frame>()), 512, move |broken| {
        let content = broken.frame.content();
        let _ = broken.frame.kind.check(&content);
        attempt_all(&content, &trials)
    });
}

#[test]
fn damaged_streams_split_without_allocating() {
    let frames = vec(any::<Frame>(), 1..4);
    check("damaged streams", (frames, any::<Mutation>()), 512, |(frames, mutation)| {
        let stream: Vec<_> = frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect();
        let mut buffer = BytesMut::from(&mutation.apply(&stream.into())[..]);
        let mut bytes_max = 0;
        while !buffer.is_empty() {
            let mut split = Ok(None);
            bytes_max += measure(|| split = split_frame(&mut buffer, LEN_REPLY_MAX)).bytes_max;
            let Ok(Some(_)) = split else { break };
        }
        prop_assert!(bytes_max <= SLACK, "{bytes_max}");
        Ok(())
    });
}

#[test]
fn invalid_counts_are_typed_errors() {
    fn refusal<'a, T: Decode<'a> + Debug>(frame: &'a Bytes) -> DecodeErrorKind {
        let error = decode_prefix::<T>(frame).unwrap_err();
        assert_eq!(error.offset, 0, "{error}");
        error.kind
    }
    let frame = |count: i32| Bytes::from([&encode(&count)[..], &[0; 24]].concat());

    for count in [-2, i32::MIN] {
        let frame = frame(count);
        let expected = DecodeErrorKind::NegativeCount(count);
        assert_eq!(refusal::<Text>(&frame), expected);
        assert_eq!(refusal::<Str<'_>>(&frame), expected);
        assert_eq!(refusal::<Option<Bytes>>(&frame), expected);
        assert_eq!(refusal::<Option<&[u8]>>(&frame), expected);
        assert_eq!(refusal::<List<Text>>(&frame), expected);
    }
    // Each element has at least a count of four bytes, or of an access control list twelve bytes.
    for count in [7, i32::MAX] {
        let expected = DecodeErrorKind::CountTooLarge { count, left: 24 };
        assert_eq!(refusal::<List<Text>>(&frame(count)), expected);
    }
    let expected = DecodeErrorKind::CountTooLarge { count: 3, left: 24 };
    assert_eq!(refusal::<List<zk_proto::Acl>>(&frame(3)), expected);
    assert_eq!(decode_exact(&frame(6)), Ok(List::of_strs([""; 6])));
}

/// The largest counts that fit in front of the most bytes that a frame may have.
#[test]
fn count_allocates_nothing_in_advance() {
    for count in [i32::MAX, 16 << 20, 8 << 20, 1 << 20] {
        let mut frame = BytesMut::new();
        count.encode(&mut frame);
        frame.resize(32 << 20, 0);
        let frame = frame.freeze();
        for peak in [
            peak::<List<Text>>(&frame),
            peak::<List<zk_proto::Acl>>(&frame),
            peak::<GetChildrenResponse>(&frame),
            peak::<Text>(&frame),
        ] {
            assert!(peak <= SLACK, "{peak} bytes for a count of {count}");
        }
    }
}

#[test]
fn multi_allocates_nothing_per_operation() {
    let delete = zk_proto::request::DeleteRequest { path: "/a".into(), version: -1 };
    let ops = std::iter::repeat_n(MultiOp::Delete(delete), 100_000);
    let request = encode(&ops.collect::<MultiRequest>());
    assert!(decode_exact::<MultiRequest>(&request).is_ok());
    let peak = peak::<MultiRequest>(&request).max(peak::<MultiResponse>(&request));
    assert!(peak <= SLACK, "{peak}");
}

/// Without this, the tests above might pass because nothing is measured.
#[test]
fn greedy_decoder_exceeds_the_bound() {
    struct Greedy;
    impl Decode<'_> for Greedy {
        const LEN_MIN: usize = 4;
        fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
            let count = i32::decode(reader)?;
            let elements = Vec::<u32>::with_capacity(count.try_into().unwrap_or_default());
            black_box(elements);
            Ok(Self)
        }
    }

    let input = encode(&1_000_000_i32);
    let greedy = peak::<Greedy>(&input);
    assert!(greedy >= 4_000_000, "{greedy}");
    assert!(!is_frugal(greedy, &input));
    let frugal = peak::<List<OpCode>>(&input);
    assert!(is_frugal(frugal, &input), "{frugal}");
}
