//! A node as it is kept: as short as it came over the wire, until somebody looks at it.

use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use zk_proto::{
    Stat,
    jute::{Encode as _, decode_prefix},
};

use super::node::CachedNode;

/// The encoding of a node's metadata, and its data behind that, in one piece of memory.
///
/// Beside its path, a node of 100 bytes takes 192 bytes so, and its place in a map; a [`CachedNode`] takes twice as much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept(Arc<[u8]>);

/// Nodes up to this length are copied for those who look at them. Of longer ones, the memory is shared.
const COPY_LEN_MAX: usize = 4 << 10;

impl Kept {
    pub(super) fn new(data: &[u8], stat: &Stat) -> Self {
        let mut packed = BytesMut::with_capacity(stat.encoded_len().saturating_add(data.len()));
        stat.encode(&mut packed);
        packed.extend_from_slice(data);
        Self(packed.as_ref().into())
    }

    /// The node, for somebody to look at.
    pub(super) fn node(&self, path: &Arc<str>) -> CachedNode {
        let mut data = if self.0.len() <= COPY_LEN_MAX {
            Bytes::copy_from_slice(&self.0)
        } else {
            Bytes::from_owner(self.0.clone())
        };
        let stat: Stat = decode_prefix(&data).unwrap_or_default();
        data.advance(stat.encoded_len());
        CachedNode { path: path.clone(), data, stat }
    }
}

#[cfg(test)]
mod tests {
    use zk_proto::Zxid;

    use super::*;

    #[test]
    fn kept_node_is_the_one_that_was_read() {
        let stat = Stat { czxid: Zxid(7), mzxid: Zxid(-9), version: 3, ..Stat::default() };
        let path: Arc<str> = "/a".into();
        for len in [0, 1, 100, COPY_LEN_MAX, COPY_LEN_MAX + 1, 1 << 20] {
            let data: Bytes = (0..len).map(|number| number as u8).collect();
            let node = Kept::new(&data, &stat).node(&path);
            assert_eq!(node, CachedNode { path: path.clone(), data, stat }, "{len}");
        }
    }

    #[test]
    fn long_data_are_shared() {
        let kept = Kept::new(&[7; 1 << 20], &Stat::default());
        let path: Arc<str> = "/a".into();
        assert_eq!(kept.node(&path).data.as_ptr(), kept.node(&path).data.as_ptr());
    }
}
