//! `record!`: a list of fields becomes a struct with both halves of its codec.

/// Makes a struct whose wire form is its fields in order.
///
/// The order is written once, so that encoding and decoding cannot disagree.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident $(<$lt:lifetime>)? { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "camelCase"))]
        pub struct $name $(<$lt>)? { $($(#[$doc])* pub $field: $type),* }

        impl $(<$lt>)? crate::jute::Encode for $name $(<$lt>)? {
            fn encode(&self, out: &mut bytes::BytesMut) { $(self.$field.encode(out);)* }
        }

        crate::record::record!(@decode $name $(<$lt>)? { $($field: $type),* });
    };
    (@decode $name:ident <$lt:lifetime> { $($field:ident: $type:ty),* }) => {
        impl<$lt> crate::jute::Decode<$lt> for $name<$lt> {
            const LEN_MIN: usize = 0 $(+ <$type as crate::jute::Decode<'_>>::LEN_MIN)*;
            fn decode(reader: &mut crate::jute::Reader<$lt>) -> Result<Self, crate::jute::DecodeError> {
                Ok(Self { $($field: reader.field(stringify!($name), stringify!($field))?),* })
            }
        }
    };
    (@decode $name:ident { $($field:ident: $type:ty),* }) => {
        impl crate::jute::Decode<'_> for $name {
            const LEN_MIN: usize = 0 $(+ <$type as crate::jute::Decode<'_>>::LEN_MIN)*;
            fn decode(reader: &mut crate::jute::Reader<'_>) -> Result<Self, crate::jute::DecodeError> {
                Ok(Self { $($field: reader.field(stringify!($name), stringify!($field))?),* })
            }
        }
    };
}

pub(crate) use record;
