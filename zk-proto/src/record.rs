//! `record!`: a list of fields becomes a struct with both halves of its codec.

/// Makes a struct whose wire form is its fields in order.
///
/// The order is written once, so that encoding and decoding cannot disagree. With `fixed` in front, all fields are
/// [`Fixed`](crate::jute::Fixed), and so is the record. A view, which borrows the contents of a record, has the
/// record's name in errors.
macro_rules! record {
    ($(#[$meta:meta])* fixed $name:ident { $($fields:tt)* }) => {
        crate::record::record!(@struct $(#[$meta])* $name { $($fields)* });
        crate::record::record!(@fixed $name { $($fields)* });
    };
    ($(#[$meta:meta])* $name:ident $(<$lt:lifetime>)? { $($fields:tt)* }) => {
        crate::record::record!(@struct $(#[$meta])* $name $(<$lt>)? { $($fields)* });
        crate::record::record!(@codec $name, $name $(<$lt>, $lt)? { $($fields)* });
    };
    ($(#[$meta:meta])* $view:ident <$lt:lifetime> of $name:ident { $($fields:tt)* }) => {
        crate::record::record!(@struct $(#[$meta])* $view <$lt> { $($fields)* });
        crate::record::record!(@codec $name, $view <$lt>, $lt { $($fields)* });
    };
    (@struct $(#[$meta:meta])* $name:ident $(<$lt:lifetime>)? { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "camelCase"))]
        pub struct $name $(<$lt>)? { $($(#[$doc])* pub $field: $type),* }
    };
    (@codec $name:ident, $type:ident { $($fields:tt)* }) => {
        crate::record::record!(@codec $name, $type, '_ { $($fields)* });
    };
    (@codec $name:ident, $record:ident $(<$own:lifetime>)?, $lt:lifetime { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        impl $(<$own>)? crate::jute::Encode for $record $(<$own>)? {
            fn encode(&self, out: &mut bytes::BytesMut) { $(self.$field.encode(out);)* }
            fn encoded_len(&self) -> usize { 0_usize $(.saturating_add(self.$field.encoded_len()))* }
        }

        impl $(<$own>)? crate::jute::Decode<$lt> for $record $(<$own>)? {
            const LEN_MIN: usize = 0 $(+ <$type as crate::jute::Decode<'_>>::LEN_MIN)*;
            fn decode(reader: &mut crate::jute::Reader<$lt>) -> Result<Self, crate::jute::DecodeError> {
                Ok(Self { $($field: reader.field(stringify!($name), stringify!($field))?),* })
            }
            fn skip(reader: &mut crate::jute::Reader<$lt>) -> Result<(), crate::jute::DecodeError> {
                $(reader.skip_field::<$type>(stringify!($name), stringify!($field))?;)*
                Ok(())
            }
        }
    };
    (@fixed $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        impl crate::jute::Fixed for $name {
            const LEN: usize = 0 $(+ <$type as crate::jute::Fixed>::LEN)*;
            const FIELDS: (&'static str, &'static [(&'static str, usize)]) =
                (stringify!($name), &[$((stringify!($field), <$type as crate::jute::Fixed>::LEN)),*]);
            fn get(from: &mut impl bytes::Buf) -> Self {
                Self { $($field: crate::jute::Fixed::get(from)),* }
            }
            fn put(&self, to: &mut impl bytes::BufMut) { $(self.$field.put(to);)* }
        }

        crate::jute::fixed_codec!($name);
    };
}

pub(crate) use record;
