//! The trait of requests, and macros that make the records of requests.

use crate::{
    jute::{Decode, Encode},
    op::OpCode,
};

/// Ties an operation's number, its arguments and its answer together.
pub trait Request: Encode {
    /// The operation.
    const OP: OpCode;
    /// The body of a reply without error.
    type Response: for<'a> Decode<'a> + Encode;
}

/// Binds requests to operation numbers and responses.
macro_rules! requests {
    ($($request:ty = $op:ident -> $response:ty;)*) => {$(
        impl crate::request::define::Request for $request {
            const OP: crate::op::OpCode = crate::op::OpCode::$op;
            type Response = $response;
        }
    )*};
}

/// Makes a request whose record is another's, under an operation number of its own.
macro_rules! same_record {
    ($($(#[$doc:meta])* $name:ident($record:ident);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub struct $name<'a>(pub $record<'a>);

        impl crate::jute::Encode for $name<'_> {
            fn encode(&self, out: &mut bytes::BytesMut) {
                self.0.encode(out);
            }
            fn encoded_len(&self) -> usize {
                self.0.encoded_len()
            }
        }
        impl<'a> crate::jute::Decode<'a> for $name<'a> {
            const LEN_MIN: usize = $record::LEN_MIN;
            fn decode(reader: &mut crate::jute::Reader<'a>) -> Result<Self, crate::jute::DecodeError> {
                $record::decode(reader).map(Self)
            }
            fn skip(reader: &mut crate::jute::Reader<'a>) -> Result<(), crate::jute::DecodeError> {
                $record::skip(reader)
            }
        }
    )*};
}

/// Makes the codecs of requests that are a header and nothing else.
macro_rules! empty_requests {
    ($($name:ident),*) => {$(
        impl crate::jute::Encode for $name {
            fn encode(&self, _: &mut bytes::BytesMut) {}
            fn encoded_len(&self) -> usize {
                0
            }
        }
        impl crate::jute::Decode<'_> for $name {
            const LEN_MIN: usize = 0;
            fn decode(_: &mut crate::jute::Reader<'_>) -> Result<Self, crate::jute::DecodeError> {
                Ok(Self)
            }
        }
        #[cfg(feature = "serde")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_unit()
            }
        }
    )*};
}

pub(crate) use {empty_requests, requests, same_record};
