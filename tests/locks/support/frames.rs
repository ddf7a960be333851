//! Reading a proxy's log.

use zk_proto::OpCode;
use zk_testkit::proxy::Frames;

/// The operations of the requests among these frames, in order.
pub(crate) fn ops(frames: &Frames) -> Vec<OpCode> {
    frames.requests().iter().filter_map(|frame| frame.op).collect()
}
