//! Recorded traffic of real clients and servers, against the codec.
//!
//! The frames were decoded by an independent program, so a mistake that the codec makes in both
//! directions shows here and nowhere else. `README.md` in this folder describes the files.

mod message;
mod rebuild;
mod recording;

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use zk_proto::{
    Xid,
    frame::{LEN_REPLY_MAX, RequestFrame, encode_frame, split_frame},
    jute::{Decode, DecodeErrorKind, Reader},
};

use self::{
    message::Message,
    rebuild::Rebuilt,
    recording::{Direction, Frame, cuts, frames},
};

#[test]
fn recorded_frames_decode_and_reencode() {
    let frames = frames();
    for frame in &frames {
        let at = &frame.at;
        let mut buffer = BytesMut::from(&frame.bytes[..]);
        let content = split_frame(&mut buffer, LEN_REPLY_MAX)
            .unwrap_or_else(|error| panic!("{at}: {error}"))
            .unwrap_or_else(|| panic!("{at}: incomplete"));
        assert!(buffer.is_empty(), "{at}: not one frame");

        let decoded =
            frame.message.describe(&content).unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!(decoded.fields, frame.fields, "{at}");
        let mut encoded = BytesMut::new();
        encode_frame(&decoded.content, &mut encoded);
        assert_eq!(encoded, frame.bytes, "{at}: encoded");

        if let Message::Request(op) = frame.message {
            let xid = Xid::decode(&mut Reader::new(&content)).unwrap();
            encoded.clear();
            RequestFrame::from_body(op, content.slice(8..)).write(xid, &mut encoded);
            assert_eq!(encoded, frame.bytes, "{at}: written with its xid");
        }
    }
    println!("{} frames decoded, compared and encoded", frames.len());
}

#[test]
fn every_operation_is_recorded_with_reply() {
    use zk_proto::{OpCode, dispatch};

    let frames = frames();
    let with_request: BTreeSet<OpCode> =
        OpCode::KNOWN.iter().copied().filter(|&op| dispatch!(op, _R => ()).is_some()).collect();
    let requested: BTreeSet<_> = frames
        .iter()
        .filter_map(|frame| match frame.message {
            Message::Request(op) => Some(op),
            _ => None,
        })
        .collect();
    assert_eq!(requested, with_request);

    let answered: BTreeSet<_> = frames
        .iter()
        .filter_map(|frame| match frame.message {
            Message::Reply(op) => Some(op),
            _ => None,
        })
        .collect();
    // Internal to servers, who refuse them to clients.
    let refused = BTreeSet::from([OpCode::CHECK, OpCode::DELETE_CONTAINER]);
    assert_eq!(&answered | &refused, with_request);
    assert!(answered.is_disjoint(&refused));
}

#[test]
fn frame_in_pieces_is_the_same_frame() {
    let (mut splits, mut byte_wise) = (0, 0);
    for Frame { at, bytes, .. } in &frames() {
        let content = bytes.slice(4..);
        for cut in cuts(bytes.len()) {
            let mut buffer = BytesMut::from(&bytes[..cut]);
            assert_eq!(split_frame(&mut buffer, LEN_REPLY_MAX), Ok(None), "{at}: {cut}");
            assert_eq!(buffer, bytes[..cut], "{at}: {cut}: what came first must stay");
            buffer.extend_from_slice(&bytes[cut..]);
            let whole = split_frame(&mut buffer, LEN_REPLY_MAX).unwrap();
            assert_eq!(whole.as_ref(), Some(&content), "{at}: {cut}");
            assert!(buffer.is_empty(), "{at}: {cut}");
            splits += 1;
        }

        let mut buffer = BytesMut::new();
        for (received, byte) in bytes.iter().enumerate() {
            assert_eq!(split_frame(&mut buffer, LEN_REPLY_MAX), Ok(None), "{at}: {received}");
            buffer.extend_from_slice(&[*byte]);
        }
        assert_eq!(split_frame(&mut buffer, LEN_REPLY_MAX), Ok(Some(content)), "{at}");
        byte_wise += 1;
    }
    println!("{splits} splits, {byte_wise} frames byte by byte");
    assert!(splits > byte_wise && byte_wise > 0);
}

