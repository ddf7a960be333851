//! The destination and options of a request.

use zk_proto::{frame::RequestFrame, request::Request};

use crate::request::{call_options::CallOptions, handle::Handle};

/// The destination and options of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) handle: &'a Handle,
    pub(crate) options: CallOptions,
}

impl<'a> Target<'a> {
    pub(crate) const fn new(handle: &'a Handle) -> Self {
        Self { handle, options: handle.options }
    }

    /// Encodes a request.
    pub(crate) fn frame<R: Request>(&self, request: &R) -> RequestFrame {
        self.handle.shared.frames.of(request)
    }
}
