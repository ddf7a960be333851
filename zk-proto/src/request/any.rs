//! Any request, decoded.

use bytes::BytesMut;

use crate::{
    for_each_request,
    jute::{Decode, DecodeError, DecodeErrorKind, Encode, Reader},
    op::OpCode,
    request,
};

macro_rules! any_request {
    ($($op:ident $variant:ident($request:ident $(<$lt:lifetime>)?) $twin:ident;)*) => {
        /// A request of any operation.
        ///
        /// ```
        /// use bytes::Bytes;
        /// use zk_proto::{OpCode, jute::Reader, request::AnyRequest};
        ///
        /// let body = Bytes::from_static(&[0, 0, 0, 2, b'/', b'a', 1]);
        /// let request = AnyRequest::decode(OpCode::EXISTS, &mut Reader::new(&body))?;
        /// assert!(matches!(request, AnyRequest::Exists(exists) if exists.path == "/a".into() && exists.watch));
        /// # Ok::<(), zk_proto::jute::DecodeError>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each variant is the operation of its name")]
        pub enum AnyRequest<'a> { $($variant(request::$request $(<$lt>)?)),* }

        impl<'a> AnyRequest<'a> {
            /// Decodes the body of a request for `op`.
            ///
            /// # Errors
            /// [`DecodeError`], with [`NoRequest`](DecodeErrorKind::NoRequest) if the operation has none.
            pub fn decode(op: OpCode, body: &mut Reader<'a>) -> Result<Self, DecodeError> {
                match op {
                    $(OpCode::$op => request::$request::decode(body).map(Self::$variant),)*
                    OpCode(op) => Err(DecodeError::at(body.offset(), DecodeErrorKind::NoRequest(op))),
                }
            }

            /// The operation.
            #[must_use]
            pub const fn op(&self) -> OpCode {
                match self { $(Self::$variant(_) => OpCode::$op,)* }
            }
        }

        impl Encode for AnyRequest<'_> {
            fn encode(&self, out: &mut BytesMut) {
                match self { $(Self::$variant(request) => request.encode(out),)* }
            }
            fn encoded_len(&self) -> usize {
                match self { $(Self::$variant(request) => request.encoded_len(),)* }
            }
        }
    };
}

for_each_request!(any_request,);