/// Whole directions of connections, read in sizes that fall anywhere: frames then share buffers with
/// their neighbours, which one frame alone never does.
#[test]
fn stream_splits_alike_for_any_read_size() {
    let frames = frames();
    for read_size in [13, 1448, 1 << 16] {
        let mut cut_off = 0;
        for stream in streams(&frames) {
            let mut buffer = BytesMut::new();
            let mut expected = stream.iter();
            let bytes = stream.iter().flat_map(|frame| frame.bytes.to_vec());
            for read in bytes.collect::<Vec<_>>().chunks(read_size) {
                buffer.extend_from_slice(read);
                while let Some(content) = split_frame(&mut buffer, LEN_REPLY_MAX).unwrap() {
                    let frame = expected.next().expect("no more frames than were sent");
                    assert_eq!(content, frame.bytes[4..], "{}", frame.at);
                    let encoded = frame.message.reencode(&content);
                    assert_eq!(encoded, Ok(content), "{}", frame.at);
                    cut_off += 1;
                }
            }
            assert!(expected.next().is_none() && buffer.is_empty());
        }
        assert_eq!(cut_off, frames.len());
    }
}

/// The frames of each connection and direction.
fn streams(frames: &[Frame]) -> Vec<Vec<&Frame>> {
    let mut streams = BTreeMap::<(&str, Direction), Vec<&Frame>>::new();
    for frame in frames {
        let stream = (frame.connection.as_str(), frame.direction);
        streams.entry(stream).or_default().push(frame);
    }
    streams.into_values().collect()
}

#[test]
fn truncation_reports_the_missing_bytes() {
    let (mut truncations, mut without_flag) = (0, 0);
    for Frame { at, bytes, message, .. } in &frames() {
        let content = bytes.slice(4..);
        for cut in cuts(content.len()) {
            truncations += 1;
            match message.reencode(&content.slice(..cut)) {
                Err(error) => {
                    let lacks_bytes = matches!(
                        error.kind,
                        DecodeErrorKind::Truncated { .. } | DecodeErrorKind::CountTooLarge { .. }
                    );
                    assert!(lacks_bytes, "{at}: {cut}: {error}");
                    assert!(error.offset <= cut, "{at}: {cut}: {error}");
                    assert!(
                        error.record != "frame" && !error.field.is_empty(),
                        "{at}: {cut}: {error}"
                    );
                }
                // The handshake's last flag may be absent: what is left is a frame of its own.
                Ok(encoded) => {
                    assert!(message.may_lack_its_last_byte(), "{at}: {cut} bytes decode");
                    assert_eq!(cut + 1, content.len(), "{at}: {cut} bytes decode");
                    assert_eq!(encoded, content[..cut], "{at}: {cut}");
                    without_flag += 1;
                }
            }
        }
    }
    println!("{truncations} truncations, {without_flag} of them only without the handshake's flag");
    assert!(without_flag > 0 && truncations > without_flag);
}

#[test]
fn lists_and_multis_rebuild_from_items() {
    let (mut rebuilt, mut own_headers) = (0, 0);
    for Frame { at, bytes, message, .. } in &frames() {
        let content: Bytes = bytes.slice(4..);
        match message.rebuild(&content) {
            Rebuilt::NothingToRebuild => {}
            Rebuilt::OtherHeaders => own_headers += 1,
            Rebuilt::Content(again) => {
                assert_eq!(again, content, "{at}");
                rebuilt += 1;
            }
        }
    }
    println!("{rebuilt} frames rebuilt, {own_headers} left as they are");
    assert!(rebuilt > 1000);
    // One hand-built multi, said to each server, has 0 where every client has -1.
    assert_eq!(own_headers, 3);
}
