//! From a generated value to its record, and the macros that make both.

use core::fmt::Debug;

use bytes::{Bytes, BytesMut};

use crate::{
    jute::{Decode, Encode},
    text::{Secret, Str, Text},
};

/// A value that is a record, or owns what a record borrows.
pub trait AsRecord {
    /// The record.
    type Record<'a>: Decode<'a> + Encode + Debug + PartialEq
    where
        Self: 'a;

    /// The record, borrowing from `self`.
    fn as_record(&self) -> Self::Record<'_>;

    /// The record's encoding.
    fn encoded(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.as_record().encode(&mut out);
        out.freeze()
    }
}

/// The conversion of a field of an owned twin to the field of its record.
pub(super) trait Lend<'a, T> {
    fn lend(&'a self) -> T;
}

impl<T: Clone> Lend<'_, T> for T {
    fn lend(&self) -> T {
        self.clone()
    }
}

impl<'a> Lend<'a, Str<'a>> for Text {
    fn lend(&'a self) -> Str<'a> {
        self.into()
    }
}

impl<'a> Lend<'a, Option<&'a [u8]>> for Option<Bytes> {
    fn lend(&'a self) -> Option<&'a [u8]> {
        self.as_deref()
    }
}

impl<'a> Lend<'a, Secret<Option<&'a [u8]>>> for Option<Bytes> {
    fn lend(&'a self) -> Secret<Option<&'a [u8]>> {
        Secret(self.as_deref())
    }
}

/// `Arbitrary` from a strategy for the whole value.
macro_rules! arbitrary {
    ($($type:ty = $strategy:expr;)*) => {$(
        impl proptest::arbitrary::Arbitrary for $type {
            type Parameters = ();
            type Strategy = proptest::strategy::BoxedStrategy<Self>;
            fn arbitrary_with((): ()) -> Self::Strategy {
                proptest::strategy::Strategy::boxed($strategy)
            }
        }
    )*};
}

/// `AsRecord` for types that are records themselves.
macro_rules! is_record {
    ($($type:ty),* $(,)?) => {$(
        impl crate::strategy::record::AsRecord for $type {
            type Record<'a> = Self;
            fn as_record(&self) -> Self {
                self.clone()
            }
        }
    )*};
}

/// `Arbitrary` for records that own their fields, from a strategy for each field.
macro_rules! records {
    ($($type:ident { $($field:ident: $strategy:expr),* $(,)? })*) => {$(
        crate::strategy::record::arbitrary! {
            $type = proptest::strategy::Strategy::prop_map(
                ($($strategy,)*),
                |($($field,)*)| Self { $($field),* },
            );
        }
        crate::strategy::record::is_record!($type);
    )*};
}

/// An owned twin for each record that borrows: its fields, the types that own them, and a strategy
/// for each.
macro_rules! owned {
    ($($owned:ident lends $record:ident { $($field:ident: $type:ty = $strategy:expr),* $(,)? })*) => {$(
        #[doc = concat!("Owns what a [`", stringify!($record), "`] borrows.")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $owned {
            $(#[doc = concat!("As [`", stringify!($record), "::", stringify!($field), "`].")]
            pub $field: $type,)*
        }

        impl crate::strategy::record::AsRecord for $owned {
            type Record<'a> = $record<'a>;
            fn as_record(&self) -> $record<'_> {
                $record { $($field: crate::strategy::record::Lend::lend(&self.$field)),* }
            }
        }

        crate::strategy::record::arbitrary! {
            $owned = proptest::strategy::Strategy::prop_map(
                ($($strategy,)*),
                |($($field,)*)| Self { $($field),* },
            );
        }
    )*};
}

pub(super) use {arbitrary, is_record, owned, records};

is_record!(());
