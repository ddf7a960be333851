//! The stream: frames are the same whatever the sizes in which their bytes come.

use bytes::{Buf, Bytes, BytesMut};
use zk_proto::frame::{FrameError, LEN_PREFIX, encode_frame_with, split_frame};

/// Two bytes, the size of reads and the largest frame, and then a stream.
pub(super) fn frames(input: &[u8]) {
    let [read_size, len_max, stream @ ..] = input else {
        return;
    };
    let len_max = usize::from(*len_max);
    let (frames, end) = model(stream, len_max);

    let mut buffer = BytesMut::new();
    let mut split = Vec::new();
    let mut error = None;
    'stream: for read in stream.chunks(usize::from(*read_size) + 1) {
        buffer.extend_from_slice(read);
        loop {
            match split_frame(&mut buffer, len_max) {
                Ok(Some(frame)) => split.push(frame),
                Ok(None) => break,
                Err(refused) => {
                    error = Some(refused);
                    break 'stream;
                }
            }
        }
    }
    assert_eq!(split, frames);
    match end {
        End::Incomplete(rest) => {
            assert_eq!(error, None);
            assert_eq!(&buffer[..], rest);
        }
        End::Refused(refused) => assert_eq!(error, Some(refused)),
    }

    let mut out = BytesMut::new();
    for frame in &split {
        encode_frame_with(&mut out, |out| out.extend_from_slice(frame));
    }
    assert!(stream.starts_with(&out));
}

enum End<'a> {
    Incomplete(&'a [u8]),
    Refused(FrameError),
}

/// The frames of a whole stream, and how it ends.
fn model(mut stream: &[u8], len_max: usize) -> (Vec<Bytes>, End<'_>) {
    let mut frames = Vec::new();
    loop {
        let Some(mut prefix) = stream.get(..LEN_PREFIX) else {
            return (frames, End::Incomplete(stream));
        };
        let len = prefix.get_i32();
        let Ok(wanted) = usize::try_from(len) else {
            return (frames, End::Refused(FrameError { len, len_max }));
        };
        if wanted > len_max {
            return (frames, End::Refused(FrameError { len, len_max }));
        }
        let Some(frame) = stream.get(LEN_PREFIX..LEN_PREFIX + wanted) else {
            return (frames, End::Incomplete(stream));
        };
        frames.push(Bytes::copy_from_slice(frame));
        stream = &stream[LEN_PREFIX + wanted..];
    }
}
